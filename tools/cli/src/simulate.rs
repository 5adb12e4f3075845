//! `iolab simulate`: a recorded program or a described workload in virtual time, on a platform.

mod faults;
mod results;
mod show;
mod subject;
pub(crate) mod workload;

use crate::failure::Failure;
use crate::{say, trace_file};
use clap::{ArgGroup, Args};
use iolab_policy::insitu::StrategySpec;
use iolab_sim::cluster::RunError;
use iolab_sim::guest::{Durations, Prediction, Settings, SimulationError, io_of, predict};
use iolab_sim::platform::{Platform, PlatformError};
use iolab_sim::workload::recorded::{self, Recording};
use iolab_trace::Trace;
use iolab_vocab::{Nanos, Seed, format_bytes};
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
    /// Trace: order of simultaneous events. Workload: its random patterns, instead of its own seed
    #[arg(long)]
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
    /// Shuffles simultaneous events; 0 leaves them as the order has them
    #[arg(long, default_value_t = 0)]
    tie_seed: u64,
    /// Also run with so many tie seeds and print the band of the result
    #[arg(long, value_name = "N", default_value_t = 0)]
    bands: u64,
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

impl From<SimulationError> for Failure {
    fn from(error: SimulationError) -> Failure {
        Failure::new(&error.message).hint(&error.hint)
    }
}

