//! `iolab bench`: run a plan of access patterns, or one case given by flags.
//!
//! Flags and plan files end in the same place: flags are written into a plan as TOML, over what the
//! file says, and the plan is parsed once. IOR's letters mean what they mean there.

pub(crate) mod conclusion;
mod drawing;
pub(crate) mod flags;
pub(crate) mod launch;
mod report;
mod weights;

use crate::failure::Failure;
use crate::output::{self, Output};
use clap::{Args, Subcommand};
use conclusion::Conclusion;
use iolab_bench::{BenchError, Outcome, Plan, cell_table, template};
use iolab_report::bench::{csv, summary_table};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Measure access patterns: how fast, with which spread, and why.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// A plan in TOML; `--template` prints one. Without it the flags are the plan.
    plan: Option<PathBuf>,
    #[command(flatten)]
    flags: flags::Flags,
    /// Draw a pattern (`strided`, `hpf:array=8x8,grid=2x2`) instead of running it.
    #[arg(long, value_name = "PATTERN", help_heading = "Instead of running")]
    draw: Option<String>,
    /// Draw as SVG.
    #[arg(long, requires = "draw", help_heading = "Instead of running")]
    svg: bool,
    /// Print a commented plan.
    #[arg(long, help_heading = "Instead of running")]
    template: bool,
    /// List patterns and methods with their parameters.
    #[arg(long, help_heading = "Instead of running")]
    list: bool,
    /// Print the table of what runs with what, as Markdown.
    #[arg(long, help_heading = "Instead of running")]
    cells: bool,
    /// Print the result document as JSON instead of the table.
    #[arg(long, help_heading = "Results")]
    json: bool,
    /// Print all measurements as CSV instead of the table.
    #[arg(long, conflicts_with = "json", help_heading = "Results")]
    csv: bool,
    /// Also write the result document (JSON) to this file.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    output: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    Report(report::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        Some(Command::Report(arguments)) => report::run(arguments)?,
        None if arguments.template => say!("{}", template()),
        None if arguments.cells => say!("{}", cell_table()),
        None if arguments.list => say!("{}", drawing::list()),
        None => match &arguments.draw {
            Some(spec) => say!("{}", drawing::draw(spec, &arguments.flags, arguments.svg)?),
            None => return measure(arguments),
        },
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let plan = arguments.flags.plan(arguments.plan.as_deref())?;
    let table = !arguments.json && !arguments.csv;
    // Of an MPI job only rank 0 has a result to write.
    let first = launch::is_first();
    let output = arguments.output.as_deref().filter(|_| first);
    let output = Output::begin_if(output, "--output", &arguments.inputs())?;
    let records = plan.records.as_deref().filter(|_| first);
    // The run itself writes these.
    let records = Output::begin_if(records, "--records", &arguments.inputs())?;
    let outputs: Vec<&Output> = output.iter().chain(&records).collect();
    output::distinct(&outputs)?;
    apart(&outputs, &plan)?;
    // The run begins it anew, and nothing is left of this look.
    drop(records);
    let files = launch::test_files(&plan.target, launch::ranks(&plan), plan.files)?
        .held_in(launch::file_system(&plan).as_deref());
    let present =
        |outcome: &Outcome, output: Option<Output>| show(arguments, &plan, outcome, output);
    let conclusion = Conclusion::new(&plan, &files, output, &present);
    let outcome = launch::run(&plan, arguments.flags.threads, table, &files, &conclusion)?;
    // Only rank 0 has something to say.
    let Some(outcome) = outcome else { return Ok(ExitCode::SUCCESS) };
    conclusion.presented(&outcome)?;
    match outcome.invalid() {
        Some(why) => {
            Err(Failure::new(format!("[INVALID] {why}")).hint(match plan.files.existing {
                true => "was it written with this pattern, seed, header and number of ranks?",
                false => {
                    "the file system or the method did not keep the data; do not use the numbers"
                }
            }))
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

impl Arguments {
    /// What is read.
    fn inputs(&self) -> Vec<&Path> {
        self.plan.iter().map(PathBuf::as_path).collect()
    }
}

/// Results at the place of a test file would be removed with it, or it with them.
fn apart(outputs: &[&Output], plan: &Plan) -> Result<(), Failure> {
    let ranks = launch::ranks(plan);
    let names = plan.names(ranks);
    match outputs.iter().find(|output| names.iter().any(|name| output.is(name))) {
        Some(output) => Err(Failure::new(format!(
            "{} is a file of the benchmark and one of its results",
            output.path().display()
        ))
        .hint("name another target with -o, or another file for the results")),
        None => Ok(()),
    }
}

fn show(
    arguments: &Arguments,
    plan: &Plan,
    outcome: &Outcome,
    output: Option<Output>,
) -> Result<(), Failure> {
    let document = serde_json::to_string_pretty(outcome).map_err(Failure::new)?;
    // What cannot be written can still be read.
    let written = output.map_or(Ok(()), |output| output.write(document.as_bytes()));
    if arguments.json {
        say_line!("{document}");
    } else if arguments.csv {
        say!("{}", csv(&outcome.measurements));
    } else {
        for refused in &outcome.refused {
            say_line!(
                "not run: {} {} {}: {}",
                refused.temporal,
                refused.spatial,
                refused.method,
                refused.reason
            );
        }
        if plan.repetitions > 1 {
            say!("\n{}", summary_table(&outcome.summaries));
        }
    }
    if !arguments.json && !arguments.csv {
        outcome.surroundings.prices.iter().for_each(|prices| say_line!("{}", prices.sentence()));
    }
    outcome.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    written?;
    if outcome.measurements.is_empty() {
        let reason = outcome.refused.first().map_or("nothing to do", |refused| &refused.reason);
        return Err(Failure::new(format!("no case could be run: {reason}"))
            .hint("see docs/howto/bench-cells.md for what runs with what"));
    }
    Ok(())
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Failure {
        Failure::new(&error).hint(error.hint())
    }
}
