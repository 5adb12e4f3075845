//! Who is ahead, case by case.

use super::{Judgement, Verdict};
use crate::reproduce::clusterfile::plan::{
    Assumption, Cell, Extent, Measure, Results, SERVERS, cyclic, name_of,
};
use iolab_sim::evaluation::clusterfile::{DISK_RATES, Work};

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

fn cases(results: &Results, pairs: &[[Cell; 2]], measures: &[Measure]) -> Vec<Case> {
    let mut cases = Vec::new();
    for [ours, rival] in pairs {
        for &measure in measures {
            let (own, other) = (results.band(ours, measure), results.band(rival, measure));
            let sign = i32::from(own.is_below(&other)) - i32::from(other.is_below(&own));
            let factor = other.median / own.median;
            cases.push(Case { cell: ours.clone(), measure, factor, sign });
        }
    }
    cases
}

/// One line for an assumption, and each case that ours is not ahead in.
fn told(assumption: Assumption, cases: &[Case]) -> Vec<String> {
    let ahead = cases.iter().filter(|case| case.sign > 0).count();
    let mut lines = Vec::new();
    let mut line = format!("{}: ahead in {ahead} of {}", assumption.name(), cases.len());
    for &measure in assumption.operations() {
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

/// Judges each of these assumptions by `holds`.
fn judged(
    results: &Results,
    assumptions: &[Assumption],
    pairs: impl Fn(Assumption) -> Vec<[Cell; 2]>,
    holds: impl Fn(&[Case]) -> bool,
    because: &str,
) -> Judgement {
    let (mut figures, mut all) = (Vec::new(), Vec::new());
    for &assumption in assumptions {
        let cases = cases(results, &pairs(assumption), assumption.operations());
        figures.extend(told(assumption, &cases));
        all.push(holds(&cases));
    }
    Judgement { verdict: Verdict::under(all), figures, because: because.to_owned() }
}

fn flat(assumptions: &[Assumption], pairs: impl Fn(Assumption) -> Vec<[Cell; 2]>) -> Vec<Cell> {
    assumptions.iter().copied().flat_map(pairs).flatten().collect()
}

fn pairs_of_cubes(extent: Extent, assumption: Assumption) -> Vec<[Cell; 2]> {
    let cubes =
        extent.cubes().iter().map(|&points| assumption.pair(Work::Block(points), ALL_SERVERS));
    let other_disks = [DISK_RATES[0], DISK_RATES[2]].into_iter().map(|disk_rate| {
        let cells = assumption.pair(Work::Block(CUBE_OF_DISKS), ALL_SERVERS);
        cells.map(|cell| Cell { disk_rate, ..cell })
    });
    cubes.chain(other_disks).collect()
}

pub(super) fn cells_of_cubes(extent: Extent) -> Vec<Cell> {
    flat(&Assumption::alone(), |one| pairs_of_cubes(extent, one))
}

pub(super) fn cubes(results: &Results, extent: Extent) -> Judgement {
    judged(
        results,
        &Assumption::alone(),
        |one| pairs_of_cubes(extent, one),
        |cases| cases.iter().all(|case| case.sign > 0),
        "the rival moves every byte twice over links of the same rate, whatever memory and disks cost",
    )
}

fn pairs_of_grains(extent: Extent, assumption: Assumption) -> Vec<[Cell; 2]> {
    let of_run = |&run: &u64| SERVERS.map(|servers| assumption.pair(cyclic(run), servers));
    extent.runs().iter().flat_map(of_run).collect()
}

pub(super) fn grains(results: &Results, extent: Extent) -> Judgement {
    judged(
        results,
        &Assumption::alone(),
        |one| pairs_of_grains(extent, one),
        |cases| cases.iter().filter(|case| case.sign > 0).count() * 2 > cases.len(),
        "ours is ahead by less the more it costs to handle bytes, as it scatters on as many nodes as there are \
         servers and the rival on all 16, and the more of the time is the disks'",
    )
}

fn pairs_of_sizes(extent: Extent, assumption: Assumption) -> Vec<[Cell; 2]> {
    let of = |&rows: &u64| assumption.pair(Work::Cyclic { run: RUN_OF_SIZES, rows }, ALL_SERVERS);
    extent.rows().iter().map(of).collect()
}

pub(super) fn cells_of_sizes(extent: Extent) -> Vec<Cell> {
    flat(&Assumption::all(), |one| pairs_of_sizes(extent, one))
}

pub(super) fn sizes(results: &Results, extent: Extent) -> Judgement {
    let is_exception = |case: &Case| {
        let least = Work::Cyclic { run: RUN_OF_SIZES, rows: 1024 };
        case.measure == Measure::Read && case.cell.work == least
    };
    judged(
        results,
        &Assumption::all(),
        |one| pairs_of_sizes(extent, one),
        |cases| cases.iter().all(|case| (case.sign > 0) != is_exception(case)),
        "nothing in the model makes the rival faster for reading 1 MiB: it waits for the same servers, and exchanges \
         bytes besides. Cold cache managers handle every byte once more, which outweighs the exchange where handling \
         is dear, whatever the size",
    )
}
