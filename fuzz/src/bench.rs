//! Plans of the benchmarks, and the results they saved.

use crate::words::{refused, text};
use crate::{Target, seeds};
use iolab_bench::{OverlapPlan, Plan, overlap_template, template};
use iolab_report::bench::{
    FORMAT_VERSION, Latency, Measurement, Outcome, Prices, Profile, compare, contradictions, csv,
    curves, foreign, observations, page, plan_profile, profiles, scores, summaries, summary_table,
};
use iolab_report::bench::{Refused, Stamps, Surroundings};
use iolab_report::overlap::{
    AsyncMode, CaseEntry, Load, OverlapOutcome, Place, RankSample, Reference, Turn, overlap_csv,
    overlap_plot, overlap_summaries, overlap_text, point,
};

/// More cases than this are not a text any more, but the product of one.
const CASES: usize = 10_000;

pub(crate) const PLAN: Target = Target {
    name: "plan",
    seeds: || {
        let mut all = seeds::files(&["plans"], &["toml"]);
        all.push(template().into_bytes());
        all.push(b"[[test]]\nspatial=['strided','segmented:count=3']\ntemporal=['write','read']\nsizes=['4k',512]\nhints={a='b'}\n".to_vec());
        all
    },
    bytes_max: 6_000,
    run: |bytes| {
        let Some(text) = text(bytes).filter(|text| names_no_file(text)) else { return };
        let form = Plan::check_form(text);
        match Plan::parse(text) {
            Err(refusal) => refused(&refusal),
            Ok(plan) => {
                assert!(form.is_ok() && !plan.cases.is_empty() && plan.cases.len() < CASES);
                let again = Plan::parse(&plan.text).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(again.text, plan.text);
                assert_eq!(again.cases.len(), plan.cases.len());
            }
        }
    },
};

pub(crate) const OVERLAP_PLAN: Target = Target {
    name: "overlap-plan",
    seeds: || {
        let mut all = seeds::files(&["plans/overlap"], &["toml"]);
        all.push(overlap_template().into_bytes());
        all
    },
    bytes_max: 6_000,
    run: |bytes| {
        let Some(text) = text(bytes).filter(|text| names_no_file(text)) else { return };
        match OverlapPlan::parse(text) {
            Err(refusal) => refused(&refusal),
            Ok(plan) => {
                assert!(!plan.cases.is_empty() && plan.cases.len() < CASES);
                plan.cases.iter().take(20).for_each(|case| drop(plan.title_of(case)));
                let again =
                    OverlapPlan::parse(&plan.text).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(again.text, plan.text);
                assert_eq!(again.cases.len(), plan.cases.len());
            }
        }
    },
};

/// A plan may name a trace to read; which files are on this machine must not matter.
fn names_no_file(text: &str) -> bool {
    !text.contains("trace")
}

/// What `iolab bench report` does with a document.
pub(crate) const RESULT: Target = Target {
    name: "result",
    seeds: || vec![serde_json::to_vec(&outcome()).expect("JSON")],
    bytes_max: 8_000,
    run: |bytes| {
        let Ok(outcome) = serde_json::from_slice::<Outcome>(bytes) else { return };
        reads_back(&outcome);
        explain([outcome]);
    },
};

/// Results of other benchmarks, by what they look like.
pub(crate) const FOREIGN_RESULT: Target = Target {
    name: "foreign-result",
    seeds: || seeds::files(&["samples/benchmarks"], &["json", "txt", "csv"]),
    bytes_max: 4_000,
    run: |bytes| match text(bytes).and_then(foreign) {
        None => {}
        Some(Err(why)) => assert!(!why.is_empty()),
        Some(Ok(read)) => {
            assert!(!read.outcome.measurements.is_empty() && !read.source.is_empty());
            reads_back(&read.outcome);
            explain([read.outcome]);
        }
    },
};

/// What is said of a result.
fn explain(outcomes: [Outcome; 1]) {
    let _ = summary_table(&summaries(&outcomes));
    contradictions(&outcomes).iter().for_each(|line| assert!(!line.is_empty()));
    let observations = observations(&outcomes);
    assert!(!page(&curves(&outcomes), &observations).is_empty());
    for profile in profiles().iter().chain([&plan_profile(&outcomes)]) {
        let _ = scores(profile, &outcomes);
    }
    let _ = compare(&outcomes[0], &self::outcome()).text();
    let _ = csv(&outcomes[0].measurements);
}

fn reads_back<T: serde::Serialize + serde::de::DeserializeOwned>(document: &T) {
    let written = serde_json::to_string(document).expect("JSON");
    let read: T = serde_json::from_str(&written).expect("it was written");
    assert_eq!(serde_json::to_string(&read).expect("JSON"), written);
}

