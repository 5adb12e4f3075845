//! Rules about the balance among ranks.
//!
//! Of a file that all ranks opened only the fastest and the slowest rank are known, and the variance of
//! bytes; of other files each rank by itself.

use super::RankRow;
use super::sums::{FileSum, Run, Weight};
use crate::findings::{Confidence, Finding};
use crate::text::duration;
use crate::thousands::grouped;
use iolab_trace::import::counted::{Extreme, Module};
use iolab_vocab::format_bytes;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const NAMES: &[&str] = &["one-slow-rank", "rank-imbalance", "single-rank-io"];

/// Twice the time or bytes of the others is no noise.
const FACTOR: f64 = 2.0;
/// Bytes within half as much again count as the same work.
const SAME_WORK: f64 = 1.5;
/// Below this, differences among ranks cost nothing.
const NEGLIGIBLE_NS: u64 = 10_000_000;
const NEGLIGIBLE_BYTES: u64 = 1 << 20;
const SLOW_REMEDY: &str = "look at its node, at the servers that its data lie on, and at what else runs there; the others \
     wait for it at the next barrier";

pub(super) fn judge(run: &Run<'_>) -> Vec<Finding> {
    if run.counted.ranks < 2 {
        return Vec::new();
    }
    let slow = slow(run).into_iter().chain(slow_alone(run));
    let mut findings: Vec<Finding> =
        slow.max_by_key(|finding| finding.evidence.time_ns).into_iter().collect();
    findings.extend(one_does_all(run).or_else(|| uneven(run)));
    findings
}

/// Files that all ranks opened and several of them used, with their slowest rank.
fn shared<'a, 'b>(run: &'b Run<'a>) -> impl Iterator<Item = (&'b FileSum<'a>, Extreme)> {
    run.below().filter(|file| file.is_shared).filter_map(|file| {
        let extremes = file.records.iter().find_map(|record| record.extremes)?;
        Some((file, extremes[1]))
    })
}

/// A finding about one rank whose excess over the others weighs so much.
fn finding(
    run: &Run<'_>,
    rule: (&'static str, Confidence),
    (rank, excess_ns, bytes, calls): (u32, u64, u64, u64),
    message: String,
    remedy: &str,
    files: Vec<String>,
) -> Finding {
    let weight = Weight::of(calls, bytes);
    let mut finding = weight.finding(run, rule, message, remedy, files);
    let share = (excess_ns as f64 / run.counted.took_ns.max(1) as f64).min(1.0);
    finding.severity = crate::findings::Severity::of(share);
    finding.evidence.time_ns = excess_ns;
    finding.evidence.share_of_run = share;
    finding.evidence.share_of = format!("rank {rank}'s run time");
    finding.evidence.ranks = vec![i32::try_from(rank).unwrap_or(-1)];
    finding
}

fn slow(run: &Run<'_>) -> Option<Finding> {
    let ranks = u64::from(run.counted.ranks);
    let excess = |file: &FileSum<'_>, slowest: &Extreme| {
        let mean = file.ns() / ranks;
        (slowest.ns.saturating_sub(mean), mean)
    };
    let (file, slowest) = shared(run)
        .filter(|(file, slowest)| {
            let (excess, mean) = excess(file, slowest);
            let mean_bytes = file.bytes() as f64 / ranks as f64;
            excess >= NEGLIGIBLE_NS
                && slowest.ns as f64 >= FACTOR * mean as f64
                && slowest.bytes as f64 <= SAME_WORK * mean_bytes
        })
        .max_by_key(|(file, slowest)| excess(file, slowest).0)?;
    let (excess_ns, mean) = excess(file, &slowest);
    let message = format!(
        "rank {} takes {:.1} times as long as the mean of all ranks ({} against {}) and moves {}, the mean \
         being {}",
        slowest.rank,
        slowest.ns as f64 / mean.max(1) as f64,
        duration(slowest.ns),
        duration(mean),
        format_bytes(slowest.bytes),
        format_bytes(file.bytes() / ranks)
    );
    let about = (slowest.rank, excess_ns, slowest.bytes, 0);
    Some(finding(
        run,
        (NAMES[0], Confidence::Likely),
        about,
        message,
        SLOW_REMEDY,
        vec![file.path.to_owned()],
    ))
}

/// The same of files that each rank has for itself.
fn slow_alone(run: &Run<'_>) -> Option<Finding> {
    let rows = run.ranks();
    let slowest = rows.first().filter(|_| rows.len() > 1)?;
    let mean = |value: fn(&RankRow) -> u64| {
        rows.iter().map(value).fold(0, u64::saturating_add) / rows.len() as u64
    };
    let is_same =
        |value: fn(&RankRow) -> u64| value(slowest) as f64 <= SAME_WORK * mean(value) as f64;
    let mean_ns = mean(|row| row.time_ns);
    let excess_ns = slowest.time_ns.saturating_sub(mean_ns);
    if excess_ns < NEGLIGIBLE_NS
        || (slowest.time_ns as f64) < FACTOR * mean_ns as f64
        || !is_same(RankRow::bytes)
        || !is_same(|row| row.call_count)
    {
        return None;
    }
    let message = format!(
        "rank {} takes {:.1} times as long in files of its own as the mean of {} ranks ({} against {}) and \
         moves {}, the mean being {}",
        slowest.rank,
        slowest.time_ns as f64 / mean_ns.max(1) as f64,
        grouped(rows.len() as u64),
        duration(slowest.time_ns),
        duration(mean_ns),
        format_bytes(slowest.bytes()),
        format_bytes(mean(RankRow::bytes))
    );
    let about = (slowest.rank, excess_ns, slowest.bytes(), slowest.call_count);
    let rule = (NAMES[0], Confidence::Likely);
    Some(finding(run, rule, about, message, SLOW_REMEDY, Vec::new()))
}

