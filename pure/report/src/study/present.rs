//! A study as text, as JSON and as a page: the same table, findings and notes in each.

use super::{Interval, Study, Tried, Verdict, median_interval};
use crate::chart::{Axis, Chart, Mark, Series, Unit};
use crate::page::{self, Cell, Jump, Page, Section, Table, Timeline, Tone, render};
use crate::statistics::{Kind, coverage_of_each, values_min};
use crate::text::{duration, signed_percent};
use crate::thousands::of_rounds;
use iolab_sim::band::Band;
use std::fmt::Write;

impl Study {
    /// The study on a terminal.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n\n", self.command.join(" "));
        for finding in &self.report.findings {
            let _ = writeln!(out, "[{}] {}", finding.severity.name(), finding.message);
            if let Some(remedy) = &finding.remedy {
                let _ = writeln!(out, "    remedy: {}", remedy.sentence);
            }
        }
        if self.report.findings.is_empty() {
            out.push_str("no findings\n");
        }
        out.push('\n');
        out.push_str(&table(self).text());
        for note in &self.notes {
            let _ = writeln!(out, "note: {note}");
        }
        let _ = writeln!(out, "\n{}", headline(self));
        if let Some(why) = reason(self) {
            let _ = writeln!(out, "{why}");
        }
        out
    }

    /// The study for programs; times in seconds.
    pub fn json(&self) -> serde_json::Value {
        let strategies = self.tried.iter().map(|tried| {
            let judged = &tried.judgement;
            serde_json::json!({
                "strategy": tried.candidate.label,
                "apply": tried.candidate.texts(),
                "reason": tried.candidate.reason,
                "verdict": judged.word(),
                "words": judged.words(),
                "predicted_s": judged.predicted,
                "predicted_range_s": tried.predicted.map(|band| [band.low, band.high]),
                "measured_s": judged.measured.map(interval_json),
                "speedup": judged.speedup.map(interval_json),
                "prediction_error": judged.prediction_error,
                "runs_s": tried.seconds,
            })
        });
        serde_json::json!({
            "command": self.command,
            "output_directory": self.directory.display().to_string(),
            "rounds": self.rounds,
            "plain": {
                "predicted_s": self.plain_predicted.map(|band| band.median),
                "predicted_range_s": self.plain_predicted.map(|band| [band.low, band.high]),
                "measured_s": interval_json(median_interval(&self.plain)),
                "runs_s": self.plain,
            },
            "strategies": strategies.collect::<Vec<_>>(),
            "findings": self.report.findings,
            "notes": self.notes,
            "incomplete": self.incomplete,
            "headline": headline(self),
        })
    }

    /// The study as one HTML file.
    pub fn page(&self) -> Vec<u8> {
        let summary = &self.report.summary;
        let mut facts = vec![
            ("command".to_owned(), self.command.join(" ")),
            ("output directory".to_owned(), self.directory.display().to_string()),
            ("rounds".to_owned(), self.rounds.to_string()),
            ("host".to_owned(), summary.host.clone()),
            ("recorded calls".to_owned(), summary.call_count.to_string()),
        ];
        if let Some(local) = &self.platform.local {
            facts.push(("file system".to_owned(), local.file_system.clone()));
        }
        let mut sections = Vec::new();
        if let Some(why) = reason(self) {
            sections.push(Section::Text { title: String::new(), paragraphs: vec![why.to_owned()] });
        }
        sections.extend([
            Section::Table(table(self)),
            Section::Charts(vec![times_chart(self)]),
            Section::Findings(findings(self)),
        ]);
        if !self.notes.is_empty() {
            let title = "What else to know".to_owned();
            sections.push(Section::Text { title, paragraphs: self.notes.clone() });
        }
        // The findings above already say what each remedy brought.
        let report = crate::report_sections(&self.report, &self.recorded, 0);
        sections.extend(report.into_iter().filter(|part| !matches!(part, Section::Findings(_))));
        render(&Page {
            title: "iolab study".to_owned(),
            headline: headline(self),
            facts,
            sections,
            timelines: timelines(self),
        })
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 10.0 => format!("{s:.1} s"),
        s if s >= 1.0 => format!("{s:.2} s"),
        s => format!("{:.1} ms", s * 1e3),
    }
}

fn interval(value: Interval, unit: impl Fn(f64) -> String) -> String {
    let (low, high) = (unit(value.low), unit(value.high));
    let range = match value.kind {
        Kind::Range if low != high => "range ",
        _ => "",
    };
    format!("{} ({range}{low} to {high})", unit(value.middle))
}

