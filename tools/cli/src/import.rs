//! `iolab import`: what another tool recorded, as a trace.

use crate::failure::Failure;
use crate::trace_file;
use clap::{Args, ValueEnum};
use iolab_trace::import;
use std::path::PathBuf;
use std::process::ExitCode;

/// Make a trace of what another tool recorded; what was inferred stands in its header.
#[derive(Args)]
pub(crate) struct Arguments {
    /// What the other tool wrote.
    file: PathBuf,
    /// Which tool.
    #[arg(long)]
    from: Format,
    /// Where the trace goes.
    #[arg(short, long, value_name = "RUN.iot", default_value = "run.iot")]
    output: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// The output of `strace -f -T -ttt -o FILE COMMAND`.
    Strace,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let place = arguments.file.display();
    let bytes = std::fs::read(&arguments.file)
        .map_err(|error| Failure::new(format!("{place}: {error}")))?;
    let text = String::from_utf8_lossy(&bytes);
    let trace = match arguments.from {
        Format::Strace => import::strace(&text).map_err(|error| {
            Failure::new(format!("{place}: {error}"))
                .hint("record with `strace -f -T -ttt -o FILE COMMAND`")
        })?,
    };
    trace_file::save(&arguments.output, &trace)?;
    let (calls, files) = (trace.events.len(), trace.header.files.len());
    eprintln!("iolab: {calls} calls on {files} files in {}", arguments.output.display());
    Ok(ExitCode::SUCCESS)
}
