//! Synthetic results with a known answer: what the report says of them is that answer.

use iolab_report::bench::{
    Labels, Measurement, Outcome, Prices, Settings, Surroundings, compare, contradictions, curves,
    observations, plan_profile, profiles, rows, scores, summarise,
};

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

/// The result with these, ten times over, each time a little different, after a first repetition
/// that nobody should look at.
fn outcome(once: &[Measurement]) -> Outcome {
    let repeat = |repetition: u32| {
        once.iter().cloned().map(move |m| {
            let wave = f64::from(repetition * 7 % 10) * 0.001;
            let factor = if repetition == 0 { 0.01 } else { 1.0 - wave };
            Measurement { repetition, mib_per_second: m.mib_per_second * factor, ..m }
        })
    };
    Outcome { measurements: (0..=10).flat_map(repeat).collect(), ..Outcome::default() }
}

/// The sentences of one kind.
fn said(outcomes: &[Outcome], kind: &str) -> Vec<String> {
    let found = observations(outcomes).into_iter().filter(|observation| observation.kind == kind);
    found.map(|observation| observation.text).collect()
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
    let names: Vec<_> = curves.iter().map(|curve| curve.settings["pattern"].as_str()).collect();
    assert_eq!(names, ["strided:stripes=8", "strided:stripes=9"]);
    let middle = curves[0].points[1].median();
    assert!((middle - 99.55).abs() < 0.01, "the median without the first repetition: {middle}");
}

#[test]
fn the_knee_and_the_grid_of_a_striped_system_are_found() {
    let knee = [(4 * KI, 10.0), (16 * KI, 40.0), (64 * KI, 96.0), (256 * KI, 98.0), (MI, 100.0)];
    let found = [outcome(&sweep("read", "segmented:request", "posix", &knee))];
    one(&found, "saturation", &["read of segmented", "saturates at 64 KiB", "100 MiB/s at 1 MiB"]);
    let growth = [(4 * KI, 10.0), (16 * KI, 20.0), (64 * KI, 40.0), (256 * KI, 80.0)];
    let found = [outcome(&sweep("read", "segmented:request", "posix", &growth))];
    one(&found, "saturation", &["still grows at 256 KiB"]);
    assert!(said(&found, "alignment").is_empty(), "growth is no grid");
    // Stripes of 64 KiB: multiples are fast, sizes between cross a border.
    let stripes =
        [(64 * KI, 90.0), (80 * KI, 40.0), (128 * KI, 100.0), (144 * KI, 45.0), (192 * KI, 95.0)];
    let found = [outcome(&sweep("write", "strided:strip", "posix", &stripes))];
    one(&found, "alignment", &["multiples of 64 KiB are 2."]);
}

#[test]
fn what_the_caches_did_is_told_by_second_times_order_and_the_wait_at_the_end() {
    let second = |phase: &str, speed| Measurement {
        temporal: "re-read".to_owned(),
        ..measured(phase, "segmented", "posix", speed)
    };
    let found = [outcome(&[second("read", 200.0), second("re-read", 800.0)])];
    one(&found, "second time", &["over the first read", "4.00 at 64 KiB", "95 % interval"]);
    let points = [(64 * KI, 200.0)];
    let random = [(64 * KI, 50.0)];
    let mut all = sweep("read", "segmented:request", "posix", &points);
    all.extend(sweep("read", "random-blocks:block", "posix", &random));
    one(&[outcome(&all)], "read-ahead", &["over random-blocks", "4.00 at 64 KiB"]);
    let write = measured("write", "segmented", "posix", 100.0);
    let waits = Measurement {
        sync_ns: write.transfer_ns / 4 * 3,
        last_done_ns: write.transfer_ns / 4,
        ..write.clone()
    };
    let mut found = outcome(&[waits]);
    let told = |copy: f64, found: &mut Outcome| {
        let prices = Some(Prices { copy_mib_per_second: copy, ..Prices::default() });
        found.surroundings = Surroundings { prices, processors: 2, ..Surroundings::default() };
        said(std::slice::from_ref(found), "write-behind").join("")
    };
    let plausible = told(10_000.0, &mut found);
    assert!(plausible.contains("middle 75 %") && plausible.contains("at 400 MiB/s"), "{plausible}");
    let faster_than_memory = told(100.0, &mut found);
    assert!(!faster_than_memory.contains("MiB/s"), "{faster_than_memory}");
    assert!(said(&[outcome(&[write])], "write-behind").is_empty());
}

