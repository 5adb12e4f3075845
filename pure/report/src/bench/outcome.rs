//! What a run of the benchmark found: one document, complete enough to be repeated and compared.
//!
//! Version 1 counted a phase on rank 0 alone and had neither settings, starts nor bytes by rank;
//! such documents are still read ([`Measurement::contradiction`] finds the phases that were wrong).

use crate::statistics::Interval;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the document that is written now.
pub const FORMAT_VERSION: u32 = 2;

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
    /// An upper bound of the time from the first rank's start to the last rank's end, the second
    /// barrier counted. Version 1: as rank 0 saw it, which may be too short.
    pub transfer_ns: u64,
    /// By how much at most `transfer_ns` is longer than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer_slack_ns: Option<u64>,
    /// The longest open.
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
    /// When the first rank was done, after the first one's start (after its own, where ranks have
    /// clocks of their own, and in version 1).
    pub first_done_ns: u64,
    /// When the last rank was done, counted likewise.
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
    /// Bytes found right: what was written read back, and what was read in the timed phase.
    pub verified: Option<u64>,
    /// Why this result must not be used.
    pub invalid: Option<String>,
    /// Nanoseconds from its own start until done, by rank.
    pub done_by_rank_ns: Vec<u64>,
    /// Start of each rank after the first one's, where all ranks share a clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_by_rank_ns: Option<Vec<u64>>,
    /// Bytes moved, by rank.
    #[serde(default)]
    pub bytes_by_rank: Vec<u64>,
    /// Every setting that this phase was measured under, by name. Two phases are alike when all of
    /// them are, and what surrounded them too.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// The platform it was predicted on instead of measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<String>,
    /// Least and greatest of `transfer_ns` over the orders of simultaneous events of a prediction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_range_ns: Option<(u64, u64)>,
}

impl Measurement {
    /// What the phase moved in a second, and in which unit: operations where no bytes move.
    pub fn speed(&self) -> (f64, &'static str) {
        match self.bytes {
            0 => (self.operations_per_second, "op/s"),
            _ => (self.mib_per_second, "MiB/s"),
        }
    }

    /// Why these times cannot be true, if they cannot: no phase is shorter than what a rank did in
    /// it. Held to every phase when it is measured, and to every document that is read.
    pub fn contradiction(&self) -> Option<String> {
        let own = |(rank, ns): (usize, &u64)| (*ns, format!("the work of rank {rank}"));
        let works = self.done_by_rank_ns.iter().enumerate().map(own);
        let parts = [
            (self.last_done_ns, "the time until the last rank was done".to_owned()),
            (self.sync_ns, "the wait for the device".to_owned()),
            (
                self.latency.map_or(0, |latency| latency.max) / 1000 * 998,
                "one operation".to_owned(),
            ),
        ];
        let (longest, what) = parts.into_iter().chain(works).max_by_key(|(ns, _)| *ns)?;
        // Latencies are taken with another counter, and rounded up by their histogram.
        (longest > self.transfer_ns.max(1)).then(|| {
            format!("the phase ({} ns) is shorter than {what} ({longest} ns)", self.transfer_ns)
        })
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

/// All repetitions of one phase together: of what is alike in every setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Phase, pattern, method and whatever else tells it from the others of this result.
    #[serde(default)]
    pub label: String,
    /// Name of the test in the plan.
    pub test: String,
    /// The pattern.
    pub spatial: String,
    /// The phase.
    pub phase: String,
    /// The method.
    pub method: String,
    /// The swept size.
    pub size: Option<u64>,
    /// What the speeds are of: MiB/s, or op/s where no bytes move.
    #[serde(default)]
    pub unit: String,
    /// Speed of the first repetition.
    pub first: f64,
    /// Median of the others (of all when there is only one).
    pub median: f64,
    /// How far they are apart, and what is known of the median: see `kind`.
    pub interval: Interval,
    /// How many repetitions the median is of.
    pub repetitions: usize,
    /// The rank that needed longest, and how many times as long as the median of the others; the
    /// median over all repetitions.
    #[serde(default)]
    pub slowest: Option<(u32, f64)>,
}

/// Where a run took place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Surroundings {
    /// Name of the host of rank 0.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// Processors of that host.
    pub processors: usize,
    /// Type of the target's file system.
    pub file_system: String,
    /// Where that file system is mounted.
    pub mount_point: String,
    /// With which options.
    pub mount_options: String,
    /// When, as seconds since 1970.
    pub started: u64,
    /// What a system call, a fresh page and a copy cost there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
}

/// What the machine asks for the smallest things a benchmark does: ratios mean little without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// Nanoseconds of a system call that does nothing.
    pub call_ns: f64,
    /// Nanoseconds to touch a page of fresh memory.
    pub page_ns: f64,
    /// MiB per second of copying in memory, by one processor: nothing that is copied is faster.
    pub copy_mib_per_second: f64,
}

impl Prices {
    /// What the smallest things cost where something was measured.
    pub fn sentence(&self) -> String {
        format!(
            "a system call costs {:.0} ns there, a fresh page {:.0} ns, copying runs at {:.0} GiB/s",
            self.call_ns,
            self.page_ns,
            self.copy_mib_per_second / 1024.0
        )
    }
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
/// Why a run ended before its plan did, and what it has not measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incomplete {
    /// What ended it.
    pub reason: String,
    /// The cases of the plan that lack repetitions, each in a line.
    pub missing: Vec<String>,
}

impl Incomplete {
    /// What is to be told beside the reason.
    pub fn words(&self) -> String {
        const SHOWN: usize = 8;
        let shown: Vec<&str> = self.missing.iter().take(SHOWN).map(String::as_str).collect();
        let more = match self.missing.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!("\n  and {more} more"),
        };
        format!("not measured:\n  {}{more}", shown.join("\n  "))
    }
}

impl Outcome {
    /// The first reason why a result must not be used.
    pub fn invalid(&self) -> Option<&str> {
        self.measurements.iter().find_map(|measurement| measurement.invalid.as_deref())
    }
}
