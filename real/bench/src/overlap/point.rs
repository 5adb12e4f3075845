//! From what the ranks measured to what is reported: arithmetic only, no clock.
//!
//! Nothing is clamped: a loss shows as a ratio above 1, an I/O that got faster beside computation
//! as an inflation below 1.

use crate::statistics::{Interval, interval_of_mean, interval_of_median, mean, median, range};
use serde::{Deserialize, Serialize};

/// A quality above this marks a run that must not be averaged (Büttner 2007).
pub const QUALITY_LIMIT: f64 = 0.11;

/// What others found, to compare with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// Average ratio at equality of computation and I/O: the best and the worst setting.
    pub ratios: Interval,
    /// Which settings these are.
    pub settings: String,
    /// Who published it.
    pub source: String,
}

impl Reference {
    /// Twenty cases on PVFS2.
    pub fn published() -> Reference {
        Reference {
            ratios: Interval { low: 0.53, high: 0.75 },
            settings: "PVFS2, averages of 20 cases: 0.53 with 4 servers, 1 client and 2 CPUs per \
                       client, 0.75 with 1 CPU per client"
                .to_owned(),
            source: "Büttner, non-blocking I/O benchmark, Heidelberg 2007".to_owned(),
        }
    }
}

/// In theory: what is longer over both together.
pub fn theory(compute: f64, io: f64) -> f64 {
    if compute + io > 0.0 { compute.max(io) / (compute + io) } else { 1.0 }
}

/// Both phases of one repetition on one rank. Nanoseconds; per operation unless said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RankSample {
    /// All operations of the non-blocking phases, barrier to barrier.
    pub(crate) nonblocking_phase: u64,
    /// The same of the blocking ones.
    pub(crate) blocking_phase: u64,
    /// Computation beside I/O.
    pub(crate) compute_n: f64,
    /// Computation alone.
    pub(crate) compute_b: f64,
    /// I/O beside computation, where the end of every operation was seen.
    pub(crate) io_n: Option<f64>,
    /// I/O alone.
    pub(crate) io_b: f64,
    pub(crate) start: f64,
    pub(crate) wait: f64,
    /// Bytes of the non-blocking phases.
    pub(crate) bytes: u64,
    /// Calibration tries.
    pub(crate) tries: u32,
    /// What calibration ended with.
    pub(crate) difference: f64,
    pub(crate) error: Option<(String, String)>,
}

/// A value over ranks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Average over ranks.
    pub mean: f64,
    /// Of the rank with the smallest.
    pub min: f64,
    /// Of the rank with the largest.
    pub max: f64,
    /// 95 % interval of the mean over ranks; of one or two ranks their range.
    pub interval: Interval,
}

impl Spread {
    fn of(values: &[f64]) -> Spread {
        let Interval { low: min, high: max } = range(values);
        Spread { mean: mean(values), min, max, interval: interval_of_mean(values) }
    }
}

/// One repetition at one ratio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverlapPoint {
    /// Which case of the plan.
    pub case: usize,
    /// Compute over I/O as wanted.
    pub wanted: f64,
    /// Compute over I/O as it was, both alone; none when there was no I/O.
    pub compute_over_io: Option<f64>,
    /// Which repetition.
    pub repetition: u32,
    /// Time of the non-blocking phase over that of the blocking one.
    pub ratio: Spread,
    /// What it would be in theory at this `compute_over_io`.
    pub theory: f64,
    /// |io − compute| / io, against the wanted multiple of the I/O.
    pub quality: Spread,
    /// Whether the quality of every rank allows it to be averaged.
    pub usable: bool,
    /// Operations of each phase.
    pub operations: u64,
    /// Bytes moved in the non-blocking phase by all ranks.
    pub bytes: u64,
    /// Nanoseconds of the phases.
    pub nonblocking_ns: Spread,
    /// As above.
    pub blocking_ns: Spread,
    /// Nanoseconds of an operation's computation alone.
    pub compute_ns: Spread,
    /// And of its I/O alone.
    pub io_ns: Spread,
    /// Computation beside I/O.
    pub compute_beside_ns: Spread,
    /// I/O beside computation, where the end of every operation was seen.
    pub io_beside_ns: Option<Spread>,
    /// Compute time beside I/O over compute time alone.
    pub compute_inflation: Spread,
    /// I/O time beside computation over I/O alone, where it is known.
    pub io_inflation: Option<Spread>,
    /// Nanoseconds to start an operation.
    pub start_ns: Spread,
    /// Nanoseconds to wait for it after computing.
    pub wait_ns: Spread,
    /// Calibration tries.
    pub tries: u32,
    /// How far the last try of the worst rank was off, as a share.
    pub difference: f64,
}