#[test]
fn collective_against_independent_scaling_and_slow_ranks_are_told() {
    let collective = [(KI, 30.0), (64 * KI, 60.0)];
    let independent = [(KI, 10.0), (64 * KI, 90.0)];
    let mut all = sweep("write", "strided:strip", "collective", &collective);
    all.extend(sweep("write", "strided:strip", "independent", &independent));
    one(&[outcome(&all)], "collective", &["3.00 at 1 KiB", "break-even between 1 KiB and 64 KiB"]);
    let few = outcome(&[measured("write", "segmented", "posix", 100.0)]);
    let of = |speed| {
        let many = Measurement { ranks: 8, ..measured("write", "segmented", "posix", speed) };
        outcome(&[many])
    };
    one(&[few.clone(), of(300.0)], "scaling", &["8 ranks over 2", "3.00", "75 % of what 4"]);
    let too_good = said(&[few, of(424.0)], "scaling").join("");
    assert!(too_good.contains("something else differs") && !too_good.contains("106"), "{too_good}");
    let slow = Measurement {
        done_by_rank_ns: vec![100, 100, 8000, 100],
        ..measured("write", "segmented", "posix", 100.0)
    };
    one(
        &[outcome(std::slice::from_ref(&slow))],
        "slow rank",
        &["rank 2", "11 of 11 phases", "80.0 times"],
    );
    // Even of a single repetition the table names it.
    let once = Outcome { measurements: vec![slow.clone()], ..Outcome::default() };
    assert_eq!(summarise(&once)[0].slowest, Some((2, 80.0)));
    let uneven = Measurement { bytes_by_rank: vec![1, 1, 80, 1], ..slow };
    assert!(said(&[outcome(&[uneven])], "slow rank").is_empty(), "it had more to do");
}

