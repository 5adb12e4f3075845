//! `iolab overlap`: what non-blocking I/O gains when there is something to compute.
//!
//! Flags and plan files end in the same place, as with `iolab bench`: flags are written into a plan
//! as TOML, which is parsed once.

mod flags;
mod report;

use crate::bench::conclusion::{Conclusion, Places};
use crate::bench::launch::{on_ranks, test_files};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::trace_file;
use clap::{Args, Subcommand};
use iolab_backend::uring_works;
use iolab_bench::{
    Abilities, KeptRecords, OverlapPlan, OverlapProgress, TestFiles, overlap, overlap_template,
};
use iolab_comm::launch;
use iolab_report::overlap::{
    OverlapOutcome, overlap_csv, overlap_header, overlap_plot, overlap_row, overlap_text,
};
use iolab_trace::Trace;
use std::cell::Cell;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

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
    let mut outputs = Outputs::default();
    if launch().is_none_or(|launch| launch.rank == 0) {
        outputs = arguments.outputs(&plan)?;
    }
    let ranks = launch().map_or(plan.ranks, |launch| launch.ranks);
    let files = test_files(&plan.target, ranks, plan.files)?;
    let drawn = Mutex::new(None);
    let present = |outcome: &OverlapOutcome, outputs: Outputs| {
        let trace = drawn.lock().unwrap_or_else(PoisonError::into_inner);
        show(arguments, outcome, trace.as_ref(), outputs)
    };
    let conclusion = Conclusion::new(&plan, &files, outputs, &present);
    // Only rank 0 has something to say.
    let Some((outcome, trace)) = on_all_ranks(arguments, &plan, &files, &conclusion)? else {
        return Ok(());
    };
    *drawn.lock().unwrap_or_else(PoisonError::into_inner) = trace;
    conclusion.presented(&outcome)
}

/// What a run writes.
#[derive(Clone, Default)]
struct Outputs {
    document: Option<Output>,
    plot: Option<Output>,
    trace: Option<Output>,
}

impl Places for Outputs {
    fn leave_out_written(&mut self) {
        let all = [&mut self.document, &mut self.plot, &mut self.trace];
        all.into_iter().for_each(Places::leave_out_written);
    }
}

impl Arguments {
    /// What is to be written; seen to be possible before an hour of measuring.
    fn outputs(&self, plan: &OverlapPlan) -> Result<Outputs, Failure> {
        let mut inputs = vec![plan.target.as_path()];
        inputs.extend(self.plan.as_deref());
        let begin = |path: &Option<PathBuf>, flag| Output::begin_if(path.as_deref(), flag, &inputs);
        let outputs = Outputs {
            document: begin(&self.output, "--output")?,
            plot: begin(&self.plot, "--plot")?,
            trace: begin(&self.trace, "--trace")?,
        };
        let all = [&outputs.document, &outputs.plot, &outputs.trace];
        output::distinct(&all.into_iter().flatten().collect::<Vec<_>>())?;
        Ok(outputs)
    }

    fn says_a_table(&self) -> bool {
        !self.json && !self.csv
    }
}

fn on_all_ranks(
    arguments: &Arguments,
    plan: &OverlapPlan,
    files: &TestFiles,
    conclusion: &Conclusion<OverlapOutcome, Outputs>,
) -> Result<Option<(OverlapOutcome, Option<Trace>)>, Failure> {
    let abilities =
        Abilities { mpi: launch().is_some(), uring: uring_works(), ..Abilities::default() };
    on_ranks(plan.ranks, false, conclusion, &|comm| {
        let first = Cell::new(true);
        let observe = |progress: OverlapProgress| match progress {
            OverlapProgress::Begun(outcome) => conclusion.begin(outcome, KeptRecords::default()),
            OverlapProgress::Measured(case, point) => {
                conclusion.add(point);
                if !arguments.says_a_table() {
                    return;
                }
                if first.replace(false) {
                    say_line!("{}", overlap_header());
                }
                say_line!("{}", overlap_row(&plan.title_of(case), point));
            }
        };
        Ok(overlap(plan, comm, &abilities, files, arguments.trace.is_some(), &observe)?)
    })
}

fn show(
    arguments: &Arguments,
    outcome: &OverlapOutcome,
    trace: Option<&Trace>,
    outputs: Outputs,
) -> Result<(), Failure> {
    let document = serde_json::to_string_pretty(outcome).map_err(Failure::new)?;
    if let Some(output) = outputs.document {
        output.write(document.as_bytes())?;
    }
    if let Some(output) = outputs.plot {
        output.write(overlap_plot(std::slice::from_ref(outcome)).as_bytes())?;
    }
    if let (Some(output), Some(trace)) = (outputs.trace, trace) {
        trace_file::save_to(output, trace)?;
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
    say!("\n{}", overlap_text(outcome));
    for refused in &outcome.refused {
        say_line!("not run: {} {}: {}", refused.method, refused.temporal, refused.reason);
    }
}
