//! Synthetic results with a known answer: what the report says of them is that answer.

use iolab_bench::{Measurement, Outcome, compare, curves, insights, plan_profile, profiles, score};

/// A measurement of 64 MiB on two ranks.
fn measured(phase: &str, spatial: &str, method: &str, speed: f64) -> Measurement {
    let bytes = 64 << 20;
    Measurement {
        test: "a test".to_owned(),
        spatial: spatial.to_owned(),
        temporal: phase.to_owned(),
        method: method.to_owned(),
        phase: phase.to_owned(),
        weight: 1.0,
        ranks: 2,
        bytes,
        operations: bytes >> 16,
        transfer_ns: (64.0 / speed * 1e9) as u64,
        mib_per_second: speed,
        done_by_rank_ns: vec![1_000_000, 1_010_000],
        ..Measurement::default()
    }
}

/// A sweep over sizes: the measurement of each.
fn sweep(phase: &str, pattern: &str, method: &str, points: &[(u64, f64)]) -> Vec<Measurement> {
    let one = |&(size, speed): &(u64, f64)| Measurement {
        size: Some(size),
        ..measured(phase, &format!("{pattern}={size}"), method, speed)
    };
    points.iter().map(one).collect()
}

/// The result with these, three times over, each time a little slower, after a first repetition
/// that nobody should look at.
fn outcome(once: &[Measurement]) -> Outcome {
    let repeat = |repetition: u32| {
        once.iter().cloned().map(move |m| {
            let factor = if repetition == 0 { 0.01 } else { 1.0 - 0.001 * f64::from(repetition) };
            Measurement { repetition, mib_per_second: m.mib_per_second * factor, ..m }
        })
    };
    Outcome { measurements: (0..=3).flat_map(repeat).collect(), ..Outcome::default() }
}

/// The sentences of one kind.
fn said(outcomes: &[Outcome], kind: &str) -> Vec<String> {
    let found = insights(outcomes).into_iter().filter(|insight| insight.kind == kind);
    found.map(|insight| insight.text).collect()
}

fn one(outcomes: &[Outcome], kind: &str, wanted: &[&str]) {
    let said = said(outcomes, kind);
    assert_eq!(said.len(), 1, "{kind}: {said:?}");
    for part in wanted {
        assert!(said[0].contains(part), "{kind}: `{part}` is not in: {}", said[0]);
    }
}

const KI: u64 = 1 << 10;
const MI: u64 = 1 << 20;

#[test]
fn a_sweep_is_one_curve_whatever_else_the_pattern_says_and_other_parameters_are_another() {
    let points = [(4 * KI, 10.0), (64 * KI, 100.0)];
    let mut all = sweep("write", "strided:stripes=8,strip", "posix", &points);
    all.extend(sweep("write", "strided:stripes=9,strip", "posix", &points));
    let curves = curves(&[outcome(&all)]);
    let names: Vec<_> = curves.iter().map(|curve| curve.pattern.as_str()).collect();
    assert_eq!(names, ["strided:stripes=8", "strided:stripes=9"]);
    assert!((curves[0].points[1].1 - 99.8).abs() < 0.01, "the median without the first repetition");
}

#[test]
fn the_knee_and_the_grid_of_a_striped_system_are_found() {
    let knee = [(4 * KI, 10.0), (16 * KI, 40.0), (64 * KI, 96.0), (256 * KI, 98.0), (MI, 100.0)];
    let found = [outcome(&sweep("read", "segmented:request", "posix", &knee))];
    one(&found, "saturation", &["read of segmented", "saturates at 64 KiB", "of at most 100"]);
    // Stripes of 64 KiB: multiples are fast, sizes between cross a border.
    let stripes = [
        (64 * KI, 90.0),
        (80 * KI, 40.0),
        (128 * KI, 100.0),
        (144 * KI, 45.0),
        (192 * KI, 95.0),
        (208 * KI, 44.0),
    ];
    let found = [outcome(&sweep("write", "strided:strip", "posix", &stripes))];
    one(&found, "alignment", &["multiples of 64 KiB are 2.1"]);
}

#[test]
fn what_the_caches_did_is_told_by_second_times_order_and_the_wait_at_the_end() {
    let second = |phase: &str, speed| Measurement {
        temporal: "re-read".to_owned(),
        ..measured(phase, "segmented", "posix", speed)
    };
    let found = [outcome(&[second("read", 200.0), second("re-read", 800.0)])];
    one(&found, "second time", &["re-read/read of segmented by posix is 4.00 at 64 KiB", "faster"]);
    let points = [(64 * KI, 200.0)];
    let random = [(64 * KI, 50.0)];
    let mut all = sweep("read", "segmented:request", "posix", &points);
    all.extend(sweep("read", "random-blocks:block", "posix", &random));
    one(&[outcome(&all)], "read-ahead", &["segmented over random-blocks", "64 KiB 4.00"]);
    let write = measured("write", "segmented", "posix", 100.0);
    let waits = Measurement { sync_ns: write.transfer_ns / 4 * 3, ..write.clone() };
    let wanted = ["75 % of the time", "at 399 MiB/s", "it is 100", "at 64 KiB"];
    one(&[outcome(&[waits])], "write-behind", &wanted);
    assert!(said(&[outcome(&[write])], "write-behind").is_empty());
}

