//! What a run found: one document, complete enough to be repeated and compared.

use crate::plan::Case;
use crate::progress::Incomplete;
use crate::statistics::{Interval, interval_of_median, median};
use crate::surroundings::Surroundings;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Latencies of single operations, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Latency {
    pub count: u64,
    pub mean: f64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p999: u64,
    pub max: u64,
}

impl Latency {
    /// The percentiles of a histogram, if it holds anything.
    pub fn of(histogram: &Histogram<u64>) -> Option<Latency> {
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
}

/// What one rank measured in one phase. Times in nanoseconds.
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
}

/// One phase of one repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Name of the test in the plan.
    pub test: String,
    /// The pattern with its parameters.
    pub spatial: String,
    /// What is done.
    pub temporal: String,
    /// How.
    pub method: String,
    /// Which phase of it.
    pub phase: String,
    /// The swept size.
    pub size: Option<u64>,
    /// Share in a weighted score.
    pub weight: f64,
    /// Counted from 0; the first is shown apart.
    pub repetition: u32,
    /// How many ranks took part.
    pub ranks: u32,
    /// Bytes of all ranks.
    pub bytes: u64,
    /// Operations of all ranks.
    pub operations: u64,
    /// S + T + B2 on rank 0: from the end of the first barrier to the end of the second.
    pub transfer_ns: u64,
    /// The longest open and the longest close.
    pub open_ns: u64,
    /// The longest wait for the device, part of `transfer_ns`.
    pub sync_ns: u64,
    /// The longest close.
    pub close_ns: u64,
    /// Open, transfer and close.
    pub total_ns: u64,
    /// The barrier before the phase, on rank 0; not counted.
    pub barrier_before_ns: u64,
    /// What a barrier costs when all ranks come at once.
    pub barrier_cost_ns: u64,
    /// Between the first and the last rank to leave the first barrier, where all ranks share a clock.
    pub skew_ns: Option<u64>,
    /// When the first rank was done.
    pub first_done_ns: u64,
    /// When the last rank was done.
    pub last_done_ns: u64,
    /// CPU time of all ranks.
    pub cpu_ns: u64,
    /// Bandwidth in MiB/s by `transfer_ns`.
    pub mib_per_second: f64,
    /// Operations per second by `transfer_ns`.
    pub operations_per_second: f64,
    /// Latencies over all ranks.
    pub latency: Option<Latency>,
    /// Transfers the system cut short and that were continued.
    pub short: u64,
    /// The state of the cache that was found before the phase.
    pub cache: String,
    /// For writes: whether space was allocated or overwritten.
    pub allocation: String,
    /// Bytes read back and found right.
    pub verified: Option<u64>,
    /// Why this result must not be used.
    pub invalid: Option<String>,
    /// Nanoseconds until done, by rank.
    pub done_by_rank_ns: Vec<u64>,
    /// The platform it was predicted on instead of measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<String>,
    /// Least and greatest of `transfer_ns` over the orders of simultaneous events of a prediction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_range_ns: Option<(u64, u64)>,
}

impl Measurement {
    /// Puts in what it is a measurement of.
    pub(crate) fn name(&mut self, case: &Case, repetition: u32) {
        self.test.clone_from(&case.test);
        self.spatial = case.spatial.text();
        self.temporal = case.temporal.name().to_owned();
        self.method = case.method.name.to_owned();
        self.size = case.size;
        self.weight = case.weight;
        self.repetition = repetition;
    }
}

/// A case that was not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The test it came from.
    pub test: String,
    /// The pattern.
    pub spatial: String,
    /// What should be done.
    pub temporal: String,
    /// How.
    pub method: String,
    /// Why not.
    pub reason: String,
}

/// All repetitions of one phase together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The first measurement of it, for the names.
    pub test: String,
    /// The pattern.
    pub spatial: String,
    /// The phase.
    pub phase: String,
    /// The method.
    pub method: String,
    /// The swept size.
    pub size: Option<u64>,
    /// MiB/s of the first repetition.
    pub first: f64,
    /// Median MiB/s of the others (of all when there is only one).
    pub median: f64,
    /// Its interval.
    pub interval: Interval,
    /// How many repetitions the median is of.
    pub repetitions: usize,
}

/// The result document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Always `iolab-bench`.
    pub format: String,
    /// Version of this document's form.
    pub format_version: u32,
    /// Version of iolab.
    pub version: String,
    /// The command line.
    pub command: Vec<String>,
    /// The plan as TOML, complete.
    pub plan: String,
    /// The seed.
    pub seed: u64,
    /// How many ranks, and what they are.
    pub ranks: u32,
    /// What carries the ranks' conversation: threads, processes or an MPI library.
    pub communication: String,
    /// Where latencies come from, and what one stamp costs in nanoseconds.
    pub clock: String,
    /// Nanoseconds of one stamp.
    pub clock_cost_ns: f64,
    /// Host and file system.
    pub surroundings: Surroundings,
    /// Things to know before using the numbers.
    pub warnings: Vec<String>,
    /// Every phase of every repetition.
    pub measurements: Vec<Measurement>,
    /// What was not run.
    pub refused: Vec<Refused>,
    /// Repetitions together.
    pub summaries: Vec<Summary>,
    /// Why the run ended before its plan, if it did, and what it lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<Incomplete>,
}

impl Outcome {
    /// The first reason why a result must not be used.
    pub fn invalid(&self) -> Option<&str> {
        self.measurements.iter().find_map(|measurement| measurement.invalid.as_deref())
    }
}

/// Puts the repetitions of each phase together, in order of first appearance.
pub(crate) fn summarise(measurements: &[Measurement]) -> Vec<Summary> {
    let key = |m: &Measurement| {
        (m.test.clone(), m.spatial.clone(), m.temporal.clone(), m.phase.clone(), m.method.clone())
    };
    let mut keys = Vec::new();
    for measurement in measurements {
        if !keys.contains(&key(measurement)) {
            keys.push(key(measurement));
        }
    }
    keys.iter()
        .filter_map(|wanted| {
            let group: Vec<_> = measurements.iter().filter(|m| key(m) == *wanted).collect();
            group.first().map(|first| summary(first, &group))
        })
        .collect()
}

fn summary(first: &Measurement, group: &[&Measurement]) -> Summary {
    let speed = |m: &&Measurement| match m.bytes {
        0 => m.operations_per_second,
        _ => m.mib_per_second,
    };
    let all: Vec<f64> = group.iter().map(speed).collect();
    let rest = if all.len() > 1 { &all[1..] } else { &all[..] };
    Summary {
        test: first.test.clone(),
        spatial: first.spatial.clone(),
        phase: first.phase.clone(),
        method: first.method.clone(),
        size: first.size,
        first: all[0],
        median: median(rest),
        interval: interval_of_median(rest),
        repetitions: rest.len(),
    }
}
