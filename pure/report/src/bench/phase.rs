//! One phase of the benchmark: what each rank measured, and the measurement that all of it makes.
//!
//! Times are of the phase of all ranks, by the rule of [`phase_time`]; bytes and operations are sums;
//! opening, syncing and closing count as long as the slowest rank took. Latencies of all ranks go
//! into one histogram of three digits, 264 KiB for an hour in nanoseconds.

use super::{Latency, Measurement, Stamps, phase_time};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The longest latency told apart: one hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Room for latencies in nanoseconds, to three digits.
pub fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are constants that fit")
}

/// Times of one rank in one phase, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankTimes {
    /// Opening the file.
    pub open_ns: u64,
    /// In the barrier before the phase.
    pub barrier_ns: u64,
    /// CLOCK_MONOTONIC when it left that barrier; comparable on one host only.
    pub left_barrier: u64,
    /// From there until its last operation was done.
    pub done_ns: u64,
    /// Bringing the data to the device afterwards.
    pub sync_ns: u64,
    /// From leaving the first barrier to leaving the second.
    pub phase_ns: u64,
    /// Closing the file.
    pub close_ns: u64,
    /// CPU time of the phase, user and system.
    pub cpu_ns: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Operations done.
    pub operations: u64,
    /// Transfers the system cut short.
    pub short: u64,
    /// Latencies as (nanoseconds, count).
    pub latencies: Vec<(u64, u64)>,
    /// What went wrong, and the way out.
    pub error: Option<(String, String)>,
}

impl RankTimes {
    /// Nothing measured.
    pub const NONE: RankTimes = RankTimes {
        open_ns: 0,
        barrier_ns: 0,
        left_barrier: 0,
        done_ns: 0,
        sync_ns: 0,
        phase_ns: 0,
        close_ns: 0,
        cpu_ns: 0,
        bytes: 0,
        operations: 0,
        short: 0,
        latencies: Vec::new(),
        error: None,
    };

    /// The moments that bound the phase.
    fn stamps(&self) -> Stamps {
        Stamps {
            entered: self.left_barrier.saturating_sub(self.barrier_ns),
            left: self.left_barrier,
            ended: self.left_barrier + self.done_ns + self.sync_ns,
            released: self.left_barrier + self.phase_ns,
        }
    }
}

/// What a phase is called and what is known about it beforehand.
#[derive(Clone, Debug, Default)]
pub struct PhaseLabel {
    /// Its name: `write`, `re-read`.
    pub phase: String,
    /// The state of the caches before it.
    pub cache: String,
    /// Whether blocks of the file are new or there already.
    pub allocation: String,
}

/// The measurement that the times of all ranks make; names are filled in by the caller.
pub fn measurement(
    times: &[RankTimes],
    label: &PhaseLabel,
    barrier_cost_ns: u64,
    one_clock: bool,
) -> Measurement {
    let sum = |field: fn(&RankTimes) -> u64| times.iter().map(field).sum::<u64>();
    let most = |field: fn(&RankTimes) -> u64| times.iter().map(field).max().unwrap_or(0);
    let stamps: Vec<_> = times.iter().map(RankTimes::stamps).collect();
    let phase = phase_time(&stamps, one_clock);
    let transfer_ns = phase.ns;
    let start = |rank: usize| phase.starts.as_ref().map_or(0, |starts| starts[rank]);
    let done: Vec<u64> = times.iter().enumerate().map(|(r, t)| start(r) + t.done_ns).collect();
    let (open_ns, close_ns) = (most(|t| t.open_ns), most(|t| t.close_ns));
    let mut all = latencies();
    for &(value, count) in times.iter().flat_map(|rank| &rank.latencies) {
        all.saturating_record_n(value, count);
    }
    let seconds = transfer_ns as f64 / 1e9;
    let (bytes, operations) = (sum(|t| t.bytes), sum(|t| t.operations));
    let mut made = Measurement {
        test: String::new(),
        spatial: String::new(),
        temporal: String::new(),
        method: String::new(),
        phase: label.phase.clone(),
        size: None,
        weight: 1.0,
        repetition: 0,
        ranks: times.len() as u32,
        bytes,
        operations,
        transfer_ns,
        open_ns,
        sync_ns: most(|t| t.sync_ns),
        close_ns,
        total_ns: open_ns + transfer_ns + close_ns,
        barrier_before_ns: times.first().map_or(0, |rank| rank.barrier_ns),
        barrier_cost_ns,
        skew_ns: phase.starts.as_ref().and_then(|starts| starts.iter().copied().max()),
        first_done_ns: done.iter().copied().min().unwrap_or(0),
        last_done_ns: done.iter().copied().max().unwrap_or(0),
        transfer_slack_ns: Some(phase.slack_ns),
        cpu_ns: sum(|t| t.cpu_ns),
        mib_per_second: bytes as f64 / f64::from(1 << 20) / seconds,
        operations_per_second: operations as f64 / seconds,
        latency: latency(&all),
        short: sum(|t| t.short),
        cache: label.cache.clone(),
        allocation: label.allocation.clone(),
        verified: None,
        invalid: None,
        done_by_rank_ns: times.iter().map(|rank| rank.done_ns).collect(),
        start_by_rank_ns: phase.starts,
        bytes_by_rank: times.iter().map(|rank| rank.bytes).collect(),
        settings: BTreeMap::new(),
        predicted: None,
        predicted_range_ns: None,
    };
    // Held to every phase of every result: a phase is no shorter than what a rank did in it.
    made.invalid = made.contradiction();
    made
}

/// The percentiles of a histogram, if it holds anything.
fn latency(histogram: &Histogram<u64>) -> Option<Latency> {
    (!histogram.is_empty()).then(|| Latency {
        count: histogram.len(),
        mean: histogram.mean(),
        p50: histogram.value_at_quantile(0.5),
        p90: histogram.value_at_quantile(0.9),
        p99: histogram.value_at_quantile(0.99),
        p999: histogram.value_at_quantile(0.999),
        max: histogram.max(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rank that came to the barrier, left it, worked and was released at these moments.
    fn rank(entered: u64, left: u64, done: u64, released: u64) -> RankTimes {
        RankTimes {
            barrier_ns: left - entered,
            left_barrier: left,
            done_ns: done - left,
            phase_ns: released - left,
            bytes: 1 << 20,
            operations: 1,
            ..RankTimes::default()
        }
    }

    #[test]
    fn no_phase_is_shorter_than_the_work_of_a_rank_when_rank_0_leaves_the_barrier_late() {
        let late = [rank(0, 900_000, 950_000, 1_010_000), rank(5, 10_000, 1_000_000, 1_000_500)];
        for one_clock in [true, false] {
            let made = measurement(&late, &PhaseLabel::default(), 0, one_clock);
            assert!(made.transfer_ns >= 990_000, "{one_clock}: {}", made.transfer_ns);
            assert!(made.mib_per_second <= 2.0 / 0.000_99, "{}", made.mib_per_second);
            assert_eq!((made.contradiction(), &made.invalid), (None, &None));
        }
        let made = measurement(&late, &PhaseLabel::default(), 0, true);
        assert_eq!((made.skew_ns, made.last_done_ns), (Some(890_000), 990_000));
        assert_eq!(made.transfer_slack_ns, Some(500));
    }

    #[test]
    fn times_that_contradict_each_other_are_found() {
        let made = measurement(&[rank(0, 1, 500, 600)], &PhaseLabel::default(), 0, true);
        let wrong = Measurement { transfer_ns: 100, ..made };
        assert!(wrong.contradiction().is_some_and(|why| why.contains("rank 0")));
    }
}
