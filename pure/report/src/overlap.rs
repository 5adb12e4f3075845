//! The overlap benchmark: from what the ranks measured to what is reported, and what may be said.
//!
//! Nothing is clamped: a loss shows as a ratio above 1, an I/O that got faster beside computation
//! as an inflation below 1. A phase is of all ranks, from the first one's start to the last one's end
//! ([`crate::bench::phase_time`]); what a single rank gained stands beside it.
//!
//! A gain or a loss is stated by the rules of [`crate::evidence`]. Its null hypothesis: non-blocking and
//! blocking turns take times of the same distribution, up to 3 % (Wilcoxon's signed ranks over
//! pairs of turns that were measured one after the other).

mod outcome;
mod plot;
mod table;
mod timeline;

use crate::bench::{Stamps, phase_time};
use crate::evidence::{Evidence, halves_change, signed_rank};
use crate::statistics::{Interval, mean, median};
use serde::{Deserialize, Serialize};

pub use outcome::{AsyncMode, CaseEntry, Load, OverlapOutcome};
pub use plot::overlap_plot;
pub use table::{overlap_csv, overlap_header, overlap_row, overlap_text};
pub use timeline::{Lane, Span, function_of, timeline};

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
            ratios: Interval::range(&[0.53, 0.75]),
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

/// A few operations of both phases on one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Started, computed, waited for.
    pub nonblocking: Stamps,
    /// One after the other.
    pub blocking: Stamps,
}

/// Both phases of one repetition on one rank. Nanoseconds; per operation unless said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankSample {
    /// The turns of both phases, in order.
    pub turns: Vec<Turn>,
    /// Computation beside I/O.
    pub compute_n: f64,
    /// Computation alone.
    pub compute_b: f64,
    /// I/O beside computation, where the end of every operation was seen.
    pub io_n: Option<f64>,
    /// I/O alone.
    pub io_b: f64,
    /// Starting an operation.
    pub start: f64,
    /// Waiting for it after computing.
    pub wait: f64,
    /// Bytes of the non-blocking phases.
    pub bytes: u64,
    /// Calibration tries.
    pub tries: u32,
    /// What calibration ended with.
    pub difference: f64,
    /// What went wrong, and the way out.
    pub error: Option<(String, String)>,
}

impl RankSample {
    /// Its own work in all turns of the non-blocking, and of the blocking phase.
    fn work(&self) -> (f64, f64) {
        let sum = |of: fn(&Turn) -> u64| self.turns.iter().map(of).sum::<u64>() as f64;
        (sum(|turn| turn.nonblocking.work()), sum(|turn| turn.blocking.work()))
    }
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
    /// The range over ranks, or the interval of their median: see its `kind`.
    pub interval: Interval,
}

