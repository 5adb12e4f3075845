//! What is counted exactly: bytes that move, and steps of a schedule.

use super::{Judgement, Verdict};
use crate::reproduce::clusterfile::plan::{
    Cell, Extent, METHODS, Measure, Results, SERVERS, Ways, cyclic,
};
use iolab_policy::schedule::{catalog, steps};
use iolab_sim::evaluation::clusterfile::{Method, RANKS, Work};
use iolab_vocab::format_bytes;

/// 16 MiB in runs of 64 bytes: every rank has as much of every aggregator's domain.
const MOVED: Work = Work::Cyclic { run: 64, rows: 4096 };

fn moving(method: Method, servers: u32) -> Cell {
    Cell { ways: Ways::Write, ..Cell::new(MOVED, method, servers) }
}

pub(super) fn cells_of_moves(_: Extent) -> Vec<Cell> {
    SERVERS.iter().flat_map(|&servers| METHODS.map(|method| moving(method, servers))).collect()
}

pub(super) fn moves(results: &Results, _: Extent) -> Judgement {
    let (bytes, mut figures, mut holds) = (MOVED.bytes(), Vec::new(), true);
    for servers in SERVERS {
        let [ours, rival] = METHODS.map(|method| moving(method, servers));
        let remote = ours.direct_remote_bytes().unwrap_or(0);
        let [ours, rival] = [ours, rival].map(|cell| results.one(&cell).traffic);
        let beyond = ours.nic_bytes.checked_sub(remote);
        let is_once = ours.exchanged_bytes == 0
            && ours.received_bytes == bytes
            && beyond.is_some_and(|beyond| beyond < bytes / 50);
        // A rank has a sixteenth of its own domain already.
        let exchanged = bytes / u64::from(RANKS) * u64::from(RANKS - 1);
        let is_twice = rival.exchanged_bytes == exchanged && rival.received_bytes == bytes;
        holds &= is_once && is_twice;
        figures.push(format!(
            "{servers} servers, {}: ours sends servers {} and ranks nothing, {} through NICs of which {} must; \
             two-phase sends ranks {} and servers {}, {} through NICs",
            format_bytes(bytes),
            format_bytes(ours.received_bytes),
            format_bytes(ours.nic_bytes),
            format_bytes(remote),
            format_bytes(rival.exchanged_bytes),
            format_bytes(rival.received_bytes),
            format_bytes(rival.nic_bytes),
        ));
    }
    let because = "counted, with no assumption; what NICs carry beyond the payload are headers, replies, and for \
                   two-phase the lists of runs";
    Judgement { verdict: Verdict::under([holds]), figures, because: because.to_owned() }
}

fn scheduled(servers: u32, name: &str) -> Cell {
    let schedule = catalog::find(name).unwrap_or(catalog::USUAL);
    Cell { schedule, ..Cell::new(cyclic(256), Method::Direct, servers) }
}

pub(super) fn cells_of_schedules(_: Extent) -> Vec<Cell> {
    let both = |&servers: &u32| ["rotate", "in-order"].map(|name| scheduled(servers, name));
    SERVERS.iter().flat_map(both).collect()
}

pub(super) fn schedules(results: &Results, _: Extent) -> Judgement {
    let length = |name: &str, processes, partners| {
        catalog::find(name).map_or(0, |row| steps(row, processes, partners, 1))
    };
    let [example, rotated] = ["in-order", "rotate"].map(|name| length(name, 2, 2));
    let mut holds = (example, rotated) == (3, 2);
    let mut figures = vec![format!(
        "the published example, 2 processes and 2 servers: {example} steps in order, {rotated} rotated"
    )];
    for servers in SERVERS {
        let [in_order, rotate] = ["in-order", "rotate"].map(|name| length(name, RANKS, servers));
        holds &= rotate < in_order;
        let time = |name, measure| results.band(&scheduled(servers, name), measure).median;
        let ratio = |measure| time("in-order", measure) / time("rotate", measure);
        figures.push(format!(
            "{servers} servers: {in_order} steps in order, {rotate} rotated; in time a write in order takes {:.3} \
             times as long, a read {:.3} times",
            ratio(Measure::Write),
            ratio(Measure::Read),
        ));
    }
    let because = "steps are counted, with no assumption; time differs less, because a client has two transfers to every \
                   server under way and not one in all, and so falls into step by itself";
    Judgement { verdict: Verdict::under([holds]), figures, because: because.to_owned() }
}