fn outcome() -> Outcome {
    let one = |repetition: u32, phase: &str, size: u64| Measurement {
        test: "a test".to_owned(),
        spatial: format!("strided:strip={size}"),
        temporal: phase.to_owned(),
        phase: phase.to_owned(),
        method: "posix".to_owned(),
        size: Some(size),
        repetition,
        weight: 1.0,
        ranks: 2,
        bytes: 1 << 26,
        operations: 1 << 10,
        transfer_ns: 1_000_000_000 + u64::from(repetition),
        mib_per_second: 64.0,
        done_by_rank_ns: vec![999, 1_000],
        bytes_by_rank: vec![1 << 25, 1 << 25],
        latency: Some(Latency { count: 9, mean: 1.5, p50: 1, p90: 2, p99: 3, p999: 4, max: 5 }),
        settings: [("ranks".to_owned(), "2".to_owned())].into(),
        ..Measurement::default()
    };
    let phases = [("write", 4096), ("read", 4096), ("write", 65536)];
    let all = (0..3).flat_map(|turn| phases.map(|(phase, size)| one(turn, phase, size)));
    Outcome {
        format: "iolab-bench".to_owned(),
        format_version: FORMAT_VERSION,
        plan: "[global]\nranks = 2\n".to_owned(),
        ranks: 2,
        surroundings: Surroundings { prices: Some(Prices::default()), ..Surroundings::default() },
        measurements: all.collect(),
        ..Outcome::default()
    }
}

/// What `iolab overlap report` does with a document.
pub(crate) const OVERLAP_RESULT: Target = Target {
    name: "overlap-result",
    seeds: || vec![serde_json::to_vec(&overlap_outcome()).expect("JSON")],
    bytes_max: 8_000,
    run: |bytes| {
        let Some(Ok(outcome)) = text(bytes).map(OverlapOutcome::read) else { return };
        reads_back(&outcome);
        let _ = (overlap_text(&outcome), overlap_csv(&outcome), overlap_summaries(&outcome.points));
        assert!(!overlap_plot(&[outcome]).is_empty());
    },
};

fn overlap_outcome() -> OverlapOutcome {
    let stamps =
        |from: u64| Stamps { entered: from, left: from + 5, ended: from + 90, released: from + 99 };
    let turn = Turn { nonblocking: stamps(0), blocking: stamps(200) };
    let sample = RankSample {
        turns: vec![turn; 3],
        compute_n: 10.0,
        compute_b: 9.0,
        io_n: Some(11.0),
        io_b: 10.0,
        ..RankSample::default()
    };
    let place = |repetition| Place {
        case: 0,
        wanted: 1.0,
        repetition,
        operations: 100,
        has_io: true,
        sees_ends: true,
        one_clock: true,
    };
    let points: Vec<_> =
        (0..3).map(|turn| point(place(turn), &[sample.clone(), sample.clone()])).collect();
    let text = |text: &str| text.to_owned();
    OverlapOutcome {
        format: text("iolab-overlap"),
        format_version: 2,
        version: String::new(),
        command: vec![text("iolab")],
        plan: String::new(),
        ranks: 2,
        communication: text("threads"),
        surroundings: Surroundings::default(),
        reference: Reference::published(),
        warnings: vec![],
        cases: vec![CaseEntry {
            test: text("t"),
            spatial: text("strided"),
            direction: text("write"),
            method: text("posix"),
            way: AsyncMode::Thread,
            poll: false,
            throttle: None,
            direct: false,
            load: Load::Pattern,
            title: text("write"),
        }],
        summaries: overlap_summaries(&points),
        points,
        refused: vec![Refused {
            test: text("t"),
            spatial: text("s"),
            temporal: text("w"),
            method: text("m"),
            reason: text("r"),
        }],
        incomplete: None,
    }
}

/// The weights of an application, as `iolab bench report --weights FILE` takes them.
pub(crate) const WEIGHTS: Target = Target {
    name: "weights",
    seeds: || {
        seeds::texts([
            "provenance = 'measured'\n[[share]]\nphase = 'write'\npattern = 'strided'\nshare = 0.75\n\
             size = '4k'\n[[share]]\nphase='read'\npattern='strided'\nshare=1\nsize=65536\n",
        ])
    },
    bytes_max: 1_000,
    run: |bytes| {
        let Some(text) = text(bytes) else { return };
        match Profile::parse("mine.toml", text) {
            Err(what) => assert!(!what.is_empty()),
            Ok(profile) => {
                for score in scores(&profile, &[outcome()]) {
                    assert!(
                        score.speed.is_finite() && (0.0..=1.001).contains(&score.covered),
                        "{score:?}"
                    );
                }
            }
        }
    },
};