/// A prediction with its range, where it has one.
fn predicted(band: Band) -> String {
    match band.is_one_value() {
        true => time(band.median),
        false => format!("{} ({} to {})", time(band.median), time(band.low), time(band.high)),
    }
}

fn times(factor: f64) -> String {
    format!("{factor:.2}×")
}

/// A row of the table: strategy, predicted, measured, error, speed-up, verdict.
fn rows(study: &Study) -> Vec<[String; 6]> {
    let plain = median_interval(&study.plain);
    let none = || "–".to_owned();
    let error = study.plain_predicted.map(|band| (band.median - plain.middle) / plain.middle);
    let mut rows = vec![[
        "plain".to_owned(),
        study.plain_predicted.map_or_else(none, predicted),
        interval(plain, time),
        error.map_or_else(none, signed_percent),
        "1".to_owned(),
        "the command as it is".to_owned(),
    ]];
    rows.extend(study.tried.iter().map(|tried| {
        let judged = &tried.judgement;
        [
            tried.candidate.label.clone(),
            tried.predicted.map_or_else(none, predicted),
            judged.measured.map_or_else(none, |measured| interval(measured, time)),
            judged.prediction_error.map_or_else(none, signed_percent),
            judged.speedup.map_or_else(none, |speedup| interval(speedup, times)),
            judged.words(),
        ]
    }));
    rows
}

const COLUMNS: [&str; 6] = ["strategy", "predicted", "measured", "error", "speed-up", "verdict"];

/// The one sentence to take home.
fn headline(study: &Study) -> String {
    let wrong =
        study.tried.iter().filter(|tried| matches!(tried.judgement.verdict, Verdict::Wrong(_)));
    let warning = match wrong.count() {
        0 => String::new(),
        1 => " One strategy changes the output and must not be used.".to_owned(),
        n => format!(" {n} strategies change the output and must not be used."),
    };
    let faster = study.tried.iter().filter(|tried| tried.judgement.verdict == Verdict::Faster);
    let gain = |tried: &&Tried| tried.judgement.speedup.map_or(0.0, |speedup| speedup.middle);
    match faster.max_by(|a, b| gain(a).total_cmp(&gain(b))) {
        Some(best) => format!(
            "Under {} the unmodified program runs {} as fast, with the same output.{warning}",
            best.candidate.label,
            times(gain(&best)),
        ),
        None if study.tried.iter().any(|t| t.judgement.verdict == Verdict::Undecided) => {
            let compared = study.tried.len();
            format!(
                "{} are too few to tell which strategy is faster: of {compared}, {} can.{warning}",
                of_rounds(study.plain.len()),
                values_min(coverage_of_each(compared)),
            )
        }
        None => format!("No strategy makes this program faster.{warning}"),
    }
}

fn reason(study: &Study) -> Option<&str> {
    study.shown.as_ref()?.why.as_deref()
}

fn interval_json(value: Interval) -> serde_json::Value {
    let Interval { low, middle, high, kind } = value;
    serde_json::json!({ "low": low, "middle": middle, "high": high, "kind": kind })
}

fn timelines(study: &Study) -> Vec<Timeline<'_>> {
    let mut rows = vec![Timeline::new("recorded", &study.recorded)];
    if let Some(shown) = &study.shown {
        let simulated = shown.simulated.iter().map(|trace| ("simulated", trace));
        let measured = shown.measured.iter().map(|trace| ("measured", trace));
        let both = simulated.chain(measured);
        let label = |kind: &str| format!("{kind} under {}", shown.label);
        rows.extend(both.map(|(kind, trace)| Timeline::new(label(kind), trace)));
    }
    rows
}

fn table(study: &Study) -> Table {
    let mut table = Table::new("Strategies: prediction beside measurement", COLUMNS);
    let slowest = |row: Option<f64>| row.map(|seconds| seconds / longest(study));
    let measured = std::iter::once(Some(median_interval(&study.plain).middle))
        .chain(study.tried.iter().map(|t| t.judgement.measured.map(|measured| measured.middle)));
    let tones = std::iter::once(Tone::Quiet).chain(study.tried.iter().map(tone));
    for ((row, measured), tone) in rows(study).into_iter().zip(measured).zip(tones) {
        let mut cells: Vec<Cell> = row.into_iter().map(Cell::from).collect();
        if let Some(share) = slowest(measured) {
            cells[2].bar = Some(share);
        }
        cells[5].tone = tone;
        table.rows.push(cells);
    }
    table.caption(format!(
        "Medians of {}; every round ran the plain command and each strategy once. Intervals are those of \
         order statistics: of times they hold with 95 % each, of speed-ups with 95 % all together; of fewer \
         rounds than that takes the range is given. A prediction is the simulated factor times the measured plain time; for \
         the plain run itself it is the simulated time; both are medians over orders of simultaneous \
         events, with their range. Outputs were compared byte by byte.",
        of_rounds(study.rounds)
    ))
}

