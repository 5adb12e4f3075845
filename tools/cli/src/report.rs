//! `iolab report`: what a trace says about a run, for people, programs and browsers.

use crate::failure::Failure;
use crate::output::Output;
use crate::{say, trace_file};
use clap::{Args, ValueEnum};
use iolab_report::{Analysis, Report, csv, report_page, text};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Explain a trace: totals, access patterns, and what is wrong with its I/O.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The trace, as `iolab record` writes it.
    trace: PathBuf,
    /// Print everything as one JSON document.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the files as a table of comma-separated values.
    #[arg(long)]
    csv: bool,
    /// Print every dataset of HDF5, with what its calls come to in the layers below.
    #[arg(long, value_name = "WHAT", conflicts_with_all = ["json", "csv"])]
    by: Option<By>,
    /// Also write a page with findings, charts and timeline: one file that opens on double click.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// What a report can be about alone.
#[derive(Clone, Copy, ValueEnum)]
enum By {
    Dataset,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let report = match &arguments.html {
        Some(page) => write_page(&arguments.trace, page)?,
        None => analyse(&arguments.trace)?,
    };
    if let Some(By::Dataset) = arguments.by {
        let datasets = text::by_dataset(&report).ok_or_else(|| {
            Failure::new(format!("{} has no calls of HDF5", arguments.trace.display()))
                .hint("record them: iolab record --layer posix,stdio,hdf5 -- COMMAND")
        })?;
        say::text(datasets.trim_start_matches('\n'))?;
        return Ok(ExitCode::SUCCESS);
    }
    say::text(&match (arguments.json, arguments.csv) {
        (true, _) => json(&report)?,
        (_, true) => csv::files(&report),
        _ => text::write(&report, text::Style { colour: wants_colour() }),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Goes through the trace piece by piece; memory does not grow with the number of events.
pub(crate) fn analyse(path: &Path) -> Result<Report, Failure> {
    let source = trace_file::source(path)?;
    let mut analysis = Analysis::new(source.header().clone());
    source.visit(|event| analysis.observe(event))?;
    Ok(analysis.finish())
}

/// The timeline of a page needs all events at once.
fn write_page(path: &Path, page: &Path) -> Result<Report, Failure> {
    let output = Output::begin(page, "--html", &[path])?;
    let trace = trace_file::load(path)?;
    let report = Analysis::of(&trace);
    output.write(&report_page(&report, &trace))?;
    eprintln!("wrote {}", page.display());
    Ok(report)
}

fn json(report: &Report) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(report).map_err(Failure::new)?;
    Ok(text + "\n")
}

fn wants_colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}