impl From<PlatformError> for Failure {
    fn from(error: PlatformError) -> Failure {
        Failure::new(&error.message).hint(&error.hint)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        Failure::new(error.message()).hint(error.hint())
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match (&arguments.trace, &arguments.workload, &arguments.show) {
        (Some(trace), ..) => run_trace(arguments, trace),
        (_, Some(path), _) => workload::run(arguments, path),
        (_, _, Some(form)) => show::run(arguments, form),
        _ => {
            say::text(iolab_sim::workload::TEMPLATE)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

impl Arguments {
    /// What only means something where whole programs run on a cluster.
    fn refuse_cluster_flags(&self) -> Result<(), Failure> {
        let flags = [
            ("--collective", !self.collective.is_empty()),
            ("--order", self.order != workload::OrderName::Documented),
            ("--tie-seed", self.tie_seed != 0),
            ("--bands", self.bands != 0),
            ("--csv", self.csv),
            ("--faults", self.faults.is_some()),
        ];
        match flags.iter().find(|flag| flag.1) {
            None => Ok(()),
            Some((flag, _)) => Err(Failure::new(format!("{flag} does nothing for this trace"))
                .hint("it is for workloads and for traces with calls of MPI")),
        }
    }

    /// The platform, which all but the template want.
    fn platform(&self) -> Result<Platform, Failure> {
        read_platform(self.platform.as_deref().unwrap_or_default())
    }
}

/// A recorded program of MPI runs on a cluster, command by command.
fn run_recording(arguments: &Arguments, trace: &Trace) -> Result<ExitCode, Failure> {
    if !arguments.apply.is_empty() {
        return Err(Failure::new(
            "strategies stage calls of POSIX, and this trace has calls of MPI",
        )
        .hint("choose a cache layer by --cache, or a collective by --collective"));
    }
    let recording = Recording::of(trace)?;
    if !recording.skipped().is_empty() {
        let names = recording.skipped().iter().map(|(name, count)| format!("{count} {name}"));
        eprintln!("iolab: without a command: {}", names.collect::<Vec<_>>().join(", "));
    }
    workload::run_subject(arguments, &Subject::Recorded(recording, recorded_wall(trace)))
}

fn run_trace(arguments: &Arguments, path: &Path) -> Result<ExitCode, Failure> {
    let apply = arguments
        .apply
        .iter()
        .map(|text| StrategySpec::parse(text))
        .collect::<Result<Vec<_>, _>>()?;
    let trace = trace_file::load(path)?;
    if recorded::has_mpi(&trace) {
        return run_recording(arguments, &trace);
    }
    arguments.refuse_cluster_flags()?;
    let platform = arguments.platform()?;
    let settings = settings_of(arguments);
    let prediction = predict(&trace, &platform, &apply, &settings)?;
    let model = Settings { durations: Durations::Model, keep_decisions: false, ..settings.clone() };
    let summary = Summary {
        recorded: recorded_wall(&trace),
        recorded_io: io_of(&trace.events),
        plain: predict(&trace, &platform, &[], &Settings { keep_decisions: false, ..settings })?,
        plain_by_model: predict(&trace, &platform, &[], &model)?,
        by_model: predict(&trace, &platform, &apply, &model)?,
        prediction,
    };
    save_if(arguments.output.as_deref(), &summary.prediction.trace)?;
    save_if(arguments.decisions.as_deref(), &summary.prediction.decisions)?;
    match arguments.json {
        true => say::text(&format!("{}\n", summary.json(&trace)))?,
        false => say::text(&summary.text(&trace, &apply))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn settings_of(arguments: &Arguments) -> Settings {
    Settings {
        durations: match arguments.durations.as_str() {
            "model" => Durations::Model,
            _ => Durations::Recorded,
        },
        seed: Seed(arguments.seed.unwrap_or(0)),
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

fn save_if(path: Option<&Path>, trace: &Trace) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    trace_file::save(path, trace)?;
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

/// What is told: the recorded run, the plain one and the one under strategies.
struct Summary {
    recorded: Nanos,
    recorded_io: Nanos,
    plain: Prediction,
    plain_by_model: Prediction,
    by_model: Prediction,
    prediction: Prediction,
}

/// Bytes moved and time in calls of one file.
struct PerFile {
    path: String,
    calls: u64,
    bytes: u64,
    recorded: Nanos,
    predicted: Nanos,
}

impl Summary {
    /// How far the model alone is off on the plain run, relative.
    fn bias(&self) -> f64 {
        self.plain_by_model.io.seconds() / self.plain.io.seconds().max(1e-9) - 1.0
    }

    fn files(&self, trace: &Trace) -> Vec<PerFile> {
        let empty = |path: &String| PerFile {
            path: path.clone(),
            calls: 0,
            bytes: 0,
            recorded: Nanos::ZERO,
            predicted: Nanos::ZERO,
        };
        let mut files: Vec<PerFile> =
            trace.header.files.iter().map(|entry| empty(&entry.path)).collect();
        let pairs = trace.events.iter().zip(&self.prediction.trace.events);
        for (recorded, predicted) in pairs {
            let Some(file) = recorded.file.index().and_then(|file| files.get_mut(file)) else {
                continue;
            };
            if recorded.function.layer() == iolab_trace::Layer::Posix {
                file.calls += 1;
                file.bytes += recorded.moved_bytes();
                file.recorded = file.recorded.after(recorded.duration());
                file.predicted = file.predicted.after(predicted.duration());
            }
        }
        files.retain(|file| file.calls > 0);
        files.sort_by_key(|file| std::cmp::Reverse(file.recorded));
        files
    }

    fn text(&self, trace: &Trace, apply: &[StrategySpec]) -> String {
        let row = |name: &str, wall: Nanos, io: Nanos| {
            format!("{name:<44} {:>12} {:>12}\n", milliseconds(wall), milliseconds(io))
        };
        let mut text = format!("{:<44} {:>12} {:>12}\n", "", "run time ms", "in calls ms");
        text += &row("recorded (with the recorder)", self.recorded, self.recorded_io);
        text += &row("plain, predicted", self.plain.wall, self.plain.io);
        text += &row("plain, by the model alone", self.plain_by_model.wall, self.plain_by_model.io);
        if !apply.is_empty() {
            let names: Vec<_> = apply.iter().map(|spec| spec.text.as_str()).collect();
            text += &row(&names.join(" + "), self.prediction.wall, self.prediction.io);
            text += &row("  by the model alone", self.by_model.wall, self.by_model.io);
            text += &self.speed_up();
        }
        if let Some(stored) = self.prediction.stored {
            let stored = milliseconds(stored);
            text += &format!("all data on the servers' devices after {stored} ms\n");
        }
        text += &format!("bias of the model on the recorded calls {:+.0} %\n", self.bias() * 100.0);
        text += &format!("event hash {:016x}\n", self.prediction.event_hash);
        text + &self.file_table(trace)
    }

    fn speed_up(&self) -> String {
        let speed_up = self.plain.wall.seconds() / self.prediction.wall.seconds().max(1e-9);
        let (staged, performed) = (self.prediction.staged_calls, self.prediction.performed_calls);
        format!("speed-up {speed_up:.2}; {staged} calls in, {performed} calls out\n")
    }

    /// The files that took the most time.
    fn file_table(&self, trace: &Trace) -> String {
        let titles = ["calls", "bytes", "recorded ms", "predicted ms"];
        let line = |cells: [&str; 4], path: &str| {
            let [calls, bytes, recorded, predicted] = cells;
            format!("{calls:>10} {bytes:>10} {recorded:>12} {predicted:>12}  {path}\n")
        };
        let mut text = format!("\n{}", line(titles, "file"));
        for file in self.files(trace).iter().take(20) {
            let (calls, bytes) = (file.calls.to_string(), format_bytes(file.bytes));
            let (recorded, predicted) = (milliseconds(file.recorded), milliseconds(file.predicted));
            text += &line([&calls, &bytes, &recorded, &predicted], &file.path);
        }
        text
    }

    fn json(&self, trace: &Trace) -> serde_json::Value {
        let run = |prediction: &Prediction| serde_json::json!({ "wall_ns": prediction.wall.0, "io_ns": prediction.io.0 });
        let files: Vec<_> = self
            .files(trace)
            .iter()
            .map(|file| {
                serde_json::json!({
                    "path": file.path,
                    "calls": file.calls,
                    "bytes": file.bytes,
                    "recorded_ns": file.recorded.0,
                    "predicted_ns": file.predicted.0,
                })
            })
            .collect();
        serde_json::json!({
            "recorded": { "wall_ns": self.recorded.0, "io_ns": self.recorded_io.0 },
            "plain": run(&self.plain),
            "plain_by_model": run(&self.plain_by_model),
            "predicted": run(&self.prediction),
            "predicted_by_model": run(&self.by_model),
            "stored_ns": self.prediction.stored.map(Nanos::get),
            "model_bias": self.bias(),
            "staged_calls": self.prediction.staged_calls,
            "performed_calls": self.prediction.performed_calls,
            "event_hash": format!("{:016x}", self.prediction.event_hash),
            "files": files,
        })
    }
}

fn milliseconds(time: Nanos) -> String {
    format!("{:.3}", time.seconds() * 1e3)
}
