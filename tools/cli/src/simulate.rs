//! `iolab simulate`: a recorded program or a described workload in virtual time, on a platform.

mod arguments;
mod choices;
mod faults;
pub(crate) mod predicted;
mod show;
mod subject;
pub(crate) mod workload;

use crate::failure::Failure;
use crate::output::Output;
use crate::{say, trace_file};
use arguments::refuse;
use iolab_policy::insitu::StrategySpec;
use iolab_report::prediction::Summary;
use iolab_sim::cluster::{Order, RunError};
use iolab_sim::guest::{Durations, Settings, io_of};
use iolab_sim::platform::Platform;
use iolab_sim::workload::recorded::{self, PosixCalls, Recording};
use iolab_trace::{Layer, Trace};
use iolab_vocab::{Nanos, Refusal, Seed};
use std::path::Path;
use std::process::ExitCode;
use subject::Subject;

pub(crate) use arguments::Arguments;

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        Refusal::from(error).into()
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
    let subject = Subject::Recorded(recording, recorded_wall(trace));
    workload::run_subject(arguments, (&subject, Some(trace)), platform)
}

fn run_trace(arguments: &Arguments, path: &Path) -> Result<ExitCode, Failure> {
    let trace = trace_file::load(path)?;
    let platform = arguments.platform()?;
    if recorded::has_mpi(&trace) && !is_of_posix(&trace, &platform) {
        return run_recording(arguments, &trace, &platform);
    }
    arguments.refuse_cluster_flags()?;
    let apply = arguments.strategies(&platform)?;
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
