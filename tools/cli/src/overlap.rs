//! `iolab overlap`: what non-blocking I/O gains when there is something to compute.
//!
//! Flags and plan files end in the same place, as with `iolab bench`: flags are written into a plan
//! as TOML, which is parsed once.

mod flags;
mod report;

use crate::bench::launch::on_ranks;
use crate::failure::Failure;
use crate::{output, trace_file};
use clap::{Args, Subcommand};
use iolab_backend::uring_works;
use iolab_bench::{
    Abilities, Leftovers, OverlapCase, OverlapOutcome, OverlapPlan, OverlapPoint, overlap,
    overlap_csv, overlap_header, overlap_plot, overlap_row, overlap_template,
};
use iolab_comm::launch;
use iolab_trace::Trace;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Measure what overlapping I/O with computation gains: non-blocking against blocking.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// A plan in TOML; `--template` prints one. Without it the flags are the plan.
    plan: Option<PathBuf>,
    #[command(flatten)]
    flags: flags::Flags,
    /// Print a commented plan.
    #[arg(long, help_heading = "Instead of running")]
    template: bool,
    /// Print the result document as JSON instead of the table.
    #[arg(long, help_heading = "Results")]
    json: bool,
    /// Print all points as CSV instead of the table.
    #[arg(long, conflicts_with = "json", help_heading = "Results")]
    csv: bool,
    /// Also write the result document (JSON) to this file.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    output: Option<PathBuf>,
    /// Write the curve against theory to this file, as SVG.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    plot: Option<PathBuf>,
    /// Write a trace of the measured phases to this file, for `iolab view`.
    #[arg(long, value_name = "OUT.iot", help_heading = "Results")]
    trace: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    Report(report::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        Some(Command::Report(arguments)) => report::run(arguments)?,
        None if arguments.template => say!("{}", overlap_template()),
        None => measure(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(arguments: &Arguments) -> Result<(), Failure> {
    let plan = arguments.flags.plan(arguments.plan.as_deref())?;
    if launch().is_none_or(|launch| launch.rank == 0) {
        for (path, flag) in arguments.files() {
            output::writable(path, flag)?;
        }
    }
    // Only rank 0 has something to say.
    match on_all_ranks(arguments, &plan)? {
        Some((outcome, trace)) => show(arguments, &outcome, trace.as_ref()),
        None => Ok(()),
    }
}

impl Arguments {
    /// What is to be written, with the flags that say so.
    fn files(&self) -> impl Iterator<Item = (&Path, &'static str)> {
        let files = [(&self.output, "--output"), (&self.plot, "--plot"), (&self.trace, "--trace")];
        files.into_iter().filter_map(|(path, flag)| Some((path.as_deref()?, flag)))
    }

    fn says_a_table(&self) -> bool {
        !self.json && !self.csv
    }
}

fn on_all_ranks(
    arguments: &Arguments,
    plan: &OverlapPlan,
) -> Result<Option<(OverlapOutcome, Option<Trace>)>, Failure> {
    let abilities = Abilities { mpi: launch().is_some(), uring: uring_works(), platform: None };
    let leftovers = Some(Leftovers::at(&plan.target, 0));
    on_ranks(plan.ranks, false, leftovers, &|comm| {
        let first = Cell::new(true);
        let observe = |case: &OverlapCase, point: &OverlapPoint| {
            if arguments.says_a_table() {
                if first.replace(false) {
                    say_line!("{}", overlap_header());
                }
                say_line!("{}", overlap_row(&case.title(), point));
            }
        };
        Ok(overlap(plan, comm, &abilities, arguments.trace.is_some(), &observe)?)
    })
}

fn show(
    arguments: &Arguments,
    outcome: &OverlapOutcome,
    trace: Option<&Trace>,
) -> Result<(), Failure> {
    let document = serde_json::to_string_pretty(outcome).map_err(Failure::new)?;
    if let Some(path) = &arguments.output {
        output::write(path, "--output", document.as_bytes())?;
    }
    if let Some(path) = &arguments.plot {
        let plot = overlap_plot(std::slice::from_ref(outcome));
        output::write(path, "--plot", plot.as_bytes())?;
    }
    if let (Some(path), Some(trace)) = (&arguments.trace, trace) {
        trace_file::save(path, trace)?;
    }
    match () {
        () if arguments.json => say_line!("{document}"),
        () if arguments.csv => say!("{}", overlap_csv(outcome)),
        () => print_summary(outcome),
    }
    outcome.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    match (outcome.points.is_empty(), outcome.refused.first()) {
        (true, Some(refused)) => Err(Failure::new(&refused.reason)
            .hint("`iolab bench --list` shows all methods, docs/howto/overlap.md their ways")),
        _ => Ok(()),
    }
}

fn print_summary(outcome: &OverlapOutcome) {
    if outcome.points.is_empty() {
        return; // The reason is the error that follows.
    }
    say!("\n{}", report::summary(outcome));
    for refused in &outcome.refused {
        say_line!("not run: {} {}: {}", refused.method, refused.temporal, refused.reason);
    }
}
