//! `iolab simulate`: a recorded program or a described workload in virtual time, on a platform.

mod choices;
mod faults;
pub(crate) mod predicted;
mod show;
mod subject;
pub(crate) mod workload;

use crate::failure::Failure;
use crate::output::{self, Output};
use crate::ties::Ties;
use crate::{say, trace_file};
use clap::{ArgGroup, Args};
use iolab_policy::insitu::StrategySpec;
use iolab_report::prediction::Summary;
use iolab_sim::cluster::{Order, RunError};
use iolab_sim::guest::{Durations, Settings, io_of};
use iolab_sim::platform::Platform;
use iolab_sim::workload::recorded::{self, PosixCalls, Recording};
use iolab_trace::{Layer, Trace};
use iolab_vocab::{Nanos, Refusal, Seed};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use subject::Subject;

/// Predict what a recorded program or a described workload would take on a platform.
#[derive(Args)]
#[command(group(ArgGroup::new("what").required(true).args(["trace", "workload", "template", "show"])))]
pub(crate) struct Arguments {
    /// The recorded program
    #[arg(long, value_name = "RUN.iot|X.proj")]
    trace: Option<PathBuf>,
    /// A workload in TOML: files, applications, phases, commands
    #[arg(long, value_name = "W.toml")]
    workload: Option<PathBuf>,
    /// Print a commented workload
    #[arg(long)]
    template: bool,
    /// Draw the platform: as text, or as a picture (to --output, or stdout)
    #[arg(long, value_name = "FORM", num_args = 0..=1, default_missing_value = "text", value_parser = ["text", "svg", "html"])]
    show: Option<String>,
    /// Platform file, or the name of a preset
    #[arg(long, value_name = "P.toml", required_unless_present = "template")]
    platform: Option<String>,
    /// Strategy on top of the file system, as `iolab run` takes it; the first one is on top
    #[arg(long, value_name = "STRATEGY")]
    apply: Vec<String>,
    /// Cache layer of the servers of a cluster platform (none, write-behind, …)
    #[arg(long)]
    cache: Option<String>,
    /// Time of calls that strategies leave as they were
    #[arg(long, default_value = "recorded", value_parser = ["recorded", "model"])]
    durations: String,
    /// Files that exist before the run are not in the page cache
    #[arg(long)]
    cold: bool,
    /// A workload's random patterns, instead of its own seed
    #[arg(long, conflicts_with = "trace")]
    seed: Option<u64>,
    /// Where the simulated trace goes
    #[arg(short, long, value_name = "OUT.iot")]
    output: Option<PathBuf>,
    /// Algorithm of a collective command, as in `allgather=ring`; a bare name is for file accesses
    #[arg(long, value_name = "NAME")]
    collective: Vec<String>,
    /// What decides among simultaneous events
    #[arg(long, value_enum, default_value = "documented")]
    order: workload::OrderName,
    #[command(flatten)]
    ties: Ties,
    /// Print everything as one table of comma-separated values
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// What goes wrong meanwhile; the run without it is told beside
    #[arg(long, value_name = "SCENARIO.toml")]
    faults: Option<PathBuf>,
    /// Where what the strategies decided goes, one row per command
    #[arg(long, value_name = "FILE.iot")]
    decisions: Option<PathBuf>,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        Refusal::from(error).into()
    }
}

/// Traces that are written.
pub(crate) struct Outputs {
    pub(crate) trace: Option<Output>,
    decisions: Option<Output>,
}

