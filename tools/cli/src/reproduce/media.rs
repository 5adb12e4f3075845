//! `iolab reproduce hdd-vs-ssd`: the study that the evaluation asks for as future work. All its
//! cases on hard disks and on another medium, which of its conclusions survive, and the page of
//! findings with every figure from this run.

mod claims;
mod figures;
mod findings;
mod study;

use super::bands;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::parallel;
use crate::ties::Ties;
use clap::Args;
use iolab_report::csv::{self, Plain};
use iolab_sim::band::Band;
use iolab_sim::cluster::Order;
use iolab_sim::evaluation::Case;
use iolab_sim::platform::Platform;
use serde::Serialize;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use study::{Pair, Study, ranged};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Only cases whose `test,cache_layer,block_bytes,op` contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Platform with the other medium: a preset or a TOML file
    #[arg(long, value_name = "P.toml", default_value = "classic-ssd")]
    against: String,
    /// Random cases are means over so many draws, 1 to 10
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10))]
    draws: u64,
    #[command(flatten)]
    ties: Ties,
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
    /// Runs at once; as many as there are processors by itself
    #[arg(long)]
    jobs: Option<usize>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut cases = Case::all();
    cases.retain(|case| case.published_key().contains(&arguments.only));
    if cases.is_empty() {
        return Err(Failure::new(format!("no case contains `{}`", arguments.only))
            .hint("cases read like `random,NoCache,5120,READ`; leave --only out to see all"));
    }
    let plots = Output::begin_if(arguments.plots.as_deref(), "--plots", &[])?;
    let conclusions = Output::begin_if(arguments.findings.as_deref(), "--findings", &[])?;
    output::distinct(&plots.iter().chain(&conclusions).collect::<Vec<_>>())?;
    let study = compute(arguments, &cases)?;
    if let Some(output) = plots {
        output.write(figures::page(&study).as_bytes())?;
    }
    if let Some(output) = conclusions {
        output.write(findings::page(&study).as_bytes())?;
    }
    match (arguments.csv, arguments.json) {
        (true, _) => print_csv(&study),
        (_, true) => print_json(&study)?,
        _ => print_table(&study),
    }
    Ok(ExitCode::SUCCESS)
}

fn compute(arguments: &Arguments, cases: &[Case]) -> Result<Study, Failure> {
    let other = crate::platform_file::read_platform(&arguments.against)?;
    let classic = Platform::preset("classic-hdd")?;
    let differs_in_devices_only = is_equal_but_for_devices(&classic, &other);
    let hdd = bands_on(&classic, cases, arguments)?;
    let with_other = bands_on(&other, cases, arguments)?;
    let pair = |((case, hdd), other): ((&Case, Band), Band)| Pair { case: *case, hdd, other };
    let pairs = cases.iter().zip(hdd).zip(with_other).map(pair).collect();
    let tie_seeds = arguments.ties.of_band().len() as u64;
    let other = other.name;
    Ok(Study { pairs, other, differs_in_devices_only, draws: arguments.draws, tie_seeds })
}

fn is_equal_but_for_devices(one: &Platform, other: &Platform) -> bool {
    let mut other = Platform { name: one.name.clone(), local: one.local.clone(), ..other.clone() };
    for (group, like) in other.nodes.iter_mut().zip(&one.nodes) {
        if let (Some(server), Some(like)) = (&mut group.server, &like.server) {
            server.device = like.device;
        }
    }
    other == *one
}

/// The band of every case.
fn bands_on(on: &Platform, cases: &[Case], arguments: &Arguments) -> Result<Vec<Band>, Failure> {
    let seeds = arguments.ties.of_band();
    eprintln!("{} cases on {}, {} orders each", cases.len(), on.name, seeds.len());
    let threads = arguments.jobs.unwrap_or_else(parallel::all_cores);
    bands::of_cases(on, cases, Order::Documented, (&seeds, arguments.draws), threads)
}

/// A line of the CSV.
#[derive(Serialize)]
struct Row {
    test: String,
    cache_layer: &'static str,
    block_bytes: u64,
    op: &'static str,
    hdd_seconds: Plain,
    other_seconds: Plain,
    gain: Plain,
    hdd_low: Plain,
    hdd_high: Plain,
    other_low: Plain,
    other_high: Plain,
}

fn print_csv(study: &Study) {
    let row = |pair: &Pair| Row {
        test: pair.case.test.name(),
        cache_layer: pair.case.published_cache(),
        block_bytes: pair.case.block_bytes,
        op: pair.case.operation.name(),
        hdd_seconds: Plain(pair.hdd.median),
        other_seconds: Plain(pair.other.median),
        gain: Plain(pair.gain()),
        hdd_low: Plain(pair.hdd.low),
        hdd_high: Plain(pair.hdd.high),
        other_low: Plain(pair.other.low),
        other_high: Plain(pair.other.high),
    };
    say!("{}", csv::rows(study.pairs.iter().map(row)));
}

fn print_json(study: &Study) -> Result<(), Failure> {
    let case = |pair: &Pair| {
        json!({
            "test": pair.case.test.name(),
            "cache_layer": pair.case.cache,
            "block_bytes": pair.case.block_bytes,
            "op": pair.case.operation.name(),
            "hdd_seconds": pair.hdd.median,
            "hdd_band": [pair.hdd.low, pair.hdd.high],
            "other_seconds": pair.other.median,
            "other_band": [pair.other.low, pair.other.high],
            "gain": pair.gain(),
        })
    };
    let side = |side: &claims::Side| {
        json!({
            "factor": side.factor, "cases": side.count, "helps": side.helps, "harms": side.harms,
        })
    };
    let verdict = |verdict: &claims::Verdict| {
        json!({
            "claim": verdict.claim,
            "op": verdict.operation.name(),
            "hdd": side(&verdict.hdd),
            "other": side(&verdict.other),
            "verdict": verdict.word(),
        })
    };
    let verdicts: Vec<_> = claims::verdicts(study).iter().map(verdict).collect();
    let cases: Vec<_> = study.pairs.iter().map(case).collect();
    let all = json!({
        "against": study.other, "draws": study.draws, "tie_seeds": study.tie_seeds,
        "cases": cases, "verdicts": verdicts,
    });
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
    say_line!("{:<55} {:<32} {:<32} {:>8}", "case", "hdd [s]", "other [s]", "gain");
    for pair in &study.pairs {
        let (key, hdd, other) = (pair.case.published_key(), ranged(&pair.hdd), ranged(&pair.other));
        say_line!("{key:<55} {hdd:<32} {other:<32} {:>7.2}x", pair.gain());
    }
    say_line!("seconds are medians over {} orders of simultaneous events", study.tie_seeds);
    say_line!("{}", study.trust());
    let titles = ["conclusion of the evaluation on hard disks", "op", "hdd", "other"];
    say_line!("\n{:<62} {:<5} {:<24} {:<24}", titles[0], titles[1], titles[2], titles[3]);
    for verdict in claims::verdicts(study) {
        let (word, op) = (verdict.word(), verdict.operation.name());
        let (hdd, other) = (verdict.hdd.words(), verdict.other.words());
        say_line!("{:<62} {op:<5} {hdd:<24} {other:<24}  {word}", verdict.claim);
    }
}
