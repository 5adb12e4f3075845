//! Results of the overlap benchmark as text: a row per point, a sentence per ratio, CSV.

use super::{
    CaseEntry, OverlapOutcome, OverlapPoint, OverlapSummary, QUALITY_LIMIT, Spread, Verdict,
    overlap_summaries, overlap_verdicts,
};
use crate::csv;

/// The heading of the table.
pub fn overlap_header() -> String {
    format!(
        "{:<34} {:>6} {:>6} {:>3} {:>7} {:>7} {:>7} {:>11} {:>11} {:>8} {:>8} {:>10} {:>10}",
        "case",
        "wanted",
        "c/io",
        "rep",
        "ratio",
        "theory",
        "quality",
        "nonblocking",
        "blocking",
        "c infl.",
        "io infl.",
        "start",
        "wait"
    )
}

fn milliseconds(ns: f64) -> String {
    format!("{:.3} ms", ns / 1e6)
}

/// One row of the table.
pub fn overlap_row(title: &str, p: &OverlapPoint) -> String {
    let text = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    let (nonblocking, blocking) = p.phases_ns();
    let mark = if p.usable { "" } else { "  not averaged" };
    format!(
        "{title:<34} {:>6} {:>6} {:>3} {:>7.3} {:>7.3} {:>7.3} {:>11} {:>11} {:>8.2} {:>8} {:>10} {:>10}{mark}",
        p.wanted,
        text(p.compute_over_io),
        p.repetition,
        p.gain(),
        p.theory,
        p.quality.max,
        milliseconds(nonblocking),
        milliseconds(blocking),
        p.compute_inflation.mean,
        text(p.io_inflation.map(|io| io.mean)),
        milliseconds(p.start_ns.mean),
        milliseconds(p.wait_ns.mean),
    )
}

/// A ratio in a sentence: measured, theory, verdict.
fn overlap_summary_row(title: &str, s: &OverlapSummary, verdict: Verdict) -> String {
    let Some(found) = &s.found else {
        return format!(
            "{title}, compute/io {}: no usable repetition (quality above {QUALITY_LIMIT}); raise \
             --count or --max-tries",
            s.wanted
        );
    };
    format!(
        "{title}, compute/io {}: nonblocking/blocking {:.3} ({} {:.3} to {:.3}, {} of {} usable), \
         theory {:.3} ({:+.1} %): {}",
        s.wanted,
        found.ratio.median,
        found.ratio.interval.name(),
        found.ratio.interval.low,
        found.ratio.interval.high,
        s.usable,
        s.repetitions,
        found.theory,
        found.off_theory * 100.0,
        verdict.words()
    )
}

/// Every ratio in a sentence, the distance from theory, and what others found.
pub fn overlap_text(outcome: &OverlapOutcome) -> String {
    let mut text = String::new();
    // Made anew: those of documents of version 1 have intervals that mean less than they say.
    let summaries = overlap_summaries(&outcome.points);
    let verdicts = overlap_verdicts(&outcome.points, &summaries);
    for (summary, verdict) in summaries.iter().zip(verdicts) {
        text += &overlap_summary_row(&told_apart(outcome, summary.case), summary, verdict);
        text.push('\n');
    }
    for index in 0..outcome.cases.len() {
        let found = summaries.iter().filter(|summary| summary.case == index);
        let off = found.filter_map(|summary| summary.found.as_ref()).map(|found| found.off_theory);
        if let Some(worst) = off.max_by(|a, b| a.abs().total_cmp(&b.abs())) {
            let title = told_apart(outcome, index);
            text += &format!("{title}: farthest from theory by {:+.1} %\n", worst * 100.0);
        }
    }
    if outcome.points.iter().any(|p| p.wanted == 1.0 && p.compute_over_io.is_some()) {
        let reference = &outcome.reference;
        text += &format!(
            "published at equality: {} to {} ({}; {})\n",
            reference.ratios.low, reference.ratios.high, reference.settings, reference.source
        );
    }
    text
}

/// The title of a case; with its pattern and its test where another case has the same.
fn told_apart(outcome: &OverlapOutcome, case: usize) -> String {
    let own = &outcome.cases[case];
    let alike = outcome.cases.iter().filter(|other| other.title == own.title).count();
    match alike {
        1 => own.title.clone(),
        _ => format!("{} [{}, {}]", own.title, own.spatial, own.test),
    }
}

/// All points as CSV, one line each; times in nanoseconds.
pub fn overlap_csv(outcome: &OverlapOutcome) -> String {
    let of = |point: &OverlapPoint| columns(outcome, &outcome.cases[point.case], point);
    let names = outcome.points.first().map(|first| of(first).into_iter().map(|column| column.0));
    let values = outcome.points.iter().map(|p| of(p).into_iter().map(|column| column.1));
    let lines = names.map(Vec::from_iter).into_iter().chain(values.map(Vec::from_iter));
    csv::lines(lines)
}

fn columns(outcome: &OverlapOutcome, case: &CaseEntry, p: &OverlapPoint) -> Vec<(String, String)> {
    let optional = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let way = format!("{:?}", case.way).to_lowercase();
    let single = [
        ("test", case.test.clone()),
        ("spatial", case.spatial.clone()),
        ("direction", case.direction.clone()),
        ("method", case.method.clone()),
        ("way", way),
        ("poll", case.poll.to_string()),
        ("throttle", optional(case.throttle)),
        ("communication", outcome.communication.clone()),
        ("ranks", outcome.ranks.to_string()),
        ("wanted", p.wanted.to_string()),
        ("compute_over_io", optional(p.compute_over_io)),
        ("repetition", p.repetition.to_string()),
        ("theory", p.theory.to_string()),
        ("usable", p.usable.to_string()),
        ("operations", p.operations.to_string()),
        ("bytes", p.bytes.to_string()),
        ("tries", p.tries.to_string()),
        ("difference", p.difference.to_string()),
        ("direct", case.direct.to_string()),
        ("load", format!("{:?}", case.load)),
        ("phase_ratio", p.gain().to_string()),
        ("phase_nonblocking_ns", p.phases_ns().0.to_string()),
        ("phase_blocking_ns", p.phases_ns().1.to_string()),
    ];
    let mut columns: Vec<_> =
        single.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    for (name, spread) in spreads(p) {
        let values = spread.map(|s| [s.mean, s.min, s.max, s.interval.low, s.interval.high]);
        for (index, part) in ["", "_min", "_max", "_low", "_high"].iter().enumerate() {
            let value = optional(values.map(|values| values[index]));
            columns.push((format!("{name}{part}"), value));
        }
    }
    columns
}

/// What is known per rank.
fn spreads(p: &OverlapPoint) -> [(&'static str, Option<Spread>); 12] {
    [
        ("ratio", Some(p.ratio)),
        ("quality", Some(p.quality)),
        ("nonblocking_ns", Some(p.nonblocking_ns)),
        ("blocking_ns", Some(p.blocking_ns)),
        ("compute_ns", Some(p.compute_ns)),
        ("io_ns", Some(p.io_ns)),
        ("compute_beside_ns", Some(p.compute_beside_ns)),
        ("io_beside_ns", p.io_beside_ns),
        ("compute_inflation", Some(p.compute_inflation)),
        ("io_inflation", p.io_inflation),
        ("start_ns", Some(p.start_ns)),
        ("wait_ns", Some(p.wait_ns)),
    ]
}