/// The table's times as bars, measured ones with their intervals.
fn times_chart(study: &Study) -> Chart {
    let labels = study.tried.iter().map(|tried| tried.candidate.label.clone());
    let names = std::iter::once("plain".to_owned()).chain(labels);
    let predicted = std::iter::once(study.plain_predicted.map(|band| band.median))
        .chain(study.tried.iter().map(|tried| tried.judgement.predicted));
    let measured = std::iter::once(Some(median_interval(&study.plain)))
        .chain(study.tried.iter().map(|tried| tried.judgement.measured));
    let predicted = predicted.enumerate().filter_map(|(at, time)| Some((at as f64, time?)));
    let bounds = match median_interval(&study.plain).kind {
        Kind::Median => "measured, 95 % interval",
        Kind::Range | Kind::Unknown => "measured, range",
    };
    let bars = Series::new(bounds, Mark::Bars, []);
    let measured = measured.enumerate().fold(bars, |bars, (at, time)| match time {
        Some(time) => bars.point_with_error(at as f64, time.middle, time.low, time.high),
        None => bars,
    });
    Chart::new(
        "Time of the program",
        Axis::categories("strategy", names),
        Axis::linear("wall-clock time", Unit::Seconds),
    )
    .with(Series::new("predicted", Mark::Bars, predicted))
    .with(measured)
}

fn longest(study: &Study) -> f64 {
    let tried = study.tried.iter().filter_map(|tried| tried.judgement.measured);
    tried.map(|measured| measured.middle).fold(median_interval(&study.plain).middle, f64::max)
}

fn tone(tried: &Tried) -> Tone {
    match tried.judgement.verdict {
        Verdict::Wrong(_) | Verdict::Failed(_) => Tone::Bad,
        Verdict::Faster => Tone::Good,
        Verdict::Slower => Tone::Doubtful,
        Verdict::Same | Verdict::Undecided => Tone::Quiet,
    }
}

fn findings(study: &Study) -> Vec<page::Finding> {
    study.report.findings.iter().map(|finding| shown_finding(study, finding)).collect()
}

fn shown_finding(study: &Study, finding: &crate::Finding) -> page::Finding {
    let evidence = &finding.evidence;
    let rows = evidence.rows.iter().map(|&row| row as usize);
    let label = match rows.len() {
        1 => "show the call".to_owned(),
        n => format!("show {n} of the calls"),
    };
    let remedy = finding.remedy.as_ref();
    page::Finding {
        title: finding.message.clone(),
        tone: match finding.severity.name() {
            "high" => Tone::Bad,
            "medium" => Tone::Doubtful,
            _ => Tone::Quiet,
        },
        evidence: format!(
            "{} calls, {}, {:.0} % of {}",
            evidence.calls,
            duration(evidence.time_ns),
            evidence.share_of_run * 100.0,
            evidence.share_of
        ),
        remedy: remedy.map_or_else(String::new, |remedy| remedy.sentence.clone()),
        gain: remedy
            .and_then(|remedy| gain(study, remedy.strategy.as_deref()?))
            .unwrap_or_default(),
        jumps: Jump::to_rows(label, 0, &study.recorded, rows).into_iter().collect(),
    }
}

/// What a remedy was predicted and measured to bring.
fn gain(study: &Study, strategy: &str) -> Option<String> {
    let name = strategy.split(':').next()?;
    let tried =
        study.tried.iter().find(|tried| tried.candidate.label.split(':').next() == Some(name))?;
    let judged = &tried.judgement;
    let plain = median_interval(&study.plain).middle;
    let predicted = judged.predicted.map(|time| format!("predicted {}", times(plain / time)));
    let measured = match &judged.verdict {
        Verdict::Wrong(_) | Verdict::Failed(_) => Some(judged.words()),
        _ => judged.speedup.map(|speedup| format!("measured {}", interval(speedup, times))),
    };
    Some([predicted, measured].into_iter().flatten().collect::<Vec<_>>().join(", "))
}
