//! `iolab recover`: does at last what an `iolab record` or `iolab run` that was killed could not:
//! makes the trace, or writes out what the programs' strategies still held.

use crate::failure::Failure;
use crate::record::{Patience, RESOLUTION_NS, output, summarize, writing};
use crate::trace_file;
use clap::Args;
use iolab_host::recording::{self, RecordingError};
use iolab_host::run;
use std::path::PathBuf;
use std::process::ExitCode;

/// Make a trace of what an interrupted `iolab record` left in its spool directory, or write out
/// what the programs of an interrupted `iolab run` still held.
///
/// A spool directory stays; remove it when the trace is what you wanted. The directory of a run
/// goes when all is written out.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The spool directory (`iolab-spool-…`) or the run's (`iolab-run-…`), in `/dev/shm` or the
    /// directory for temporary files.
    directory: PathBuf,
    /// Where the trace goes; `-` is stdout. [default: run.iot]
    #[arg(short, long, value_name = "RUN.iot")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(ended) = run::recover(&arguments.directory) {
        let left = ended.map_err(|error| {
            Failure::new(error).hint("recover as the user whose run it was, with the same iolab")
        })?;
        return written_out(arguments, &left);
    }
    let output = output(arguments.output.as_deref(), &[])?;
    let patience = Patience::begin("making the trace of the raw records".to_owned());
    let mut trace =
        recording::recover(&arguments.directory).map_err(|error| not_recoverable(&error))?;
    trace.header.clock.resolution_ns = RESOLUTION_NS;
    patience.step(writing(&trace));
    let place = trace_file::save_to(output, &trace)?;
    drop(patience);
    summarize(&trace, &place);
    Ok(ExitCode::SUCCESS)
}

fn not_recoverable(error: &RecordingError) -> Failure {
    Failure::new(error).hint(
        "give the spool directory (`iolab-spool-…`) that an interrupted `iolab record` left in \
         /dev/shm, in the directory for temporary files, or where its --spool said",
    )
}

fn written_out(arguments: &Arguments, left: &[String]) -> Result<ExitCode, Failure> {
    if left.is_empty() {
        eprintln!("iolab: everything that was held is written out");
        return Ok(ExitCode::SUCCESS);
    }
    let kept = format!("the rest stays in {}", arguments.directory.display());
    Err(Failure::new(left.join("; ")).hint(format!("mend that and try again; {kept}")))
}
