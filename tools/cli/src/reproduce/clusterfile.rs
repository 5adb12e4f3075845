//! `iolab reproduce clusterfile`: the evaluation of the Clusterfile parallel file system (ICS 2004), claim by
//! claim: a verdict for each, with the figures it rests on and the assumption that decides it.

mod claims;
mod figures;
mod findings;
mod plan;

use crate::failure::Failure;
use crate::output::{self, Output};
use crate::parallel;
use crate::ties::Ties;
use claims::{CLAIMS, Claim, Judged};
use clap::Args;
use iolab_report::csv::{self, Plain};
use iolab_sim::evaluation::clusterfile::DEFECTS;
use plan::{Extent, Measure, Results, Ways, name_of};
use serde::Serialize;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Only these claims, by their numbers, as 3,5
    #[arg(long, value_name = "N", value_delimiter = ',')]
    claims: Vec<u32>,
    #[command(flatten)]
    ties: Ties,
    /// Coarser grains and smaller classes only: a glance, no verdict on the evaluation
    #[arg(long)]
    quick: bool,
    /// Print every cell as CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print verdicts and cells as JSON
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

/// The evaluation, computed again.
struct Reproduction {
    results: Results,
    judged: Vec<Judged>,
    seeds: u64,
    extent: Extent,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let claims = chosen(&arguments.claims)?;
    let plots = Output::begin_if(arguments.plots.as_deref(), "--plots", &[])?;
    let page = Output::begin_if(arguments.findings.as_deref(), "--findings", &[])?;
    output::distinct(&plots.iter().chain(&page).collect::<Vec<_>>())?;
    let reproduction = compute(arguments, &claims)?;
    if let Some(output) = plots {
        output.write(figures::page(&reproduction.results).as_bytes())?;
    }
    if let Some(output) = page {
        output.write(findings::page(&reproduction).as_bytes())?;
    }
    match (arguments.csv, arguments.json) {
        (true, _) => say!("{}", csv::rows(rows(&reproduction.results))),
        (_, true) => say_line!("{:#}", as_json(&reproduction)),
        _ => print_text(&reproduction),
    }
    Ok(ExitCode::SUCCESS)
}

/// The claims of these numbers; all, if there are none.
fn chosen(numbers: &[u32]) -> Result<Vec<&'static Claim>, Failure> {
    if numbers.is_empty() {
        return Ok(CLAIMS.iter().collect());
    }
    let find = |number: &u32| {
        CLAIMS.iter().find(|claim| claim.number == *number).ok_or_else(|| {
            let known: Vec<_> = CLAIMS.iter().map(|claim| claim.number.to_string()).collect();
            Failure::new(format!("there is no claim {number} to reproduce"))
                .hint(format!("choose from {}", known.join(", ")))
        })
    };
    numbers.iter().map(find).collect()
}