#[test]
fn a_comparison_states_ratio_interval_and_verdict() {
    let result = |speed| outcome(&[measured("write", "segmented", "posix", speed)]);
    let verdict = |before: &Outcome, after: &Outcome| {
        let lines = compare(before, after).lines;
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
    assert_eq!(verdict(&once(1.0, hdd), &once(2.0, hdd)).1, "predicted, spread not known");
    let banded = |speed, band| {
        let mut result = once(speed, hdd);
        result.measurements[0].predicted_range_ns = Some(band);
        result
    };
    let (slow, fast) = (banded(1.0, (90, 110)), banded(2.0, (40, 60)));
    assert_eq!(verdict(&slow, &fast).1, "faster, predicted");
    assert_eq!(verdict(&slow, &banded(1.1, (85, 95))).1, "no difference predicted");
    assert_eq!(verdict(&once(1.0, None), &once(2.0, None)).1, "too few repetitions for a verdict");
}

#[test]
fn nothing_that_differs_in_a_setting_is_put_together_or_called_alike() {
    let at = |settings: &[(&str, &str)]| Measurement {
        settings: settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        ..measured("write", "segmented", "uring", 100.0)
    };
    let on = |file_system: &str, measurements: Vec<Measurement>| Outcome {
        measurements,
        surroundings: Surroundings {
            file_system: file_system.to_owned(),
            ..Surroundings::default()
        },
        ..Outcome::default()
    };
    let cold = |found: &str| Measurement { cache: found.to_owned(), ..at(&[("depth", "1")]) };
    let results = [
        on("tmpfs", vec![at(&[("depth", "1")]), at(&[("depth", "32")])]),
        on("ext4", vec![cold("cold"), cold("warm"), cold("7 % cached"), cold("9 % cached")]),
    ];
    let rows = rows(&results);
    assert_eq!(rows.len(), 5);
    let labels = iolab_report::bench::Labels::of(rows.iter().map(|row| &row.settings));
    let names: std::collections::BTreeSet<String> =
        rows.iter().map(|row| labels.label(&row.settings)).collect();
    assert_eq!(names.len(), 5, "{names:#?}");
    for wanted in ["depth 32", "tmpfs", "ext4", "cache found cold", "cache found partly cached"] {
        assert!(names.iter().any(|name| name.contains(wanted)), "{wanted}: {names:#?}");
    }
    let compared =
        compare(&results[0], &on("ext4", vec![at(&[("depth", "1")]), at(&[("depth", "32")])]));
    assert_eq!(compared.lines.len(), 2);
    let told = ("file system".to_owned(), "tmpfs".to_owned(), "ext4".to_owned());
    assert!(compared.differs.contains(&told), "{:?}", compared.differs);
}

#[test]
fn metadata_operations_are_told_in_operations_and_short_phases_are_left_out() {
    let create = Measurement {
        bytes: 0,
        operations: 100,
        operations_per_second: 5000.0,
        temporal: "metadata".to_owned(),
        ..measured("create", "strided", "posix", 0.0)
    };
    let impossible =
        Measurement { transfer_ns: 500_000, ..measured("write", "segmented", "posix", 100.0) };
    let result = Outcome { measurements: vec![create, impossible], ..Outcome::default() };
    let summaries = summarise(&result);
    assert_eq!(summaries.len(), 1);
    assert_eq!((summaries[0].unit.as_str(), summaries[0].median), ("op/s", 5000.0));
    assert_eq!(iolab_report::bench::contradictions(&[result]).len(), 1);
}

#[test]
fn documents_of_the_first_version_are_still_read() {
    let text = r#"{"format":"iolab-bench","format_version":1,"version":"0.1.0","command":[],
        "plan":"[global]\nsync = false\n[[test]]\nname = \"t\"\nspatial = \"strided\"\ntemporal = \"write\"\ndepth = 8\n",
        "seed":1,"ranks":1,"communication":"threads","clock":"c","clock_cost_ns":1.0,
        "surroundings":{"host":"h","kernel":"k","processors":2,"file_system":"ext4","mount_point":"/",
        "mount_options":"rw","started":1},"warnings":[],"refused":[],"summaries":[{"test":"t",
        "spatial":"strided","phase":"write","method":"posix","size":null,"first":1.0,"median":1.0,
        "interval":{"low":1.0,"high":1.0},"repetitions":1}],"measurements":[{"test":"t",
        "spatial":"strided","temporal":"write","method":"posix","phase":"write","size":null,"weight":1.0,
        "repetition":0,"ranks":1,"bytes":1024,"operations":1,"transfer_ns":1000,"open_ns":1,"sync_ns":0,
        "close_ns":1,"total_ns":1002,"barrier_before_ns":1,"barrier_cost_ns":1,"skew_ns":0,
        "first_done_ns":900,"last_done_ns":900,"cpu_ns":1,"mib_per_second":976.0,
        "operations_per_second":1e6,"latency":null,"short":0,"cache":"","allocation":"allocate",
        "verified":null,"invalid":null,"done_by_rank_ns":[900]}]}"#;
    let outcome: Outcome = serde_json::from_str(text).expect("version 1");
    let found = rows(std::slice::from_ref(&outcome));
    assert_eq!((found[0].setting("depth"), found[0].setting("sync")), ("8", "false"));
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
        let scores = scores(&profile, &result);
        let speeds = (1..).map(|i| 100.0 * f64::from(i));
        let time: f64 = profile.shares.iter().zip(speeds).map(|(s, v)| s.share / v).sum();
        assert!((scores[0].speed - 1.0 / time).abs() < 1e-6, "{}", profile.name);
        assert!(scores.len() == 1 && scores[0].covered > 0.999);
        assert!(!profile.provenance.is_empty());
    }
}

#[test]
fn methods_are_weighed_apart_sizes_nearest_and_plans_by_their_tests() {
    let points = [(4 * KI, 10.0), (64 * KI, 100.0), (MI, 400.0)];
    let result = outcome(&sweep("write", "strided:strip", "posix", &points));
    let mut profile = plan_profile(std::slice::from_ref(&result));
    assert_eq!(profile.shares.len(), 3, "one test, three rows");
    let first = scores(&profile, std::slice::from_ref(&result))[0].speed;
    let harmonic = 3.0 / (1.0 / 10.0 + 1.0 / 100.0 + 1.0 / 400.0) * 0.9955;
    assert!((first - harmonic).abs() < 1e-6, "{first} against {harmonic}");
    profile.shares.truncate(1);
    profile.shares[0].size = Some(100 * KI);
    let nearest = scores(&profile, &[result]);
    assert_eq!(nearest[0].parts[0].1.map(|part| part.size), Some(64 * KI));
    let mut all = sweep("write", "strided:strip", "posix", &points);
    all.extend(sweep("write", "strided:strip", "uring", &points));
    let apart = scores(&profile, &[outcome(&all)]);
    let told: Vec<_> = apart.iter().map(|score| score.settings.as_str()).collect();
    assert_eq!(told, ["posix", "uring"]);
}