#[test]
fn collective_against_independent_scaling_and_slow_ranks_are_told() {
    let collective = [(KI, 30.0), (64 * KI, 60.0)];
    let independent = [(KI, 10.0), (64 * KI, 90.0)];
    let mut all = sweep("write", "strided:strip", "collective", &collective);
    all.extend(sweep("write", "strided:strip", "independent", &independent));
    one(&[outcome(&all)], "collective", &["1 KiB 3.00", "break-even between 1 KiB and 64 KiB"]);
    let few = outcome(&[measured("write", "segmented", "posix", 100.0)]);
    let many = Measurement { ranks: 8, ..measured("write", "segmented", "posix", 300.0) };
    let wanted = ["8 ranks are 3.00 times as fast as 2", "75 % of ideal"];
    one(&[few, outcome(&[many])], "scaling", &wanted);
    let slow = Measurement {
        done_by_rank_ns: vec![100, 100, 190, 100],
        ..measured("write", "segmented", "posix", 100.0)
    };
    one(&[outcome(&[slow])], "slow rank", &["rank 2", "3 of 3 runs"]);
}

#[test]
fn a_comparison_states_ratio_interval_and_verdict() {
    let result = |speed| outcome(&[measured("write", "segmented", "posix", speed)]);
    let verdict = |before: &Outcome, after: &Outcome| {
        let lines = compare(before, after);
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0].interval.low <= lines[0].ratio && lines[0].ratio <= lines[0].interval.high
        );
        (format!("{:.2}", lines[0].ratio), lines[0].verdict)
    };
    assert_eq!(verdict(&result(100.0), &result(150.0)), ("1.50".to_owned(), "faster"));
    assert_eq!(verdict(&result(100.0), &result(50.0)), ("0.50".to_owned(), "slower"));
    assert_eq!(verdict(&result(100.0), &result(100.0)).1, "no difference shown");
    let once = |speed, predicted: Option<&str>| Outcome {
        measurements: vec![Measurement {
            predicted: predicted.map(str::to_owned),
            ..measured("write", "segmented", "sim", speed)
        }],
        ..Outcome::default()
    };
    let hdd = Some("classic-hdd");
    assert_eq!(verdict(&once(1.0, hdd), &once(2.0, hdd)).1, "faster, predicted");
    assert_eq!(verdict(&once(1.0, None), &once(2.0, None)).1, "too few repetitions for a verdict");
}

#[test]
fn every_profile_gives_the_harmonic_mean_of_what_it_weighs() {
    for profile in profiles() {
        let whole: f64 = profile.shares.iter().map(|share| share.share).sum();
        assert!((whole - 1.0).abs() < 1e-9, "{} weighs {whole}", profile.name);
        let rows = profile.shares.iter().enumerate();
        let rows = rows.map(|(i, share)| {
            measured(&share.phase, &share.pattern, "posix", 100.0 * (i + 1) as f64)
        });
        let result = [Outcome { measurements: rows.collect(), ..Outcome::default() }];
        let score = score(&profile, &result).expect("covered");
        let speeds = (1..).map(|i| 100.0 * f64::from(i));
        let time: f64 = profile.shares.iter().zip(speeds).map(|(s, v)| s.share / v).sum();
        assert!((score.speed - 1.0 / time).abs() < 1e-6, "{}", profile.name);
        assert!(score.parts.iter().all(|(_, found)| found.is_some()));
        assert!(!profile.provenance.is_empty());
    }
}

#[test]
fn a_share_with_a_size_takes_the_nearest_size_measured_and_plans_weigh_their_tests() {
    let points = [(4 * KI, 10.0), (64 * KI, 100.0), (MI, 400.0)];
    let result = outcome(&sweep("write", "strided:strip", "posix", &points));
    let mut profile = plan_profile(std::slice::from_ref(&result));
    assert_eq!(profile.shares.len(), 3, "one test, three rows");
    let first = score(&profile, std::slice::from_ref(&result)).expect("covered").speed;
    let harmonic = 3.0 / (1.0 / 10.0 + 1.0 / 100.0 + 1.0 / 400.0) * 0.998;
    assert!((first - harmonic).abs() < 1e-6, "{first} against {harmonic}");
    profile.shares.truncate(1);
    profile.shares[0].size = Some(100 * KI);
    let nearest = score(&profile, &[result]).expect("covered");
    assert_eq!(nearest.parts[0].1.map(|(size, _)| size), Some(64 * KI));
}
