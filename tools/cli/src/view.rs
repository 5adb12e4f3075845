//! `iolab view`: traces as a timeline, in one HTML file that opens on double click.

use crate::failure::Failure;
use crate::output::{Kind, Output};
use crate::trace_file;
use clap::Args;
use iolab_report::page::{compare, render};
use iolab_trace::Trace;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write a page with the timelines of one or more traces on one time axis.
///
/// The page is one file that needs no network; open it with any browser.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Traces, drawn in this order
    #[arg(required = true, value_name = "RUN.iot")]
    traces: Vec<PathBuf>,
    /// Where the page goes; `-` is stdout. Default: beside the first trace, ending in .html
    #[arg(short, long, value_name = "PAGE.html")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let first = arguments.traces.first();
    let beside = first.map_or_else(PathBuf::new, |path| path.with_extension("html"));
    let inputs: Vec<&Path> = arguments.traces.iter().map(PathBuf::as_path).collect();
    let given = arguments.output.as_deref();
    let output = Output::named_or(given, &beside, "-o PAGE.html", Kind::Page, &inputs)?;
    let traces: Vec<Trace> =
        arguments.traces.iter().map(|path| trace_file::load(path)).collect::<Result<_, _>>()?;
    let runs: Vec<(String, &Trace)> =
        arguments.traces.iter().map(|path| name_of(path)).zip(&traces).collect();
    write(output, &render(&compare(&runs)))?;
    Ok(ExitCode::SUCCESS)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn write(output: Output, page: &[u8]) -> Result<(), Failure> {
    let path = output.path().to_owned();
    output.write(page)?;
    if path != Path::new("-") {
        say_line!("{}", path.display());
    }
    Ok(())
}
