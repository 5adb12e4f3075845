//! Every statement a report can make, held to noise: results in which nothing differs from anything
//! make at most one report of a hundred speak, whatever the noise looks like and however often it was
//! measured. And to clear effects: those are still told.

use iolab_report::bench::{Measurement, Outcome, Stamps, compare, observations};
use iolab_report::overlap::{
    OverlapPoint, Place, RankSample, Turn, Verdict, overlap_summaries, overlap_verdicts, point,
};
use iolab_vocab::{Random, Seed};

const KI: u64 = 1 << 10;
const SETS: u32 = 1000;
/// Of a thousand.
const FALSE_MAX: u32 = 10;
const REPETITIONS: [u32; 5] = [1, 2, 3, 5, 10];

/// The shapes of noise.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Normal,
    LogNormal,
    HeavyTail,
    /// Every repetition is slower than the one before.
    Drifting,
    /// Whatever is measured is faster or slower than what was measured just before.
    Wandering,
    Bimodal,
    /// Few distinct values.
    Rounded,
}

const SHAPES: [Shape; 7] = [
    Shape::Normal,
    Shape::LogNormal,
    Shape::HeavyTail,
    Shape::Drifting,
    Shape::Wandering,
    Shape::Bimodal,
    Shape::Rounded,
];

struct Noise {
    random: Random,
    shape: Shape,
    walk: f64,
}

impl Noise {
    fn new(shape: Shape, seed: u32) -> Noise {
        let seed = Seed(u64::from(seed) * 64 + shape as u64);
        Noise { random: Random::new(seed), shape, walk: 0.0 }
    }

