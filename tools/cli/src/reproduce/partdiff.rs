//! `iolab reproduce partdiff`: the simulation of a real program of 2009, server by server.

use crate::failure::Failure;
use crate::platform_file::read_platform;
use crate::ties::Ties;
use crate::{parallel, say, trace_file};
use clap::Args;
use iolab_report::csv::Plain;
use iolab_sim::band::{Band, median_place};
use iolab_sim::cluster::{Order, RunError, ServerTotals};
use iolab_sim::evaluation::partdiff::{self, CACHES, DEVIATIONS, REAL_SECONDS, ServerRow};
use iolab_sim::evaluation::{Conduct, Run};
use iolab_sim::platform::Platform;
use iolab_sim::workload::recorded::Recording;
use iolab_trace::Trace;
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Directory with a project of HDTrace, or a trace; by itself the bundled one of 2009
    trace: Option<PathBuf>,
    /// Platform with another cluster: a preset or a TOML file
    #[arg(long, value_name = "P.toml")]
    platform: Option<String>,
    /// What decides among simultaneous events
    #[arg(long, value_enum, default_value = "documented")]
    order: crate::ties::OrderName,
    #[command(flatten)]
    ties: Ties,
    /// Print every server as CSV, with the columns of the published table
    #[arg(long)]
    csv: bool,
    /// Print everything as JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
}