impl Arguments {
    /// Where traces go, seen to be possible before the simulation.
    pub(crate) fn outputs(&self) -> Result<Outputs, Failure> {
        let mut inputs: Vec<&Path> = self.platform.iter().map(Path::new).collect();
        let files = [&self.trace, &self.workload, &self.faults];
        inputs.extend(files.into_iter().flatten().map(PathBuf::as_path));
        let trace = Output::begin_if(self.output.as_deref(), "-o", &inputs)?;
        let decisions = Output::begin_if(self.decisions.as_deref(), "--decisions", &inputs)?;
        output::distinct(&trace.iter().chain(&decisions).collect::<Vec<_>>())?;
        Ok(Outputs { trace, decisions })
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match (&arguments.trace, &arguments.workload, &arguments.show) {
        (Some(trace), ..) => run_trace(arguments, trace),
        (_, Some(path), _) => {
            arguments.refuse_posix_flags()?;
            workload::run(arguments, path)
        }
        (_, _, Some(form)) => show::run(arguments, form),
        _ => {
            say::text(iolab_sim::workload::TEMPLATE)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Flags that were given and would be ignored.
fn refuse(flags: &[(&str, bool)], whereabouts: &str, hint: &str) -> Result<(), Failure> {
    match flags.iter().find(|flag| flag.1) {
        None => Ok(()),
        Some((flag, _)) => {
            Err(Failure::new(format!("{flag} does nothing {whereabouts}")).hint(hint))
        }
    }
}

impl Arguments {
    /// What only means something where whole programs run on a cluster.
    fn refuse_cluster_flags(&self) -> Result<(), Failure> {
        let flags = [
            ("--collective", !self.collective.is_empty()),
            ("--order", self.order != workload::OrderName::Documented),
            ("--csv", self.csv),
            ("--faults", self.faults.is_some()),
        ];
        refuse(&flags, "for this trace", "it is for workloads and for traces with calls of MPI")
    }

    /// What only means something for recorded calls of POSIX.
    fn refuse_posix_flags(&self) -> Result<(), Failure> {
        let flags = [
            ("--decisions", self.decisions.is_some()),
            ("--cold", self.cold),
            ("--durations", self.durations != "recorded"),
        ];
        let hint = "it is for traces with calls of POSIX alone; a cluster has strategies (--apply), \
                    cache layers (--cache) and collectives (--collective)";
        refuse(&flags, "here", hint)
    }

    /// The strategies, the first one on top.
    pub(crate) fn strategies(&self) -> Result<Vec<StrategySpec>, Failure> {
        Ok(self.apply.iter().map(|text| StrategySpec::parse(text)).collect::<Result<_, _>>()?)
    }

    /// The platform, which all but the template want.
    fn platform(&self) -> Result<Platform, Failure> {
        read_platform(self.platform.as_deref().unwrap_or_default())
    }
}

/// A recorded program of MPI runs on a cluster, command by command.
fn run_recording(
    arguments: &Arguments,
    trace: &Trace,
    platform: &Platform,
) -> Result<ExitCode, Failure> {
    arguments.refuse_posix_flags()?;
    // Strategies stage calls of POSIX, and those of MPI-IO by a single rank.
    let posix = match arguments.apply.is_empty() {
        true => PosixCalls::Compute,
        false => PosixCalls::Commands,
    };
    let recording = Recording::with(trace, posix)?;
    for note in recording.notes() {
        eprintln!("iolab: {note}");
    }
    workload::run_subject(arguments, &Subject::Recorded(recording, recorded_wall(trace)), platform)
}

fn run_trace(arguments: &Arguments, path: &Path) -> Result<ExitCode, Failure> {
    let apply = arguments.strategies()?;
    let trace = trace_file::load(path)?;
    let platform = arguments.platform()?;
    if recorded::has_mpi(&trace) && !is_of_posix(&trace, &platform) {
        return run_recording(arguments, &trace, &platform);
    }
    arguments.refuse_cluster_flags()?;
    let outputs = arguments.outputs()?;
    if platform.nodes.is_empty() {
        let hint = "it is for the servers of a cluster; --cold says what this machine has cached";
        refuse(&[("--cache", arguments.cache.is_some())], "on a platform without servers", hint)?;
    }
    let settings = settings_of(arguments);
    let model = Settings { durations: Durations::Model, keep_decisions: false, ..settings.clone() };
    let quiet = Settings { keep_decisions: false, ..settings.clone() };
    let seeds = arguments.ties.of(Order::Documented);
    let predicted = |apply: &[StrategySpec], settings: &Settings| {
        predicted::over_ties(&trace, &platform, apply, settings, &seeds)
    };
    let summary = Summary {
        recorded: recorded_wall(&trace),
        recorded_io: io_of(&trace.events),
        plain: predicted(&[], &quiet)?,
        plain_by_model: predicted(&[], &model)?,
        by_model: predicted(&apply, &model)?,
        predicted: predicted(&apply, &settings)?,
        is_cluster: !platform.nodes.is_empty(),
        notes: platform.notes(),
    };
    save_if(outputs.trace, &summary.predicted.prediction.trace)?;
    save_if(outputs.decisions, &summary.predicted.prediction.decisions)?;
    match arguments.json {
        true => say::text(&format!("{}\n", summary.json(&trace)))?,
        false => say::text(&summary.text(&trace, &apply))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a trace that has calls of MPI is meant by those of POSIX that it also has: local storage
/// knows no others.
fn is_of_posix(trace: &Trace, platform: &Platform) -> bool {
    platform.nodes.is_empty()
        && trace.events.iter().any(|event| event.function.layer() == Layer::Posix)
}

fn settings_of(arguments: &Arguments) -> Settings {
    Settings {
        durations: match arguments.durations.as_str() {
            "model" => Durations::Model,
            _ => Durations::Recorded,
        },
        seed: Seed(0),
        cold: arguments.cold,
        cache: arguments.cache.clone(),
        keep_decisions: arguments.decisions.is_some(),
    }
}

/// Reads a platform file, or takes the preset of that name. `this-machine` is what `iolab calibrate`
/// wrote into the current directory.
pub(crate) fn read_platform(name: &str) -> Result<Platform, Failure> {
    let name = if name == "this-machine" { "this-machine.toml" } else { name };
    match std::fs::read_to_string(name) {
        Ok(text) => Platform::parse(&text)
            .map_err(|error| Failure::new(format!("{name}: {}", error.message)).hint(error.hint)),
        Err(_) if !name.contains(['/', '.']) => Ok(Platform::preset(name)?),
        Err(error) => Err(Failure::new(format!("{name}: {error}"))
            .hint("`iolab calibrate DIR -o FILE` writes a platform file for this machine")),
    }
}

fn save_if(output: Option<Output>, trace: &Trace) -> Result<(), Failure> {
    let Some(output) = output else { return Ok(()) };
    let path = output.path().to_owned();
    trace_file::save_to(output, trace)?;
    eprintln!("wrote {}", path.display());
    Ok(())
}

/// From the first moment of the trace to the last.
fn recorded_wall(trace: &Trace) -> Nanos {
    let entries = || trace.header.processes.iter();
    let starts =
        entries().map(|entry| entry.start_ns).chain(trace.events.iter().map(|e| e.start.0));
    let ends = entries().map(|entry| entry.end_ns).chain(trace.events.iter().map(|e| e.end.0));
    Nanos(ends.max().unwrap_or(0)).since(Nanos(starts.min().unwrap_or(0)))
}