fn bytes_of(rows: &[RankRow]) -> u64 {
    rows.iter().map(RankRow::bytes).fold(0, u64::saturating_add)
}

/// Files that MPI-IO was asked for collectively: that few ranks move the bytes of all is its decision.
fn gathered(run: &Run<'_>) -> BTreeSet<usize> {
    let above = run.of_module(Module::MpiIo);
    above.filter(|it| it.collective() > 0).map(|it| it.file).collect()
}

fn one_does_all(run: &Run<'_>) -> Option<Finding> {
    let rows = run.ranks();
    let mut all = bytes_of(&rows);
    let mut by_rank: BTreeMap<u32, (u64, u64)> =
        rows.iter().map(|row| (row.rank, (row.bytes(), row.time_ns))).collect();
    for (file, slowest) in shared(run) {
        all = all.saturating_add(file.bytes());
        if file.movers == 1 {
            let sum = by_rank.entry(slowest.rank).or_default();
            sum.0 = sum.0.saturating_add(file.bytes().min(slowest.bytes));
            sum.1 = sum.1.saturating_add(slowest.ns);
        }
    }
    let (rank, (bytes, ns)) = by_rank.into_iter().max_by_key(|(_, (bytes, _))| *bytes)?;
    if all < NEGLIGIBLE_BYTES || (bytes as f64) < 0.9 * all as f64 || !gathered(run).is_empty() {
        return None;
    }
    let message = format!(
        "rank {rank} moves {:.0} % of all bytes ({} of {}) for {} ranks",
        100.0 * bytes as f64 / all as f64,
        format_bytes(bytes),
        format_bytes(all),
        run.counted.ranks
    );
    let remedy = "let every rank (or one per node) do its part; one rank has one link and one core";
    let rule = (NAMES[2], Confidence::Certain);
    Some(finding(run, rule, (rank, ns, bytes, 0), message, remedy, Vec::new()))
}

fn uneven(run: &Run<'_>) -> Option<Finding> {
    let ranks = run.counted.ranks;
    let gathered = gathered(run);
    let rows = run.ranks_in(|file| !gathered.contains(&file.file));
    let most = rows.iter().max_by_key(|row| row.bytes());
    // Ranks of which nothing was counted did nothing.
    let mean = bytes_of(&rows) / u64::from(ranks);
    // Each rank has its part of shared files beside its own: a log that one rank keeps is little then.
    let part =
        shared(run).map(|(file, _)| file.bytes()).fold(0, u64::saturating_add) / u64::from(ranks);
    let most = most.filter(|most| {
        most.bytes() >= NEGLIGIBLE_BYTES
            && most.bytes().saturating_add(part) as f64 >= FACTOR * mean.saturating_add(part) as f64
    });
    if let Some(most) = most {
        let mean_ns =
            rows.iter().map(|row| row.time_ns).fold(0, u64::saturating_add) / u64::from(ranks);
        let message = format!(
            "rank {} moves {} in files of its own, the mean of all ranks is {}",
            most.rank,
            format_bytes(most.bytes()),
            format_bytes(mean)
        );
        let about =
            (most.rank, most.time_ns.saturating_sub(mean_ns), most.bytes(), most.call_count);
        return Some(uneven_finding(run, about, message, Vec::new()));
    }
    let (file, slowest) = shared(run)
        .filter(|(file, slowest)| {
            let mean = file.bytes() / u64::from(file.movers.max(1));
            slowest.bytes >= NEGLIGIBLE_BYTES && slowest.bytes as f64 >= FACTOR * mean as f64
        })
        .max_by_key(|(_, slowest)| slowest.ns)?;
    let message = format!(
        "rank {}, the slowest, moves {}, the mean of the ranks that take part is {}",
        slowest.rank,
        format_bytes(slowest.bytes),
        format_bytes(file.bytes() / u64::from(file.movers.max(1)))
    );
    let excess = slowest.ns.saturating_sub(file.ns() / u64::from(ranks));
    let about = (slowest.rank, excess, slowest.bytes, 0);
    Some(uneven_finding(run, about, message, vec![file.path.to_owned()]))
}

fn uneven_finding(
    run: &Run<'_>,
    about: (u32, u64, u64, u64),
    message: String,
    files: Vec<String>,
) -> Finding {
    let remedy = "divide the data evenly; the ranks with less wait for the one with most";
    finding(run, (NAMES[1], Confidence::Certain), about, message, remedy, files)
}