/// A quotient; 1 when both are nothing.
fn over(part: f64, whole: f64) -> f64 {
    match whole > 0.0 {
        true => part / whole,
        false if part > 0.0 => f64::INFINITY,
        false => 1.0,
    }
}

/// How far the computation was from the wanted multiple of what calibration fitted it to.
fn quality(sample: &RankSample, place: &Place) -> f64 {
    let io = sample.io_n.filter(|_| place.sees_ends).unwrap_or(sample.io_b);
    let target = if place.has_io { io * place.wanted } else { 0.0 };
    if target > 0.0 { (sample.compute_n - target).abs() / target } else { 0.0 }
}

/// Where a point stands in the plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) case: usize,
    pub(crate) wanted: f64,
    pub(crate) repetition: u32,
    pub(crate) operations: u64,
    /// Whether the case moves anything; without, there is nothing that the computation could fit.
    pub(crate) has_io: bool,
    /// Whether the way of being non-blocking shows every end, so that the computation was fitted
    /// to the I/O beside it, else to I/O alone.
    pub(crate) sees_ends: bool,
}

/// What the samples of all ranks make together.
pub(crate) fn point(place: Place, ranks: &[RankSample]) -> OverlapPoint {
    let spread = |value: &dyn Fn(&RankSample) -> f64| {
        Spread::of(&ranks.iter().map(value).collect::<Vec<_>>())
    };
    let (compute_ns, io_ns) = (spread(&|r| r.compute_b), spread(&|r| r.io_b));
    let seen = place.has_io && ranks.iter().all(|rank| rank.io_n.is_some());
    let beside = |r: &RankSample| r.io_n.unwrap_or(0.0);
    let quality = spread(&|r| quality(r, &place));
    OverlapPoint {
        case: place.case,
        wanted: place.wanted,
        compute_over_io: place.has_io.then(|| over(compute_ns.mean, io_ns.mean)),
        repetition: place.repetition,
        ratio: spread(&|r| over(r.nonblocking_phase as f64, r.blocking_phase as f64)),
        theory: if place.has_io { theory(compute_ns.mean, io_ns.mean) } else { 1.0 },
        usable: quality.max <= QUALITY_LIMIT,
        quality,
        operations: place.operations,
        bytes: ranks.iter().map(|r| r.bytes).sum(),
        nonblocking_ns: spread(&|r| r.nonblocking_phase as f64),
        blocking_ns: spread(&|r| r.blocking_phase as f64),
        compute_ns,
        io_ns,
        compute_beside_ns: spread(&|r| r.compute_n),
        io_beside_ns: seen.then(|| spread(&beside)),
        compute_inflation: spread(&|r| over(r.compute_n, r.compute_b)),
        io_inflation: seen.then(|| spread(&|r| over(beside(r), r.io_b))),
        start_ns: spread(&|r| r.start),
        wait_ns: spread(&|r| r.wait),
        tries: ranks.iter().map(|r| r.tries).max().unwrap_or(0),
        difference: ranks.iter().map(|r| r.difference).fold(0.0, f64::max),
    }
}

/// A value over repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The middle one.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// 95 % interval of the median.
    pub interval: Interval,
}

