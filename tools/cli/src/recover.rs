//! `iolab recover`: makes the trace that a recording which was cut off could not make.

use crate::failure::Failure;
use crate::record::{RESOLUTION_NS, output, summarize};
use crate::trace_file;
use clap::Args;
use iolab_host::recording::{self, RecordingError};
use std::path::PathBuf;
use std::process::ExitCode;

/// Make a trace of what an interrupted `iolab record` left in its spool directory.
///
/// The directory stays; remove it when the trace is what you wanted.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The spool directory (`iolab-spool-…`, in `/dev/shm` or the directory for temporary files).
    directory: PathBuf,
    /// Where the trace goes; `-` is stdout. [default: run.iot]
    #[arg(short, long, value_name = "RUN.iot")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let output = output(arguments.output.as_deref(), &[])?;
    let path = output.path().to_owned();
    let mut trace =
        recording::recover(&arguments.directory).map_err(|error| not_recoverable(&error))?;
    trace.header.clock.resolution_ns = RESOLUTION_NS;
    trace_file::save_to(output, &trace)?;
    summarize(&trace, &path);
    Ok(ExitCode::SUCCESS)
}

fn not_recoverable(error: &RecordingError) -> Failure {
    Failure::new(error).hint(
        "give the spool directory (`iolab-spool-…`) that an interrupted `iolab record` left in \
         /dev/shm, in the directory for temporary files, or where its --spool said",
    )
}