    fn unit(&mut self) -> f64 {
        ((self.random.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (radius, angle) = ((-2.0 * self.unit().ln()).sqrt(), self.unit());
        radius * (std::f64::consts::TAU * angle).cos()
    }

    /// A factor near 1, of a measurement in this repetition.
    fn factor(&mut self, repetition: u32) -> f64 {
        let normal = self.normal();
        match self.shape {
            Shape::Normal => (1.0 + 0.05 * normal).max(0.1),
            Shape::LogNormal => (0.4 * normal).exp(),
            Shape::HeavyTail => self.unit().powf(-0.7) * (0.02 * normal).exp(),
            Shape::Drifting => (1.0 + 0.02 * normal).max(0.1) / (1.0 + 0.1 * f64::from(repetition)),
            Shape::Wandering => {
                self.walk += 0.05 * normal;
                self.walk.exp()
            }
            Shape::Bimodal => (if self.unit() < 0.5 { 1.0 } else { 3.0 }) * (1.0 + 0.01 * normal),
            Shape::Rounded => 1.0 + 0.05 * normal.round().clamp(-2.0, 2.0),
        }
    }
}

/// What a result has of each: phases, patterns, methods and sizes with the same speed.
fn cases(ranks: u32) -> Vec<Measurement> {
    let mut all = Vec::new();
    let mut put = |phase: &str, temporal: &str, spatial: &str, size: Option<u64>, method: &str| {
        let spatial = size.map_or(spatial.to_owned(), |size| format!("{spatial}={size}"));
        all.push(Measurement {
            test: "a test".to_owned(),
            spatial,
            temporal: temporal.to_owned(),
            method: method.to_owned(),
            phase: phase.to_owned(),
            size,
            weight: 1.0,
            ranks,
            bytes: 64 << 20,
            operations: 1024,
            ..Measurement::default()
        });
    };
    // Sizes on a grid of 64 KiB and between.
    for size in [64, 80, 128, 144, 192] {
        for method in ["collective", "independent"] {
            put("write", "write", "strided:strip", Some(size * KI), method);
        }
    }
    put("read", "re-read", "segmented", None, "posix");
    put("re-read", "re-read", "segmented", None, "posix");
    for pattern in ["segmented:request", "random-blocks:block"] {
        put("read", "read", pattern, Some(64 * KI), "posix");
    }
    all
}

/// A result whose measurements differ by noise only, `scale` times as fast.
fn result(noise: &mut Noise, ranks: u32, repetitions: u32, rounds: bool) -> Outcome {
    let cases = cases(ranks);
    let first = u32::from(repetitions > 1);
    let mut order: Vec<(u32, usize)> = Vec::new();
    for repetition in 0..repetitions + first {
        order.extend((0..cases.len()).map(|case| (repetition, case)));
    }
    if !rounds {
        order.sort_by_key(|(repetition, case)| (case / 2, *repetition, *case));
    }
    let measurements = order.into_iter().map(|(repetition, case)| {
        let speed = 100.0 * noise.factor(repetition);
        let done: Vec<u64> =
            (0..ranks).map(|_| (1e8 / noise.factor(0).clamp(0.01, 100.0)) as u64).collect();
        let last = done.iter().copied().max().unwrap_or(0);
        let transfer_ns = last * 2;
        let waits = cases[case].phase == "write";
        Measurement {
            repetition,
            mib_per_second: speed,
            operations_per_second: speed * 16.0,
            transfer_ns,
            last_done_ns: last,
            sync_ns: if waits { (transfer_ns as f64 * 0.4 * noise.unit()) as u64 } else { 0 },
            done_by_rank_ns: done,
            ..cases[case].clone()
        }
    });
    Outcome { ranks, measurements: measurements.collect(), ..Outcome::default() }
}

/// Runs the report on many sets of each kind of noise, and counts those that speak.
fn silent(sets: u32, speaks: impl Fn(&mut Noise, u32) -> Option<String>) {
    let mut loud = Vec::new();
    for shape in SHAPES {
        for repetitions in REPETITIONS {
            let mut said = Vec::new();
            for seed in 0..sets {
                said.extend(speaks(&mut Noise::new(shape, seed * 31 + repetitions), repetitions));
            }
            // Of a few sets, one that speaks is no more than one in a hundred may do.
            if said.len() > 1 && said.len() as u32 * 1000 > FALSE_MAX * sets {
                loud.push((shape, repetitions, said.len(), said[0].clone()));
            }
        }
    }
    assert!(loud.is_empty(), "of {sets} sets each: {loud:#?}");
}

#[test]
fn a_result_of_nothing_but_noise_says_nothing() {
    silent(SETS / 10, |noise, repetitions| {
        let few = result(noise, 4, repetitions, true);
        observations(&[few]).into_iter().next().map(|observation| observation.text)
    });
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn a_thousand_results_of_nothing_but_noise_say_nothing_in_any_order_of_measuring() {
    for rounds in [true, false] {
        silent(SETS, |noise, repetitions| {
            let few = result(noise, 4, repetitions, rounds);
            noise.walk = 0.0;
            let many = result(noise, 8, repetitions, rounds);
            observations(&[few, many]).into_iter().next().map(|observation| observation.text)
        });
    }
}

/// Of so many sets with so many repetitions, those of which it is told how 8 ranks scale over 4 in
/// another run, which are `scale` times as fast.
fn told_to_scale(shape: Shape, sets: u32, repetitions: u32, rounds: bool, scale: f64) -> usize {
    let told = |seed: &u32| {
        let noise = &mut Noise::new(shape, seed * 31 + repetitions);
        let few = result(noise, 4, repetitions, rounds);
        noise.walk = 0.0;
        let mut many = result(noise, 8, repetitions, rounds);
        for m in &mut many.measurements {
            m.mib_per_second *= scale;
            m.operations_per_second *= scale;
        }
        observations(&[few, many]).iter().any(|observation| observation.kind == "scaling")
    };
    (0..sets).filter(told).count()
}

#[test]
fn runs_that_wander_apart_say_nothing_of_ranks() {
    for (repetitions, rounds) in [(2, true), (3, true), (2, false), (3, false), (10, false)] {
        let told = told_to_scale(Shape::Wandering, 200, repetitions, rounds, 1.0);
        assert!(told <= 2, "{told} of 200 with {repetitions} repetitions, in rounds: {rounds}");
    }
}

#[test]
fn twice_the_speed_of_twice_the_ranks_is_told_in_noise_of_a_twentieth() {
    for (repetitions, least) in [(2, 15), (3, 18), (5, 20), (10, 20)] {
        let told = told_to_scale(Shape::Normal, 20, repetitions, true, 2.0);
        assert!(told >= least, "{told} of 20 with {repetitions} repetitions");
    }
}

#[test]
fn a_comparison_of_equal_results_gives_no_verdict() {
    let row = |noise: &mut Noise, rows: u32, repetitions: u32| {
        noise.walk = 0.0;
        let mut all = Vec::new();
        for repetition in 0..=repetitions {
            for row in 0..rows {
                let speed = 100.0 * noise.factor(repetition);
                all.push(Measurement {
                    spatial: format!("pattern-{row}"),
                    phase: "write".to_owned(),
                    bytes: 1 << 20,
                    operations: 1,
                    transfer_ns: 1000,
                    mib_per_second: speed,
                    repetition,
                    ..Measurement::default()
                });
            }
        }
        Outcome { measurements: all, ..Outcome::default() }
    };
    for rows in [1, 8] {
        silent(SETS / rows, |noise, repetitions| {
            let (before, after) = (row(noise, rows, repetitions), row(noise, rows, repetitions));
            let lines = compare(&before, &after).lines;
            assert_eq!(lines.len(), rows as usize);
            let mut verdicts = lines.iter().map(|line| line.verdict);
            verdicts.find(|v| ["faster", "slower"].contains(v)).map(str::to_owned)
        });
    }
}

/// A point of so many turns on one rank; `gain` is the ratio of its phases but for noise.
fn overlapped(noise: &mut Noise, repetition: u32, turns: u32, gain: f64) -> OverlapPoint {
    let stamps =
        |ended: f64| Stamps { entered: 0, left: 0, ended: ended as u64, released: ended as u64 };
    let turns = (0..turns).map(|turn| Turn {
        nonblocking: stamps(1e7 * gain * noise.factor(turn)),
        blocking: stamps(1e7 * noise.factor(turn)),
    });
    let sample = RankSample {
        turns: turns.collect(),
        compute_n: 100.0,
        compute_b: 100.0,
        io_n: Some(100.0),
        io_b: 100.0,
        ..RankSample::default()
    };
    let place = Place {
        case: 0,
        wanted: 1.0,
        repetition,
        operations: 50,
        has_io: true,
        sees_ends: true,
        one_clock: true,
    };
    point(place, &[sample])
}

#[test]
fn phases_that_take_as_long_are_neither_gain_nor_loss() {
    equal_phases(SETS / 20);
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn phases_that_take_as_long_are_neither_gain_nor_loss_in_a_thousand_sets() {
    equal_phases(SETS);
}

fn equal_phases(sets: u32) {
    for turns in [1, 10] {
        silent(sets, |noise, repetitions| {
            let mut points = Vec::new();
            for (case, wanted) in [0.5, 1.0, 2.0].into_iter().enumerate() {
                for repetition in 0..repetitions {
                    let one = overlapped(noise, repetition, turns, 1.0);
                    points.push(OverlapPoint { case, wanted, ..one });
                }
            }
            let summaries = overlap_summaries(&points);
            let verdicts = overlap_verdicts(&points, &summaries);
            let said = |v: &&Verdict| [Verdict::Gain, Verdict::Loss].contains(v);
            verdicts.iter().find(said).map(|verdict| verdict.words().to_owned())
        });
    }
}

#[test]
fn a_clear_gain_and_a_clear_loss_are_told_from_one_repetition_of_ten_turns_on() {
    for (gain, wanted) in [(0.55, Verdict::Gain), (1.5, Verdict::Loss), (1.0, Verdict::NotShown)] {
        let mut noise = Noise::new(Shape::Normal, 3);
        let points = [overlapped(&mut noise, 0, 10, gain), overlapped(&mut noise, 1, 10, gain)];
        let verdicts = overlap_verdicts(&points, &overlap_summaries(&points));
        assert_eq!(verdicts, [wanted]);
        let single = overlap_verdicts(&points[..1], &overlap_summaries(&points[..1]));
        assert_eq!(single, [wanted], "{gain}");
    }
    let mut noise = Noise::new(Shape::Normal, 3);
    let once = [overlapped(&mut noise, 0, 1, 0.5)];
    assert_eq!(overlap_verdicts(&once, &overlap_summaries(&once)), [Verdict::TooFew]);
    let nothing = [OverlapPoint { compute_over_io: None, ..overlapped(&mut noise, 0, 10, 0.8) }];
    assert_eq!(overlap_verdicts(&nothing, &overlap_summaries(&nothing)), [Verdict::Nothing]);
}