impl Estimate {
    fn of(values: &[f64]) -> Estimate {
        let Interval { low: min, high: max } = range(values);
        Estimate { median: median(values), min, max, interval: interval_of_median(values) }
    }
}

/// The usable repetitions of one ratio of one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverlapSummary {
    /// Which case of the plan.
    pub case: usize,
    /// Compute over I/O as wanted.
    pub wanted: f64,
    /// Usable repetitions, and all of them.
    pub usable: usize,
    /// As above.
    pub repetitions: usize,
    /// What was measured; none without a usable repetition.
    pub found: Option<Found>,
}

/// Over the usable repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Compute over I/O as it was.
    pub compute_over_io: Option<f64>,
    /// Non-blocking over blocking.
    pub ratio: Estimate,
    /// The same in theory.
    pub theory: f64,
    /// The median of ratio / theory − 1 of each repetition.
    pub off_theory: f64,
    /// Computation beside I/O over computation alone.
    pub compute_inflation: Estimate,
    /// I/O beside computation over I/O alone.
    pub io_inflation: Option<Estimate>,
    /// Nanoseconds.
    pub start_ns: Estimate,
    /// Nanoseconds.
    pub wait_ns: Estimate,
}

impl Found {
    fn of(points: &[&OverlapPoint]) -> Option<Found> {
        if points.is_empty() {
            return None;
        }
        let pick = |value: &dyn Fn(&OverlapPoint) -> f64| -> Vec<f64> {
            points.iter().map(|point| value(point)).collect()
        };
        let known = |value: &dyn Fn(&OverlapPoint) -> Option<f64>| -> Vec<f64> {
            points.iter().filter_map(|point| value(point)).collect()
        };
        let present = |values: Vec<f64>| (!values.is_empty()).then_some(values);
        Some(Found {
            compute_over_io: present(known(&|p| p.compute_over_io)).map(|values| median(&values)),
            ratio: Estimate::of(&pick(&|p| p.ratio.mean)),
            theory: median(&pick(&|p| p.theory)),
            off_theory: median(&pick(&|p| p.ratio.mean / p.theory - 1.0)),
            compute_inflation: Estimate::of(&pick(&|p| p.compute_inflation.mean)),
            io_inflation: present(known(&|p| p.io_inflation.map(|io| io.mean)))
                .map(|values| Estimate::of(&values)),
            start_ns: Estimate::of(&pick(&|p| p.start_ns.mean)),
            wait_ns: Estimate::of(&pick(&|p| p.wait_ns.mean)),
        })
    }
}

