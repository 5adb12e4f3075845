//! What cache managers bring: more of them, and what they still have.

use super::{Judgement, Verdict};
use crate::reproduce::clusterfile::plan::{
    Buffers, Cell, Extent, Measure, Results, Ways, all_costs, costs_name, with_caches,
};
use iolab_sim::evaluation::clusterfile::{Method, Work};
use iolab_sim::file_system::Costs;
use iolab_vocab::format_bytes;

const SERVERS: u32 = 16;
/// Numbers of cache managers, the fewest and the most at the ends.
pub(in crate::reproduce::clusterfile) const CACHES: [u32; 3] = [1, 4, 16];
/// Length of the runs.
const RUN: u64 = 128;
/// How far a value may be off its published one.
const TOLERANCE: f64 = 0.15;
/// Most times as fast with the most managers: squares, and columns.
const PUBLISHED: [f64; 2] = [6.8, 7.3];

/// Rows of matrices of 16, 64, 144 and 256 MiB.
pub(in crate::reproduce::clusterfile) fn rows(extent: Extent) -> &'static [u64] {
    match extent {
        Extent::Whole => &[4096, 8192, 12288, 16384],
        Extent::Quick => &[4096],
    }
}

/// A matrix dealt in squares, and in columns.
pub(in crate::reproduce::clusterfile) fn works(rows: u64) -> [Work; 2] {
    [Work::Cyclic { run: RUN, rows }, Work::Columns { run: RUN, rows }]
}

/// Read twice: first from the memory of servers, then from what that left.
pub(in crate::reproduce::clusterfile) fn read(work: Work, caches: u32, costs: Costs) -> Cell {
    let cell = Cell { costs, ways: Ways::Read, ..Cell::new(work, Method::Direct, SERVERS) };
    with_caches(cell, caches, Buffers::Cold)
}

pub(super) fn cells_of_global(extent: Extent) -> Vec<Cell> {
    let mut cells = Vec::new();
    for costs in all_costs() {
        for work in rows(extent).iter().flat_map(|&rows| works(rows)) {
            cells.extend(CACHES.map(|caches| read(work, caches, costs)));
        }
    }
    cells
}

/// Bytes that servers were asked for by the second read: each has to be fetched once before.
fn fetched_again(results: &Results, cell: &Cell) -> u64 {
    results.one(cell).traffic.fetched_bytes.saturating_sub(cell.work.bytes())
}

pub(super) fn global(results: &Results, extent: Extent) -> Judgement {
    let (mut figures, mut all) = (Vec::new(), Vec::new());
    let (fewest, most) = (CACHES[0], CACHES[CACHES.len() - 1]);
    for costs in all_costs() {
        let mut holds = true;
        for (kind, published) in PUBLISHED.into_iter().enumerate() {
            let mut gains = Vec::new();
            for &rows in rows(extent) {
                let work = works(rows)[kind];
                let cell = |caches| read(work, caches, costs);
                let seconds = |caches| results.band(&cell(caches), Measure::Again).median;
                let gain = seconds(fewest) / seconds(most);
                let again: u64 =
                    CACHES.iter().map(|&caches| fetched_again(results, &cell(caches))).sum();
                holds &= again == 0;
                figures.push(format!(
                    "memory costs {}, {}: {fewest} manager {:.3} s, {} managers {:.3} s, {most} managers {:.3} s: {gain:.2} \
                     times as fast; {} fetched",
                    costs_name(&costs),
                    work.name(),
                    seconds(fewest),
                    CACHES[1],
                    seconds(CACHES[1]),
                    seconds(most),
                    format_bytes(again),
                ));
                gains.push(gain);
            }
            let best = gains.into_iter().fold(0.0, f64::max);
            holds &= (best / published - 1.0).abs() <= TOLERANCE;
            let what = ["CYCLIC, CYCLIC", "*, CYCLIC"][kind];
            figures.push(format!(
                "memory costs {}, {what}: at most {best:.2} times as fast (published {published})",
                costs_name(&costs)
            ));
        }
        all.push(holds);
    }
    let because = "that no server is asked is counted; how much faster 16 managers are is what 16 links and \
                   processors give over one, less what the node that reads needs for itself";
    Judgement { verdict: Verdict::under(all), figures, because: because.to_owned() }
}

pub(super) fn cells_of_hot(extent: Extent) -> Vec<Cell> {
    let of_costs = |costs| {
        rows(extent).iter().map(move |&rows| read(works(rows)[0], CACHES[CACHES.len() - 1], costs))
    };
    all_costs().into_iter().flat_map(of_costs).collect()
}

pub(super) fn hot(results: &Results, extent: Extent) -> Judgement {
    let (mut figures, mut all) = (Vec::new(), Vec::new());
    for cell in cells_of_hot(extent) {
        let [cold, warm] =
            [Measure::Read, Measure::Again].map(|measure| results.band(&cell, measure));
        let bytes = cell.work.bytes();
        let first = results.one(&cell).traffic.fetched_bytes.min(bytes);
        let again = fetched_again(results, &cell);
        all.push(first == bytes && again == 0 && warm.is_below(&cold));
        figures.push(format!(
            "memory costs {}, {}: first read {:.3} s, {} fetched; second read {:.3} s, {} fetched: {:.2} times as fast",
            costs_name(&cell.costs),
            cell.work.name(),
            cold.median,
            format_bytes(first),
            warm.median,
            format_bytes(again),
            cold.median / warm.median,
        ));
    }
    let because = "counted, with no assumption; the time that is saved is that of one more copy and of what goes between a \
                   server and the manager beside it, not of disks: servers have the data in memory";
    Judgement { verdict: Verdict::under(all), figures, because: because.to_owned() }
}
