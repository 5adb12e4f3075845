//! Rules about the balance among ranks.

use super::finding::{Confidence, Evidence, Finding, Remedy, Severity};
use crate::facts::Facts;
use crate::text::duration;
use crate::thousands::grouped;
use iolab_vocab::format_bytes;
use std::collections::BTreeMap;

pub(super) const NAMES: &[&str] = &["one-slow-rank", "rank-imbalance", "single-rank-io"];

/// Twice the time of the others is no noise.
const SLOW_FACTOR: u64 = 2;
/// Bytes within half as much again count as the same work.
const SAME_WORK: f64 = 1.5;
/// Below this, differences among ranks cost nothing.
const NEGLIGIBLE_NS: u64 = 1_000_000;
const NEGLIGIBLE_BYTES: u64 = 1 << 20;

/// What one rank did, over its processes.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    rank: i32,
    io_ns: u64,
    wall_ns: u64,
    calls: u64,
    bytes: u64,
}

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let ranks = work(facts);
    if ranks.len() < 2 {
        return Vec::new();
    }
    let uneven = one_does_all(&ranks).or_else(|| uneven_bytes(&ranks));
    one_slow(&ranks).into_iter().chain(uneven).collect()
}

fn work(facts: &Facts) -> Vec<Work> {
    let mut ranks: BTreeMap<i32, Work> = BTreeMap::new();
    for (state, &wall_ns) in facts.analysis.processes.iter().zip(&facts.wall_ns) {
        if state.rank < 0 {
            continue;
        }
        let work = ranks.entry(state.rank).or_default();
        work.rank = state.rank;
        let totals = &state.totals;
        work.io_ns = work.io_ns.saturating_add(totals.io_ns());
        work.wall_ns = work.wall_ns.saturating_add(wall_ns);
        work.calls = work.calls.saturating_add(totals.calls);
        work.bytes = work.bytes.saturating_add(totals.reads.and(totals.writes).bytes);
    }
    ranks.into_values().collect()
}

/// The median of the others; of two, the other one.
fn median_of_others(ranks: &[Work], but: i32, value: fn(&Work) -> u64) -> u64 {
    let mut values: Vec<u64> = ranks.iter().filter(|w| w.rank != but).map(value).collect();
    values.sort_unstable();
    values[(values.len() - 1) / 2]
}

fn one_slow(ranks: &[Work]) -> Option<Finding> {
    let slowest = ranks.iter().max_by_key(|work| work.io_ns)?;
    let io_ns = median_of_others(ranks, slowest.rank, |work| work.io_ns);
    let bytes = median_of_others(ranks, slowest.rank, |work| work.bytes);
    let calls = median_of_others(ranks, slowest.rank, |work| work.calls);
    let more = |own: u64, others: u64| own as f64 / others.max(1) as f64;
    let same_work =
        more(slowest.bytes, bytes) <= SAME_WORK && more(slowest.calls, calls) <= SAME_WORK;
    let excess = slowest.io_ns.saturating_sub(io_ns);
    if !same_work
        || slowest.io_ns < io_ns.max(1).saturating_mul(SLOW_FACTOR)
        || excess < NEGLIGIBLE_NS
    {
        return None;
    }
    let factor = more(slowest.io_ns, io_ns);
    let message = format!(
        "rank {} takes {factor:.1} times as long for the same I/O as the others ({} against {})",
        slowest.rank,
        duration(slowest.io_ns),
        duration(io_ns)
    );
    let remedy = "look at its node, its path to the storage and what else runs there; the others \
                  wait for it at the next barrier";
    Some(finding("one-slow-rank", slowest, excess, Confidence::Likely, message, remedy))
}

fn one_does_all(ranks: &[Work]) -> Option<Finding> {
    let all: u64 = ranks.iter().map(|work| work.bytes).fold(0, u64::saturating_add);
    let most = ranks.iter().max_by_key(|work| work.bytes)?;
    if all < NEGLIGIBLE_BYTES || (most.bytes as f64) < 0.9 * all as f64 {
        return None;
    }
    let percent = 100.0 * most.bytes as f64 / all as f64;
    let message = format!(
        "rank {} moves {percent:.0} % of all bytes ({} of {}) for {} ranks",
        most.rank,
        format_bytes(most.bytes),
        format_bytes(all),
        ranks.len()
    );
    let remedy = "let every rank (or one per node) do its part; one rank has one link and one core";
    let excess = excess_ns(ranks, most);
    Some(finding("single-rank-io", most, excess, Confidence::Certain, message, remedy))
}

/// How much longer that rank is in I/O than the others: what they wait for it.
fn excess_ns(ranks: &[Work], most: &Work) -> u64 {
    most.io_ns.saturating_sub(median_of_others(ranks, most.rank, |work| work.io_ns))
}

fn uneven_bytes(ranks: &[Work]) -> Option<Finding> {
    let most = ranks.iter().max_by_key(|work| work.bytes)?;
    let others = median_of_others(ranks, most.rank, |work| work.bytes);
    if most.bytes < NEGLIGIBLE_BYTES || most.bytes < 2 * others {
        return None;
    }
    let message = format!(
        "rank {} moves {} in {} calls, the median of the others {}",
        most.rank,
        format_bytes(most.bytes),
        grouped(most.calls),
        format_bytes(others)
    );
    let remedy = "divide the data evenly; the ranks with less wait for the one with most";
    let excess = excess_ns(ranks, most);
    Some(finding("rank-imbalance", most, excess, Confidence::Certain, message, remedy))
}

/// A finding about one rank; `excess_ns` is what it would save.
fn finding(
    rule: &'static str,
    rank: &Work,
    excess_ns: u64,
    confidence: Confidence,
    message: String,
    remedy: &str,
) -> Finding {
    let share = (excess_ns as f64 / rank.wall_ns.max(1) as f64).min(1.0);
    Finding {
        rule,
        severity: Severity::of(share),
        confidence,
        message,
        evidence: Evidence {
            calls: rank.calls,
            bytes: rank.bytes,
            time_ns: excess_ns,
            share_of_run: share,
            share_of: format!("rank {}'s run time", rank.rank),
            rows: Vec::new(),
            ranks: vec![rank.rank],
        },
        remedy: Some(Remedy { sentence: remedy.to_owned(), strategy: None }),
        file: None,
        files: Vec::new(),
    }
}
