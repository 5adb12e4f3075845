//! `iolab replay`: the recorded calls once more, on scratch files, checked call by call.

use crate::failure::Failure;
use crate::output::Output;
use crate::say::number_of;
use crate::storage_block;
use crate::trace_file;
use clap::Args;
use iolab_policy::insitu::{Selection, stacking};
use iolab_replay::{Pace, ReplayError, Settings, Summary, replay};
use iolab_report::prediction::counted;
use iolab_trace::{Header, Origin, Trace};
use iolab_vocab::format_bytes;
use std::path::PathBuf;
use std::process::ExitCode;

/// Reissue the calls of a trace on scratch files and verify that each comes out as recorded:
/// bytes, offsets, positions, errors. The first call that differs is named, and the exit code is
/// not 0. Nothing outside the scratch directory is touched.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The trace
    trace: PathBuf,
    /// Scratch directory, empty or new; the files of the trace are made below it
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
    /// Strategies between the calls and the files, as for `iolab run`; may be repeated, top first
    #[arg(long, value_name = "STRATEGY")]
    apply: Vec<String>,
    /// Issue each call as soon as the one before it is done (the default)
    #[arg(long, conflicts_with = "timed")]
    as_fast_as_possible: bool,
    /// Issue no call before its recorded time
    #[arg(long)]
    timed: bool,
    /// Write what the strategies decided as a trace
    #[arg(long, value_name = "FILE.iot")]
    decisions: Option<PathBuf>,
    /// Allow a directory that has something in it; files of the same names are replaced
    #[arg(long)]
    into_used_directory: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let decisions = arguments.decisions.as_deref();
    let decisions = Output::begin_if(decisions, "--decisions", &[&arguments.trace])?;
    let block = |_: &Selection| Some(storage_block::of_directory(&arguments.into));
    let settings = Settings {
        directory: arguments.into.clone(),
        into_used_directory: arguments.into_used_directory,
        strategies: crate::run::parse_for_scratch(&arguments.apply, &block)?,
        pace: if arguments.timed { Pace::Timed } else { Pace::AsFastAsPossible },
    };
    let mut trace = trace_file::load(&arguments.trace)?;
    let summary = match replay(&trace, &settings) {
        Ok(summary) => summary,
        Err(error) => return different(arguments, &error),
    };
    if let Some(output) = decisions {
        let header = std::mem::take(&mut trace.header);
        let header = Header {
            origin: Origin::Replayed,
            strategies: settings.strategies.iter().map(|spec| spec.text.clone()).collect(),
            given_up: stacking::given_up(&settings.strategies),
            ..header
        };
        trace_file::save_to(
            output,
            &Trace { header, events: summary.decisions.clone(), ..Trace::default() },
        )?;
    }
    match arguments.json {
        true => say_line!("{:#}", as_json(&summary)),
        false => print(&summary),
    }
    Ok(ExitCode::SUCCESS)
}

fn different(arguments: &Arguments, error: &ReplayError) -> Result<ExitCode, Failure> {
    if let (true, Some(difference)) = (arguments.json, error.difference()) {
        let value = serde_json::json!({
            "identical": false,
            "row": difference.row,
            "call": difference.call,
            "what": difference.what,
            "recorded": difference.recorded,
            "replayed": difference.replayed,
        });
        say_line!("{value:#}");
    }
    let failure = Failure::new(error);
    Err(match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    })
}

fn as_json(summary: &Summary) -> serde_json::Value {
    serde_json::json!({
        "identical": true,
        "processes": summary.processes,
        "threads": summary.threads,
        "calls": summary.calls,
        "read_bytes": summary.read_bytes,
        "written_bytes": summary.written_bytes,
        "skipped": summary.skipped,
        "decisions": summary.decisions.len(),
        "counted": counted(&summary.counted),
        "elapsed_ns": summary.elapsed.0,
        "notes": summary.notes,
    })
}

fn print(summary: &Summary) {
    say_line!(
        "{} of {} in {} came out as recorded, in {:.3} s",
        number_of(summary.calls, "call", "calls"),
        number_of(summary.threads, "thread", "threads"),
        number_of(summary.processes, "process", "processes"),
        summary.elapsed.seconds()
    );
    say_line!(
        "read {}, wrote {}",
        format_bytes(summary.read_bytes),
        format_bytes(summary.written_bytes)
    );
    for (reason, count) in &summary.skipped {
        say_line!("not reissued: {count} calls {reason}");
    }
    for line in summary.counted.lines() {
        say_line!("{line}");
    }
    for note in &summary.notes {
        say_line!("note: {note}");
    }
}
