//! `iolab recover`: makes the trace that a recording which was cut off could not make.

use crate::failure::Failure;
use crate::record::{RESOLUTION_NS, output, spool_failure, summarize};
use crate::trace_file;
use clap::Args;
use iolab_host::recording;
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
        recording::recover(&arguments.directory).map_err(|error| spool_failure(&error))?;
    trace.header.clock.resolution_ns = RESOLUTION_NS;
    trace_file::save_to(output, &trace)?;
    summarize(&trace, &path);
    Ok(ExitCode::SUCCESS)
}
