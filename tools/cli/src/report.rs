//! `iolab report`: what a trace says about a run, for people, programs and browsers.

use crate::env::sh_word;
use crate::failure::Failure;
use crate::output::Output;
use crate::{say, trace_file};
use clap::{Args, ValueEnum};
use iolab_report::{
    Analysis, CountedReport, Report, counted_beside_trace, counted_csv, counted_page,
    counted_sections, counted_text, csv, report_page_with, text,
};
use iolab_traces::darshan;
use serde::Serialize;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Explain a trace: totals, access patterns, and what is wrong with its I/O.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The trace, as `iolab record` writes it, or what another tool recorded; of Darshan also a log that only counts.
    trace: PathBuf,
    /// Print everything as one JSON document.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the files as a table of comma-separated values.
    #[arg(long)]
    csv: bool,
    /// Print every dataset of HDF5 and variable of NetCDF, with what its calls come to in the layers below.
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

/// A report, and what a log of Darshan counted besides.
#[derive(Serialize)]
struct WithCounters<'a> {
    #[serde(flatten)]
    report: &'a Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    counters: Option<&'a CountedReport>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let counted = match darshan::is_log(&arguments.trace) {
        true => Some(darshan::counted(&arguments.trace)?),
        false => None,
    };
    let counters = counted.as_ref().map(CountedReport::of);
    if let Some(report) = counters.as_ref().filter(|_| counted.is_some_and(|it| !it.has_accesses)) {
        return run_counted(arguments, report);
    }
    let counters = counters.as_ref();
    let report = match &arguments.html {
        Some(page) => write_page(&arguments.trace, page, counters)?,
        None => analyse(&arguments.trace)?,
    };
    if let Some(By::Dataset) = arguments.by {
        let datasets = text::by_dataset(&report).ok_or_else(|| {
            Failure::new(format!("{} has no calls of HDF5 or NetCDF", arguments.trace.display()))
                .hint("record them: iolab record --layer posix,stdio,hdf5,netcdf -- COMMAND")
        })?;
        say::text(datasets.trim_start_matches('\n'))?;
        return Ok(ExitCode::SUCCESS);
    }
    let view = sh_word(&arguments.trace).map(|trace| format!("iolab view {trace}"));
    let style = text::Style { colour: wants_colour(), view: view.as_deref() };
    say::text(&match (arguments.json, arguments.csv) {
        (true, _) => json(&WithCounters { report: &report, counters })?,
        (_, true) => csv::files(&report),
        _ => {
            let counters = counters.map(|counters| counted_beside_trace(counters, style));
            text::write(&report, style) + &counters.unwrap_or_default()
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The report of a log that only counts.
fn run_counted(arguments: &Arguments, report: &CountedReport) -> Result<ExitCode, Failure> {
    if arguments.by.is_some() {
        return Err(Failure::new(format!("{} has no single calls", arguments.trace.display()))
            .hint("leave --by out: the report has a row for each dataset that Darshan counted"));
    }
    if let Some(page) = &arguments.html {
        Output::begin(page, "--html", &[&arguments.trace])?.write(&counted_page(report))?;
        eprintln!("wrote {}", page.display());
    }
    say::text(&match (arguments.json, arguments.csv) {
        (true, _) => json(report)?,
        (_, true) => counted_csv(report),
        _ => counted_text(report, text::Style { colour: wants_colour(), view: None }),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Goes through the trace piece by piece; memory does not grow with the number of events, but for
/// simulated clusters, whose rows hang together.
pub(crate) fn analyse(path: &Path) -> Result<Report, Failure> {
    let source = trace_file::source(path)?;
    if Analysis::needs_all(source.header()) {
        return Ok(Analysis::of(&source.into_trace()?));
    }
    let mut analysis = Analysis::new(source.header().clone());
    source.visit(|event| analysis.observe(event))?;
    Ok(analysis.finish())
}

/// The timeline of a page needs all events at once.
fn write_page(
    path: &Path,
    page: &Path,
    counters: Option<&CountedReport>,
) -> Result<Report, Failure> {
    let output = Output::begin(page, "--html", &[path])?;
    let trace = trace_file::load(path)?;
    let report = Analysis::of(&trace);
    let counters = counters.map(counted_sections).unwrap_or_default();
    output.write(&report_page_with(&report, &trace, counters))?;
    eprintln!("wrote {}", page.display());
    Ok(report)
}

fn json(report: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(report).map_err(Failure::new)?;
    Ok(text + "\n")
}

fn wants_colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}