impl Spread {
    fn of(values: &[f64]) -> Spread {
        let Interval { low: min, high: max, .. } = Interval::range(values);
        Spread { mean: mean(values), min, max, interval: Interval::of_median(values) }
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
    /// Time of the non-blocking phase over that of the blocking one, each of all ranks. Version 1
    /// has none.
    #[serde(default)]
    pub phase_ratio: Option<f64>,
    /// The same of the work of each rank for itself.
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
    /// Nanoseconds of the turns of both phases, each of all ranks from the first one's start to the
    /// last one's end: non-blocking and blocking.
    #[serde(default)]
    pub turns_ns: Vec<(u64, u64)>,
    /// Nanoseconds of a rank's own work in the non-blocking phase. Version 1: barrier to barrier.
    pub nonblocking_ns: Spread,
    /// And in the blocking one.
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

impl OverlapPoint {
    /// Time of the non-blocking phase over that of the blocking one.
    pub fn gain(&self) -> f64 {
        self.phase_ratio.unwrap_or(self.ratio.mean)
    }

    /// Nanoseconds of both phases of all ranks.
    pub fn phases_ns(&self) -> (f64, f64) {
        match self.turns_ns.is_empty() {
            true => (self.nonblocking_ns.mean, self.blocking_ns.mean),
            false => {
                let sum = |of: fn(&(u64, u64)) -> u64| self.turns_ns.iter().map(of).sum::<u64>();
                (sum(|turn| turn.0) as f64, sum(|turn| turn.1) as f64)
            }
        }
    }
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
pub struct Place {
    /// Which case.
    pub case: usize,
    /// Compute over I/O as wanted.
    pub wanted: f64,
    /// Which repetition.
    pub repetition: u32,
    /// Operations of each phase.
    pub operations: u64,
    /// Whether the case moves anything; without, there is nothing that the computation could fit.
    pub has_io: bool,
    /// Whether the way of being non-blocking shows every end, so that the computation was fitted
    /// to the I/O beside it, else to I/O alone.
    pub sees_ends: bool,
    /// Whether the stamps of all ranks are of one clock.
    pub one_clock: bool,
}

/// What the samples of all ranks make together.
pub fn point(place: Place, ranks: &[RankSample]) -> OverlapPoint {
    let spread = |value: &dyn Fn(&RankSample) -> f64| {
        Spread::of(&ranks.iter().map(value).collect::<Vec<_>>())
    };
    let (compute_ns, io_ns) = (spread(&|r| r.compute_b), spread(&|r| r.io_b));
    let seen = place.has_io && ranks.iter().all(|rank| rank.io_n.is_some());
    let beside = |r: &RankSample| r.io_n.unwrap_or(0.0);
    let quality = spread(&|r| quality(r, &place));
    let turns_ns = turns(&place, ranks);
    let sum = |of: fn(&(u64, u64)) -> u64| turns_ns.iter().map(of).sum::<u64>() as f64;
    OverlapPoint {
        case: place.case,
        wanted: place.wanted,
        compute_over_io: place.has_io.then(|| over(compute_ns.mean, io_ns.mean)),
        repetition: place.repetition,
        phase_ratio: Some(over(sum(|turn| turn.0), sum(|turn| turn.1))),
        ratio: spread(&|r| over(r.work().0, r.work().1)),
        theory: if place.has_io { theory(compute_ns.mean, io_ns.mean) } else { 1.0 },
        usable: quality.max <= QUALITY_LIMIT,
        quality,
        operations: place.operations,
        bytes: ranks.iter().map(|r| r.bytes).sum(),
        nonblocking_ns: spread(&|r| r.work().0),
        blocking_ns: spread(&|r| r.work().1),
        turns_ns,
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

/// Every turn of both phases, of all ranks.
fn turns(place: &Place, ranks: &[RankSample]) -> Vec<(u64, u64)> {
    let count = ranks.iter().map(|rank| rank.turns.len()).min().unwrap_or(0);
    let phase = |index: usize, of: fn(&Turn) -> Stamps| {
        let stamps: Vec<Stamps> = ranks.iter().map(|rank| of(&rank.turns[index])).collect();
        phase_time(&stamps, place.one_clock).ns
    };
    (0..count)
        .map(|index| (phase(index, |turn| turn.nonblocking), phase(index, |turn| turn.blocking)))
        .collect()
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
    /// The range, or the interval of the median: see its `kind`.
    pub interval: Interval,
}

impl Estimate {
    fn of(values: &[f64]) -> Estimate {
        let Interval { low: min, high: max, .. } = Interval::range(values);
        Estimate { median: median(values), min, max, interval: Interval::of_median(values) }
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
            ratio: Estimate::of(&pick(&|p| p.gain())),
            theory: median(&pick(&|p| p.theory)),
            off_theory: median(&pick(&|p| p.gain() / p.theory - 1.0)),
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

/// What may be said of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Faster by more than chance and 3 %.
    Gain,
    /// Slower by more than chance and 3 %.
    Loss,
    /// Neither is shown.
    NotShown,
    /// So few pairs of turns can show nothing.
    TooFew,
    /// There was no I/O, or nothing beside it: what the ratio differs from 1 is noise.
    Nothing,
    /// No repetition is usable.
    Unusable,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Gain => "a gain",
            Verdict::Loss => "a loss",
            Verdict::NotShown => "no gain or loss shown",
            Verdict::TooFew => "too few repetitions for a verdict",
            Verdict::Nothing => "nothing to overlap",
            Verdict::Unusable => "no usable repetition",
        }
    }
}

/// Ratios this near to 1 are no gain and no loss.
const NEAR: f64 = 0.03;
/// How many times its own drift a gain has to be.
const DRIFT_TIMES: f64 = 3.0;

/// What may be said of each summary of one report.
pub fn overlap_verdicts(points: &[OverlapPoint], summaries: &[OverlapSummary]) -> Vec<Verdict> {
    Evidence::report(|evidence| {
        let of = |summary: &OverlapSummary| {
            let own = |p: &&OverlapPoint| {
                p.usable && (p.case, p.wanted) == (summary.case, summary.wanted)
            };
            verdict(evidence, &points.iter().filter(own).collect::<Vec<_>>())
        };
        summaries.iter().map(of).collect()
    })
}

fn verdict(evidence: &Evidence, points: &[&OverlapPoint]) -> Verdict {
    if points.is_empty() {
        return Verdict::Unusable;
    }
    if points.iter().all(|point| point.compute_over_io.is_none_or(|ratio| ratio <= 0.0)) {
        return Verdict::Nothing;
    }
    let pairs = pairs(points);
    let shifted = |by: f64| -> Vec<f64> { pairs.iter().map(|pair| pair - by).collect() };
    let (gain, least) = signed_rank(&shifted((1.0 - NEAR).ln()));
    let (loss, _) = signed_rank(&shifted((1.0 + NEAR).ln()));
    let middle = median(&pairs);
    let side = |limit: f64, below: bool| points.iter().all(|p| (p.gain() < limit) == below);
    let stands = middle.abs() > DRIFT_TIMES * halves_change(&pairs);
    // Asked once: what is not a gain may still be a loss, never both.
    let shown = evidence.unlikely(if middle < 0.0 { gain } else { loss }, least);
    match () {
        () if !evidence.could(least) => Verdict::TooFew,
        () if shown && stands && middle < (1.0 - NEAR).ln() && side(1.0 - NEAR, true) => {
            Verdict::Gain
        }
        () if shown && stands && middle > (1.0 + NEAR).ln() && side(1.0 + NEAR, false) => {
            Verdict::Loss
        }
        () => Verdict::NotShown,
    }
}

/// Logarithms of non-blocking over blocking: of every turn where turns were kept, else of every
/// repetition.
fn pairs(points: &[&OverlapPoint]) -> Vec<f64> {
    let turns = points.iter().all(|point| point.turns_ns.len() > 1);
    let of = |point: &&OverlapPoint| -> Vec<f64> {
        match turns {
            true => {
                let ratio = |(n, b): &(u64, u64)| ((*n).max(1) as f64 / (*b).max(1) as f64).ln();
                point.turns_ns.iter().map(ratio).collect()
            }
            false => vec![point.gain().max(1e-9).ln()],
        }
    };
    points.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(nonblocking: u64, blocking: u64) -> Turn {
        let of = |ended| Stamps { entered: 0, left: 0, ended, released: ended };
        Turn { nonblocking: of(nonblocking), blocking: of(blocking) }
    }

    fn sample(compute: (f64, f64), io: (Option<f64>, f64)) -> RankSample {
        RankSample {
            turns: vec![turn(600, 1000)],
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

    const EQUAL: Place = Place {
        case: 0,
        wanted: 1.0,
        repetition: 0,
        operations: 1,
        has_io: true,
        sees_ends: true,
        one_clock: true,
    };

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
        let loss = RankSample {
            turns: vec![turn(3000, 1000)],
            ..sample((50.0, 100.0), (Some(40.0), 80.0))
        };
        let point = point(EQUAL, &[loss]);
        assert_eq!((point.ratio.mean, point.compute_inflation.mean), (3.0, 0.5));
        assert_eq!(point.io_inflation.map(|io| io.mean), Some(0.5));
    }

    #[test]
    fn nothing_over_nothing_is_no_change() {
        assert_eq!([over(0.0, 0.0), over(3.0, 2.0), over(0.0, 2.0)], [1.0, 1.5, 0.0]);
        assert_eq!(over(3.0, 0.0), f64::INFINITY);
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
        bad.phase_ratio = Some(99.0);
        let other = point(Place { wanted: 2.0, ..EQUAL }, &[sample((1.0, 1.0), (None, 100.0))]);
        let summaries = overlap_summaries(&[good.clone(), bad, good, other]);
        assert_eq!((summaries[0].usable, summaries[0].repetitions), (2, 3));
        let found = summaries[0].found.as_ref().expect("two are usable");
        assert_eq!((found.ratio.median, found.ratio.max, found.theory), (0.6, 0.6, 0.5));
        assert!((found.off_theory - 0.2).abs() < 1e-12);
        assert_eq!((summaries[1].usable, &summaries[1].found), (0, &None));
    }

    #[test]
    fn a_phase_is_of_all_ranks_and_never_shorter_than_what_one_of_them_did() {
        // Rank 0 leaves the barrier late and is quick; rank 1 works from the start.
        let late = |ended| Stamps { entered: 0, left: ended - 10, ended, released: ended };
        let on_time = |ended| Stamps { entered: 0, left: 1, ended, released: ended };
        let of = |stamps: &dyn Fn(u64) -> Stamps| RankSample {
            turns: vec![Turn { nonblocking: stamps(500), blocking: stamps(1000) }],
            ..sample((1.0, 1.0), (None, 1.0))
        };
        for one_clock in [true, false] {
            let ranks = [of(&late), of(&on_time)];
            let point = point(Place { one_clock, ..EQUAL }, &ranks);
            assert!(point.turns_ns[0].0 >= 499 && point.turns_ns[0].1 >= 999, "{point:?}");
            assert!((point.gain() - 0.5).abs() < 0.01, "{point:?}");
            assert!(point.nonblocking_ns.max <= point.phases_ns().0);
        }
    }
}
