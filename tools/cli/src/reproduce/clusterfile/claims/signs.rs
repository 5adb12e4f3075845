//! Who is ahead, case by case.

use super::{Judgement, Verdict};
use crate::reproduce::clusterfile::plan::{Cell, name_of};
use crate::reproduce::clusterfile::plan::{
    Extent, Measure, Results, SERVERS, all_costs, costs_name, cyclic, pair,
};
use iolab_sim::evaluation::clusterfile::{DISK_RATES, Work};
use iolab_sim::file_system::Costs;

/// Servers where their number is not varied.
const ALL_SERVERS: u32 = 16;
/// The cube whose disks are varied.
const CUBE_OF_DISKS: u64 = 128;
/// Runs of the matrices whose size is varied.
const RUN_OF_SIZES: u64 = 32;

/// How far ours is ahead in one case.
struct Case {
    cell: Cell,
    measure: Measure,
    /// How many times the rival's time is ours, median by median.
    factor: f64,
    /// 1 ahead, -1 behind, 0 where the bands meet.
    sign: i32,
}

fn cases(results: &Results, pairs: &[[Cell; 2]]) -> Vec<Case> {
    let mut cases = Vec::new();
    for [ours, rival] in pairs {
        for measure in Measure::OPERATIONS {
            let (own, other) = (results.band(ours, measure), results.band(rival, measure));
            let sign = i32::from(own.is_below(&other)) - i32::from(other.is_below(&own));
            let factor = other.median / own.median;
            cases.push(Case { cell: ours.clone(), measure, factor, sign });
        }
    }
    cases
}

/// One line for an assumption, and each case that ours is not ahead in.
fn told(costs: &Costs, cases: &[Case]) -> Vec<String> {
    let ahead = cases.iter().filter(|case| case.sign > 0).count();
    let mut lines = Vec::new();
    let mut line =
        format!("memory costs {}: ahead in {ahead} of {}", costs_name(costs), cases.len());
    for measure in Measure::OPERATIONS {
        let of = || cases.iter().filter(|case| case.measure == measure).map(|case| case.factor);
        let (low, high) = (of().fold(f64::INFINITY, f64::min), of().fold(0.0, f64::max));
        line += &format!("; {} {low:.2} to {high:.2} times as fast", measure.name());
    }
    lines.push(line);
    for case in cases.iter().filter(|case| case.sign <= 0) {
        let word = if case.sign < 0 { "behind" } else { "no difference" };
        let (what, cell) = (case.measure.name(), name_of(&case.cell));
        lines.push(format!("  {word}: {what}, {cell}: {:.2}", case.factor));
    }
    lines
}

/// Judges each assumption about memory by `holds`.
fn judged(
    results: &Results,
    pairs: impl Fn(Costs) -> Vec<[Cell; 2]>,
    holds: impl Fn(&[Case]) -> bool,
    because: &str,
) -> Judgement {
    let (mut figures, mut all) = (Vec::new(), Vec::new());
    for costs in all_costs() {
        let cases = cases(results, &pairs(costs));
        figures.extend(told(&costs, &cases));
        all.push(holds(&cases));
    }
    Judgement { verdict: Verdict::under(all), figures, because: because.to_owned() }
}

fn flat(pairs: impl Fn(Costs) -> Vec<[Cell; 2]>) -> Vec<Cell> {
    all_costs().into_iter().flat_map(pairs).flatten().collect()
}

fn pairs_of_cubes(extent: Extent, costs: Costs) -> Vec<[Cell; 2]> {
    let cubes = extent.cubes().iter().map(|&points| pair(Work::Block(points), ALL_SERVERS, costs));
    let other_disks = [DISK_RATES[0], DISK_RATES[2]].into_iter().map(|disk_rate| {
        let cells = pair(Work::Block(CUBE_OF_DISKS), ALL_SERVERS, costs);
        cells.map(|cell| Cell { disk_rate, ..cell })
    });
    cubes.chain(other_disks).collect()
}

pub(super) fn cells_of_cubes(extent: Extent) -> Vec<Cell> {
    flat(|costs| pairs_of_cubes(extent, costs))
}

pub(super) fn cubes(results: &Results, extent: Extent) -> Judgement {
    judged(
        results,
        |costs| pairs_of_cubes(extent, costs),
        |cases| cases.iter().all(|case| case.sign > 0),
        "the rival moves every byte twice over links of the same rate, whatever memory and disks cost",
    )
}

fn pairs_of_grains(extent: Extent, costs: Costs) -> Vec<[Cell; 2]> {
    let of_run = |&run: &u64| SERVERS.map(|servers| pair(cyclic(run), servers, costs));
    extent.runs().iter().flat_map(of_run).collect()
}

pub(super) fn grains(results: &Results, extent: Extent) -> Judgement {
    judged(
        results,
        |costs| pairs_of_grains(extent, costs),
        |cases| cases.iter().filter(|case| case.sign > 0).count() * 2 > cases.len(),
        "ours is ahead by less the more it costs to handle bytes, as it scatters on as many nodes as there are \
         servers and the rival on all 16, and the more of the time is the disks'",
    )
}

fn pairs_of_sizes(extent: Extent, costs: Costs) -> Vec<[Cell; 2]> {
    let of = |&rows: &u64| pair(Work::Cyclic { run: RUN_OF_SIZES, rows }, ALL_SERVERS, costs);
    extent.rows().iter().map(of).collect()
}

pub(super) fn cells_of_sizes(extent: Extent) -> Vec<Cell> {
    flat(|costs| pairs_of_sizes(extent, costs))
}

pub(super) fn sizes(results: &Results, extent: Extent) -> Judgement {
    let is_exception = |case: &Case| {
        let least = Work::Cyclic { run: RUN_OF_SIZES, rows: 1024 };
        case.measure == Measure::Read && case.cell.work == least
    };
    judged(
        results,
        |costs| pairs_of_sizes(extent, costs),
        |cases| cases.iter().all(|case| (case.sign > 0) != is_exception(case)),
        "nothing in the model makes the rival faster for reading 1 MiB: it waits for the same servers, and exchanges \
         bytes besides",
    )
}