/// The usable repetitions of each ratio of each case together, in the order of measuring.
pub fn overlap_summaries(points: &[OverlapPoint]) -> Vec<OverlapSummary> {
    let mut keys: Vec<(usize, f64)> = points.iter().map(|p| (p.case, p.wanted)).collect();
    keys.dedup();
    let summary = |(case, wanted): (usize, f64)| {
        let all = points.iter().filter(|p| p.case == case && p.wanted == wanted);
        let (usable, rest): (Vec<_>, Vec<_>) = all.partition(|point| point.usable);
        let repetitions = usable.len() + rest.len();
        OverlapSummary {
            case,
            wanted,
            usable: usable.len(),
            repetitions,
            found: Found::of(&usable),
        }
    };
    keys.into_iter().map(summary).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(compute: (f64, f64), io: (Option<f64>, f64)) -> RankSample {
        RankSample {
            nonblocking_phase: 600,
            blocking_phase: 1000,
            compute_n: compute.0,
            compute_b: compute.1,
            io_n: io.0,
            io_b: io.1,
            start: 5.0,
            wait: 7.0,
            bytes: 64,
            tries: 4,
            difference: 0.02,
            error: None,
        }
    }

    const EQUAL: Place =
        Place { case: 0, wanted: 1.0, repetition: 0, operations: 1, has_io: true, sees_ends: true };

    #[test]
    fn quality_compares_what_ran_at_the_same_time() {
        // 115 of computation next to 110 of I/O, although I/O alone takes 100.
        let beside = point(EQUAL, &[sample((115.0, 100.0), (Some(110.0), 100.0))]);
        assert!((beside.quality.mean - 5.0 / 110.0).abs() < 1e-12);
        assert!(beside.usable);
        // Where the end of the I/O is not always seen, I/O alone has to do.
        let blind = Place { sees_ends: false, ..EQUAL };
        let by_chance = point(blind, &[sample((115.0, 100.0), (Some(110.0), 100.0))]);
        assert!((by_chance.quality.mean - 0.15).abs() < 1e-12);
        assert!(by_chance.io_inflation.is_some());
        let unseen = point(blind, &[sample((115.0, 100.0), (None, 100.0))]);
        assert!((unseen.quality.mean - 0.15).abs() < 1e-12);
        assert!(!unseen.usable && unseen.io_inflation.is_none() && unseen.io_beside_ns.is_none());
        let twice = point(Place { wanted: 2.0, ..EQUAL }, &[sample((220.0, 1.0), (None, 100.0))]);
        assert!((twice.quality.mean - 0.1).abs() < 1e-12);
    }

    #[test]
    fn ranks_are_averaged_with_their_extremes_and_the_worst_decides() {
        let good = sample((100.0, 80.0), (Some(100.0), 100.0));
        let bad = RankSample { difference: 0.3, ..sample((150.0, 100.0), (Some(100.0), 50.0)) };
        let point = point(EQUAL, &[good, bad]);
        assert_eq!(
            (point.compute_ns.mean, point.compute_ns.min, point.compute_ns.max),
            (90.0, 80.0, 100.0)
        );
        let io = point.io_inflation.expect("seen on both");
        assert_eq!((io.mean, io.min, io.max), (1.5, 1.0, 2.0));
        assert_eq!((point.quality.max, point.usable, point.difference), (0.5, false, 0.3));
        assert_eq!((point.bytes, point.ratio.mean), (128, 0.6));
        assert_eq!(point.compute_over_io, Some(90.0 / 75.0));
    }

    #[test]
    fn losses_and_speedups_are_not_clamped() {
        let loss =
            RankSample { nonblocking_phase: 3000, ..sample((50.0, 100.0), (Some(40.0), 80.0)) };
        let point = point(EQUAL, &[loss]);
        assert_eq!((point.ratio.mean, point.compute_inflation.mean), (3.0, 0.5));
        assert_eq!(point.io_inflation.map(|io| io.mean), Some(0.5));
    }

    #[test]
    fn theory_is_half_at_equality_and_one_where_there_is_only_one_of_them() {
        assert_eq!(theory(1.0, 1.0), 0.5);
        assert_eq!((theory(1.0, 0.0), theory(0.0, 1.0), theory(0.0, 0.0)), (1.0, 1.0, 1.0));
        assert!((theory(10.0, 1.0) - theory(1.0, 10.0)).abs() < 1e-12);
    }

    #[test]
    fn what_is_not_usable_is_counted_and_not_averaged() {
        let good = point(EQUAL, &[sample((100.0, 100.0), (Some(100.0), 100.0))]);
        let mut bad = point(EQUAL, &[sample((200.0, 100.0), (Some(100.0), 100.0))]);
        bad.ratio = Spread::of(&[99.0]);
        let other = point(Place { wanted: 2.0, ..EQUAL }, &[sample((1.0, 1.0), (None, 100.0))]);
        let summaries = overlap_summaries(&[good.clone(), bad, good, other]);
        assert_eq!((summaries[0].usable, summaries[0].repetitions), (2, 3));
        let found = summaries[0].found.as_ref().expect("two are usable");
        assert_eq!((found.ratio.median, found.ratio.max, found.theory), (0.6, 0.6, 0.5));
        assert!((found.off_theory - 0.2).abs() < 1e-12);
        assert_eq!((summaries[1].usable, &summaries[1].found), (0, &None));
    }
}