/// One cache configuration: the median run, and the published rows if the trace is the bundled one.
struct Outcome {
    cache: &'static str,
    run: Run,
    published: Vec<ServerRow>,
    band: Band,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let trace = match &arguments.trace {
        Some(path) => load(path)?,
        None => partdiff::trace(),
    };
    let recording = Recording::of(&trace)?;
    let platform = match &arguments.platform {
        Some(name) => read_platform(name)?,
        None => partdiff::platform(),
    };
    let outcomes = CACHES
        .iter()
        .map(|cache| outcome(arguments, &recording, &platform, cache))
        .collect::<Result<Vec<_>, _>>()?;
    say::text(&match (arguments.json, arguments.csv) {
        (true, _) => format!("{}\n", json(&outcomes)),
        (_, true) => csv(&outcomes),
        _ => text(&outcomes),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A trace, or the one project in a directory.
fn load(path: &Path) -> Result<Trace, Failure> {
    if !path.is_dir() {
        return trace_file::load(path);
    }
    let entries = std::fs::read_dir(path)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    let projects = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let projects: Vec<PathBuf> = projects.filter(|path| iolab_traces::is_project(path)).collect();
    match projects.as_slice() {
        [project] => trace_file::load(project),
        found => Err(Failure::new(format!(
            "{}: {} projects of HDTrace in it, not one",
            path.display(),
            found.len()
        ))
        .hint("name the .proj file itself")),
    }
}

fn outcome(
    arguments: &Arguments,
    recording: &Recording,
    platform: &Platform,
    cache: &'static str,
) -> Result<Outcome, RunError> {
    let order = Order::from(arguments.order);
    let seeds = arguments.ties.of(order);
    let runs = parallel::run_all(&seeds, parallel::all_cores(), |&tie_seed| {
        partdiff::run(recording, platform, cache, Conduct { order, tie_seed })
    });
    let mut runs = runs.into_iter().collect::<Result<Vec<Run>, RunError>>()?;
    let seconds: Vec<f64> = runs.iter().map(|run| run.seconds).collect();
    let band = Band::of(&seconds).expect("there is at least one seed");
    let run = runs.swap_remove(median_place(&seconds).expect("there is at least one seed"));
    let is_published = arguments.trace.is_none() && arguments.platform.is_none();
    let published = if is_published { partdiff::published(cache) } else { Vec::new() };
    Ok(Outcome { cache, run, published, band })
}

impl Outcome {
    fn published_seconds(&self) -> Option<f64> {
        self.published.first().map(|row| row.seconds)
    }

    fn differs(&self) -> Option<f64> {
        self.published_seconds().map(|published| self.run.seconds / published - 1.0)
    }
}

fn text(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        write_outcome(&mut text, outcome);
    }
    if outcomes.iter().any(|outcome| !outcome.published.is_empty()) {
        let _ = writeln!(text, "The real run took {REAL_SECONDS} s.");
        let _ = writeln!(text, "\nWhat differs from the published table, and why:");
        for deviation in DEVIATIONS {
            let _ = writeln!(text, "- {deviation}");
        }
    }
    text
}

fn write_outcome(text: &mut String, outcome: &Outcome) {
    let Band { count, low, median, high } = outcome.band;
    let _ = write!(text, "{}: {median:.3} s", outcome.cache);
    if count > 1 {
        let _ = write!(text, " ({low:.3} to {high:.3} over {count} orders)");
    }
    if let (Some(published), Some(differs)) = (outcome.published_seconds(), outcome.differs()) {
        let _ = write!(text, ", published {published:.2} s ({:+.1} %)", differs * 100.0);
    }
    let titles = ["server", "accesses", "no seek", "near", "far", "bytes"];
    let _ = writeln!(text);
    let [server, rest @ ..] = titles;
    let _ = writeln!(text, "  {server:>6}{}", line(rest.map(|title| (title.to_owned(), None))));
    for (index, server) in outcome.run.servers.iter().enumerate() {
        let published = outcome.published.get(index).map(cells);
        let cell = |column: usize| {
            (ours(server)[column].to_string(), published.map(|cells| cells[column].to_string()))
        };
        let _ = writeln!(text, "  {:>6}{}", index + 1, line(std::array::from_fn(cell)));
    }
    let _ = writeln!(text);
}

/// Cells with the published value in brackets beside each.
fn line(cells: [(String, Option<String>); 5]) -> String {
    const WIDTHS: [usize; 5] = [9, 9, 9, 9, 11];
    let mut line = String::new();
    for ((ours, published), width) in cells.into_iter().zip(WIDTHS) {
        let published = published.map_or(String::new(), |value| format!("({value})"));
        let _ = write!(line, " {ours:>width$} {published:<width$}");
    }
    line.trim_end().to_owned()
}

fn ours(server: &ServerTotals) -> [u64; 5] {
    let bytes = server.device.read_bytes + server.device.written_bytes;
    let (no_seek, near) = (server.device.no_seek_count, server.device.near_count);
    [server.device.access_count(), no_seek, near, server.device.far_count, bytes]
}

fn cells(row: &ServerRow) -> [u64; 5] {
    [row.accesses, row.no_seek, row.near, row.far, row.bytes]
}

/// A line of the CSV.
#[derive(Serialize)]
struct Row {
    cache_layer: &'static str,
    server: usize,
    accesses: u64,
    no_seek: u64,
    near: u64,
    far: u64,
    bytes: u64,
    runtime_seconds: Plain,
}

fn csv(outcomes: &[Outcome]) -> String {
    let rows = outcomes.iter().flat_map(|outcome| {
        outcome.run.servers.iter().zip(1..).map(|(totals, server)| {
            let [accesses, no_seek, near, far, bytes] = ours(totals);
            let runtime_seconds = Plain(outcome.run.seconds);
            let cache_layer = outcome.cache;
            Row { cache_layer, server, accesses, no_seek, near, far, bytes, runtime_seconds }
        })
    });
    iolab_report::csv::rows(rows)
}

fn json(outcomes: &[Outcome]) -> serde_json::Value {
    let row = |[accesses, no_seek, near, far, bytes]: [u64; 5]| {
        serde_json::json!({
            "accesses": accesses, "no_seek": no_seek, "near": near, "far": far, "bytes": bytes,
        })
    };
    let one = |outcome: &Outcome| {
        serde_json::json!({
            "cache_layer": outcome.cache,
            "seconds": outcome.run.seconds,
            "published_seconds": outcome.published_seconds(),
            "differs": outcome.differs(),
            "band": [outcome.band.low, outcome.band.median, outcome.band.high],
            "tie_seeds": outcome.band.count,
            "event_count": outcome.run.event_count,
            "servers": outcome.run.servers.iter().map(|one| row(ours(one))).collect::<Vec<_>>(),
            "published_servers":
                outcome.published.iter().map(|one| row(cells(one))).collect::<Vec<_>>(),
        })
    };
    serde_json::json!({
        "real_seconds": REAL_SECONDS,
        "configurations": outcomes.iter().map(one).collect::<Vec<_>>(),
        "deviations": DEVIATIONS,
    })
}