#[test]
fn what_the_smallest_things_cost_is_a_sentence() {
    let prices = Prices { call_ns: 100.4, page_ns: 250.6, copy_mib_per_second: 10_240.0 };
    let wanted = "a system call costs 100 ns there, a fresh page 251 ns, copying runs at 10 GiB/s";
    assert_eq!(prices.sentence(), wanted);
}

#[test]
fn a_part_that_is_longer_than_the_phase_is_a_contradiction() {
    let good =
        Measurement { transfer_ns: 2_000_000, ..measured("write", "contiguous", "posix", 10.0) };
    let late = Measurement { sync_ns: 3_000_000, repetition: 4, ..good.clone() };
    let outcome = |measurements| Outcome { measurements, ..Outcome::default() };
    assert_eq!(contradictions(&[outcome(vec![good.clone()])]), [""; 0]);
    let wanted = "write of contiguous by posix, repetition 4: the phase (2000000 ns) is shorter than the wait for \
                  the device (3000000 ns)";
    assert_eq!(contradictions(&[outcome(vec![good, late])]), [wanted]);
}

#[test]
fn a_rank_is_behind_by_its_time_for_each_byte() {
    let of = |done_by_rank_ns: &[u64], bytes_by_rank: &[u64]| Measurement {
        done_by_rank_ns: done_by_rank_ns.to_vec(),
        bytes_by_rank: bytes_by_rank.to_vec(),
        bytes: bytes_by_rank.iter().sum(),
        ..Measurement::default()
    };
    assert_eq!(of(&[100, 300, 100], &[]).behind(1), Some(3.0));
    assert_eq!(of(&[100, 300, 100], &[10, 30, 10]).behind(1), Some(1.0));
    assert_eq!(of(&[100, 300, 100], &[10, 10, 10]).behind(1), Some(3.0));
    assert_eq!(of(&[700, 800], &[350, 100]).behind(1), Some(4.0));
    assert_eq!(of(&[100], &[]).behind(0), None, "nobody to be behind");
    assert_eq!(of(&[0, 5], &[]).behind(1), None);
}

#[test]
fn rows_are_named_by_what_tells_them_apart_and_by_nothing_else() {
    let row = |phase: &str, temporal: &str, extra: &[(&str, &str)]| -> Settings {
        let own = [
            ("phase", phase),
            ("temporal", temporal),
            ("pattern", "contiguous"),
            ("method", "posix"),
        ];
        own.iter().chain(extra).map(|(key, value)| (key.to_string(), value.to_string())).collect()
    };
    let label = |rows: &[Settings]| Labels::of(rows.iter()).label(&rows[0]);
    let alike =
        [row("write", "write", &[("queue", "4")]), row("write", "write", &[("queue", "4")])];
    assert_eq!(label(&alike), "write of contiguous by posix");
    let two = [row("write", "write", &[("queue", "4")]), row("write", "write", &[("queue", "8")])];
    assert_eq!(label(&two), "write of contiguous by posix [queue 4]");
    assert_eq!(label(&[row("read", "reopen", &[])]), "read (reopen) of contiguous by posix");
    assert_eq!(label(&[row("create", "metadata", &[])]), "create by posix");
}

#[test]
fn the_page_draws_throughput_in_bytes_and_operations_as_they_are() {
    let points = [(4 * KI, 10.0), (64 * KI, 100.0)];
    let outcome = outcome(&sweep("write", "strided:stripes=8,strip", "posix", &points));
    let page = iolab_report::bench::page(&curves(&[outcome]), &[]);
    // Ten repetitions lie from 9.91 to 10; their interval leaves one away at either end.
    assert!(page.contains(": 4 KiB, 9.95 MiB/s (9.92 MiB/s to 9.99 MiB/s)"), "{page}");
    assert!(page.contains("<h3>write of strided:stripes=8</h3>"), "{page}");
}
