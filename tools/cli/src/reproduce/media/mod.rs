//! `iolab reproduce hdd-vs-ssd`: the study that the evaluation asks for as future work. All its
//! cases on hard disks and on another medium, which of its conclusions survive, and the page of
//! findings with every figure from this run.

mod claims;
mod figures;
mod findings;

use super::campaign::{Job, run_all};
use super::published;
use crate::failure::Failure;
use crate::output;
use clap::Args;
use iolab_sim::cluster::Order;
use iolab_sim::evaluation::{Case, Conduct, mean_and_deviation};
use iolab_sim::platform::Platform;
use iolab_vocab::Seed;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Only cases whose `test,cache_layer,block_bytes,op` contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Platform with the other medium: a preset or a TOML file
    #[arg(long, value_name = "P.toml", default_value = "classic-ssd")]
    against: String,
    /// Random cases are means over so many seeds, 1 to 10
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10))]
    seeds: u64,
    /// Print as CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print as JSON, the verdicts on the evaluation's conclusions with it
    #[arg(long)]
    json: bool,
    /// Write the plots to this page
    #[arg(long, value_name = "FILE.html")]
    plots: Option<PathBuf>,
    /// Write the findings to this page, in Markdown
    #[arg(long, value_name = "FILE.md")]
    findings: Option<PathBuf>,
    /// Runs at once
    #[arg(long, default_value_t = 1)]
    jobs: usize,
}

/// A case on both media.
pub(super) struct Pair {
    pub(super) case: Case,
    pub(super) hdd: f64,
    pub(super) other: f64,
}

impl Pair {
    /// How many times faster the other medium is.
    pub(super) fn gain(&self) -> f64 {
        self.hdd / self.other
    }
}

/// All cases, and what they ran on.
pub(super) struct Study {
    pub(super) pairs: Vec<Pair>,
    pub(super) other: String,
    pub(super) seeds: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut cases = Case::all();
    cases.retain(|case| published::key(case).contains(&arguments.only));
    if cases.is_empty() {
        return Err(Failure::new(format!("no case contains `{}`", arguments.only))
            .hint("cases read like `random,NoCache,5120,READ`; leave --only out to see all"));
    }
    let study = compute(arguments, &cases)?;
    if let Some(path) = &arguments.plots {
        output::write(path, "--plots", figures::page(&study).as_bytes())?;
    }
    if let Some(path) = &arguments.findings {
        output::write(path, "--findings", findings::page(&study).as_bytes())?;
    }
    match (arguments.csv, arguments.json) {
        (true, _) => print_csv(&study),
        (_, true) => print_json(&study)?,
        _ => print_table(&study),
    }
    Ok(ExitCode::SUCCESS)
}

fn compute(arguments: &Arguments, cases: &[Case]) -> Result<Study, Failure> {
    let other = crate::simulate::read_platform(&arguments.against)?;
    let hdd = seconds(&Platform::preset("classic-hdd")?, cases, arguments)?;
    let with_other = seconds(&other, cases, arguments)?;
    let pair = |((case, hdd), other): ((&Case, f64), f64)| Pair { case: *case, hdd, other };
    let pairs = cases.iter().zip(hdd).zip(with_other).map(pair).collect();
    Ok(Study { pairs, other: other.name, seeds: arguments.seeds })
}

/// Mean seconds of every case.
fn seconds(on: &Platform, cases: &[Case], arguments: &Arguments) -> Result<Vec<f64>, Failure> {
    let conduct = Conduct { order: Order::Documented, tie_seed: Seed(0) };
    let count = |case: &Case| case.seeds().end.min(arguments.seeds);
    let jobs_of = |case: &Case| {
        let case = *case;
        (0..count(&case)).map(move |seed| Job { case, conduct, seed })
    };
    eprintln!("{} cases on {}", cases.len(), on.name);
    let jobs: Vec<Job> = cases.iter().flat_map(jobs_of).collect();
    let mut runs = run_all(on, &jobs, arguments.jobs)?.into_iter().map(|run| run.seconds);
    let mean = |case: &Case| {
        let all: Vec<f64> = runs.by_ref().take(count(case) as usize).collect();
        mean_and_deviation(&all).0
    };
    Ok(cases.iter().map(mean).collect())
}

fn print_csv(study: &Study) {
    say_line!("test,cache_layer,block_bytes,op,hdd_seconds,other_seconds,gain");
    for pair in &study.pairs {
        let key = published::key(&pair.case);
        say_line!("{key},{},{},{}", pair.hdd, pair.other, pair.gain());
    }
}

fn print_json(study: &Study) -> Result<(), Failure> {
    let case = |pair: &Pair| {
        json!({
            "test": pair.case.test.name(),
            "cache_layer": pair.case.cache,
            "block_bytes": pair.case.block_bytes,
            "op": pair.case.operation.name(),
            "hdd_seconds": pair.hdd,
            "other_seconds": pair.other,
            "gain": pair.gain(),
        })
    };
    let verdict = |verdict: &claims::Verdict| {
        json!({
            "claim": verdict.claim,
            "hdd_factor": verdict.hdd,
            "other_factor": verdict.other,
            "verdict": verdict.word(),
        })
    };
    let verdicts: Vec<_> = claims::verdicts(study).iter().map(verdict).collect();
    let cases: Vec<_> = study.pairs.iter().map(case).collect();
    let all = json!({ "against": study.other, "seeds": study.seeds, "cases": cases, "verdicts": verdicts });
    say_line!(
        "{}",
        serde_json::to_string_pretty(&all).map_err(|error| {
            Failure::new(format!("the result cannot be written as JSON: {error}"))
                .hint("--csv prints the same cases")
        })?
    );
    Ok(())
}

fn print_table(study: &Study) {
    say_line!("{:<55} {:>12} {:>12} {:>8}", "case", "hdd [s]", "other [s]", "gain");
    for pair in &study.pairs {
        let key = published::key(&pair.case);
        say_line!("{key:<55} {:>12.4} {:>12.4} {:>7.2}x", pair.hdd, pair.other, pair.gain());
    }
    say_line!("\n{:<70} {:>7} {:>7}", "conclusion of the evaluation on hard disks", "hdd", "other");
    for verdict in claims::verdicts(study) {
        let word = verdict.word();
        say_line!("{:<70} {:>6.2}x {:>6.2}x  {word}", verdict.claim, verdict.hdd, verdict.other);
    }
}