fn compute(arguments: &Arguments, claims: &[&'static Claim]) -> Result<Reproduction, Failure> {
    let extent = if arguments.quick { Extent::Quick } else { Extent::Whole };
    let cells = claims.iter().flat_map(|claim| (claim.cells)(extent)).collect();
    let seeds = arguments.ties.of_band();
    let threads = arguments.jobs.unwrap_or_else(parallel::all_cores);
    let results = Results::compute(cells, &seeds, threads)?;
    let judged = claims.iter().map(|claim| claim.judge(&results, extent)).collect();
    Ok(Reproduction { results, judged, seeds: seeds.len() as u64, extent })
}

fn print_text(reproduction: &Reproduction) {
    for one in &reproduction.judged {
        say_line!("{:>2}. {}: {}", one.claim.number, one.claim.text, one.verdict.word());
        one.figures.iter().for_each(|figure| say_line!("    {figure}"));
        say_line!("    {}", one.because);
    }
    say_line!("\n{}", reproduction.basis());
    say_line!("\nWhat to know about the published evaluation:");
    DEFECTS.iter().for_each(|defect| say_line!("- {defect}"));
}

impl Reproduction {
    /// What the figures rest on.
    fn basis(&self) -> String {
        let quick = match self.extent {
            Extent::Whole => "",
            Extent::Quick => " Grains below 64 bytes, class C and large cubes are left out.",
        };
        format!(
            "{} cells, each the median over {} orders of simultaneous events, of class C over at most {}.{quick}",
            self.results.count(),
            self.seeds,
            plan::ORDERS_OF_LARGEST,
        )
    }
}

/// A line of the CSV.
#[derive(Serialize)]
struct Row {
    work: String,
    method: &'static str,
    servers: u32,
    disk_mb_per_second: Plain,
    memory_mib: u64,
    costs: &'static str,
    schedule: &'static str,
    caches: u32,
    buffers: &'static str,
    write_seconds: Option<Plain>,
    disk_write_seconds: Option<Plain>,
    read_seconds: Option<Plain>,
    second_read_seconds: Option<Plain>,
    write_shuffle_seconds: Option<Plain>,
    read_shuffle_seconds: Option<Plain>,
    exchanged_bytes: u64,
    received_bytes: u64,
    fetched_bytes: u64,
    nic_bytes: u64,
}

/// What of a cell was measured.
fn has(cell: &plan::Cell, measure: Measure) -> bool {
    let (is_cold, ways) = (plan::is_cold(cell), cell.ways);
    match measure {
        Measure::Write | Measure::WriteShuffle => ways != Ways::Read,
        Measure::DiskWrite => ways != Ways::Read && !is_cold,
        Measure::Read | Measure::ReadShuffle => ways != Ways::Write,
        Measure::Again => ways == Ways::Read || (ways == Ways::Both && is_cold),
    }
}

fn rows(results: &Results) -> impl Iterator<Item = Row> + '_ {
    results.cells().map(|(cell, one)| {
        let median = |measure: Measure| {
            has(cell, measure).then(|| Plain(results.band(cell, measure).median))
        };
        Row {
            work: cell.work.name(),
            method: plan::method_name(cell.method),
            servers: cell.servers,
            disk_mb_per_second: Plain(cell.disk_rate / 1e6),
            memory_mib: cell.memory_bytes >> 20,
            costs: plan::costs_name(&cell.costs),
            schedule: cell.schedule.name,
            caches: cell.cooperation.map_or(0, |one| one.caches),
            buffers: plan::buffers_name(cell),
            write_seconds: median(Measure::Write),
            disk_write_seconds: median(Measure::DiskWrite),
            read_seconds: median(Measure::Read),
            second_read_seconds: median(Measure::Again),
            write_shuffle_seconds: median(Measure::WriteShuffle),
            read_shuffle_seconds: median(Measure::ReadShuffle),
            exchanged_bytes: one.traffic.exchanged_bytes,
            received_bytes: one.traffic.received_bytes,
            fetched_bytes: one.traffic.fetched_bytes,
            nic_bytes: one.traffic.nic_bytes,
        }
    })
}

fn as_json(reproduction: &Reproduction) -> serde_json::Value {
    let claim = |one: &Judged| {
        json!({
            "claim": one.claim.number,
            "text": one.claim.text,
            "verdict": one.verdict.word(),
            "figures": one.figures,
            "because": one.because,
        })
    };
    let results = &reproduction.results;
    let cell = |(cell, one): (&plan::Cell, &plan::Outcome)| {
        let band = |measure| {
            has(cell, measure).then(|| {
                let band = results.band(cell, measure);
                json!([band.low, band.median, band.high])
            })
        };
        json!({
            "cell": name_of(cell),
            "write_seconds": band(Measure::Write),
            "disk_write_seconds": band(Measure::DiskWrite),
            "read_seconds": band(Measure::Read),
            "second_read_seconds": band(Measure::Again),
            "exchanged_bytes": one.traffic.exchanged_bytes,
            "received_bytes": one.traffic.received_bytes,
            "fetched_bytes": one.traffic.fetched_bytes,
            "nic_bytes": one.traffic.nic_bytes,
        })
    };
    json!({
        "claims": reproduction.judged.iter().map(claim).collect::<Vec<_>>(),
        "cells": results.cells().map(cell).collect::<Vec<_>>(),
        "tie_seeds": reproduction.seeds,
        "defects": DEFECTS,
    })
}
