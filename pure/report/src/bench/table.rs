//! Results as text: one row per phase and repetition, a summary, CSV.
//!
//! Rows that differ in a setting look different: the column of patterns holds whatever tells a case of
//! the plan from the others.

use super::{Labels, Latency, Measurement, Settings, Summary, shown_pattern};
use crate::csv::lines;
use crate::text::duration;
use iolab_vocab::format_bytes;
use std::collections::BTreeSet;

/// The table of a plan while it runs.
pub struct Table {
    labels: Labels,
    width: usize,
}

impl Table {
    /// Learns from the settings of all cases in which ones its rows differ.
    pub fn of(cases: &[Settings]) -> Table {
        let labels = Labels::of(cases.iter());
        let longest = cases.iter().map(|one| what(&labels, one).chars().count()).max();
        Table { labels, width: longest.unwrap_or(0).max(28) }
    }

    /// The heading.
    pub fn header(&self) -> String {
        let width = self.width;
        format!(
            "{:<18} {:<width$} {:<22} {:>3} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9} {:>10}  {}",
            "phase",
            "pattern",
            "method",
            "rep",
            "MiB/s",
            "op/s",
            "p50",
            "p99",
            "max",
            "open",
            "transfer",
            "close",
            "total",
            "notes"
        )
    }

    /// One row.
    pub fn row(&self, m: &Measurement) -> String {
        let width = self.width;
        let latency = |pick: fn(&Latency) -> u64| {
            m.latency.as_ref().map_or("-".to_owned(), |latency| duration(pick(latency)))
        };
        let mut own: Settings = m.settings.clone();
        own.insert("pattern".to_owned(), m.spatial.clone());
        own.insert("temporal".to_owned(), m.temporal.clone());
        own.insert("test".to_owned(), m.test.clone());
        own.extend(m.size.map(|size| ("size".to_owned(), size.to_string())));
        format!(
            "{:<18} {:<width$} {:<22} {:>3} {:>10} {:>10.0} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9} {:>10}  {}",
            phase(m),
            what(&self.labels, &own),
            m.method,
            m.repetition,
            if m.bytes > 0 { format!("{:.1}", m.mib_per_second) } else { "-".to_owned() },
            m.operations_per_second,
            latency(|l| l.p50),
            latency(|l| l.p99),
            latency(|l| l.max),
            duration(m.open_ns),
            duration(m.transfer_ns),
            duration(m.close_ns),
            duration(m.total_ns),
            notes(m)
        )
    }
}

/// The pattern with whatever else tells the case from the others. Metadata operations have none.
fn what(labels: &Labels, settings: &Settings) -> String {
    let metadata = settings.get("temporal").is_some_and(|temporal| temporal == "metadata");
    let pattern = if metadata { "-".to_owned() } else { shown_pattern(settings) };
    match labels.extra(settings) {
        extra if extra.is_empty() => pattern,
        extra => format!("{pattern} [{extra}]"),
    }
}

/// The phase, and what it is part of where that is called otherwise.
fn phase(m: &Measurement) -> String {
    let whole = m.phase == m.temporal || m.temporal == "metadata";
    if whole { m.phase.clone() } else { format!("{} ({})", m.phase, m.temporal) }
}

fn notes(m: &Measurement) -> String {
    let mut notes = Vec::new();
    notes.extend(m.predicted.iter().map(|platform| match m.predicted_range_ns {
        Some((low, high)) if low < high => {
            let share = |ns: u64| (ns as f64 / m.transfer_ns.max(1) as f64 - 1.0) * 100.0;
            format!("predicted on {platform}, time {:+.1} to {:+.1} %", share(low), share(high))
        }
        _ => format!("predicted on {platform}"),
    }));
    notes.extend((!m.cache.is_empty()).then(|| m.cache.clone()));
    notes.extend((!m.allocation.is_empty()).then(|| m.allocation.clone()));
    notes.extend(m.verified.map(|bytes| format!("{} verified", format_bytes(bytes))));
    notes.extend((m.short > 0).then(|| format!("{} short", m.short)));
    notes.extend(m.invalid.as_ref().map(|why| format!("[INVALID] {why}")));
    notes.join(", ")
}

/// The repetitions of each phase together.
pub fn summary_table(summaries: &[Summary]) -> String {
    let width = summaries.iter().map(|s| s.label.chars().count()).max().unwrap_or(0).max(40);
    let mut text = format!(
        "{:<width$} {:>5} {:>10} {:>10}  {:<44} {}\n",
        "", "", "first", "median", "of the others", "slowest rank, times the median of the others"
    );
    for s in summaries {
        let spread = match s.repetitions {
            1 => "n = 1".to_owned(),
            n => format!(
                "{} {:.1} to {:.1}, n = {n}",
                s.interval.name(),
                s.interval.low,
                s.interval.high
            ),
        };
        let slowest =
            s.slowest.map_or("-".to_owned(), |(rank, times)| format!("{rank}, {times:.1}×"));
        text += &format!(
            "{:<width$} {:>5} {:>10.1} {:>10.1}  {:<44} {}\n",
            s.label, s.unit, s.first, s.median, spread, slowest
        );
    }
    text
}

/// Columns of the CSV before those of the settings.
const COLUMNS: [&str; 33] = [
    "test",
    "spatial",
    "temporal",
    "method",
    "phase",
    "size",
    "repetition",
    "ranks",
    "bytes",
    "operations",
    "mib_per_second",
    "operations_per_second",
    "p50_ns",
    "p99_ns",
    "max_ns",
    "open_ns",
    "transfer_ns",
    "sync_ns",
    "close_ns",
    "total_ns",
    "barrier_before_ns",
    "barrier_cost_ns",
    "skew_ns",
    "first_done_ns",
    "last_done_ns",
    "cpu_ns",
    "short",
    "cache",
    "allocation",
    "verified",
    "invalid",
    "predicted",
    "transfer_slack_ns",
];

/// All measurements as CSV, one line each, times in nanoseconds.
pub fn csv(measurements: &[Measurement]) -> String {
    let settings: BTreeSet<&String> = measurements.iter().flat_map(|m| m.settings.keys()).collect();
    let named = settings.iter().map(|key| format!("setting_{}", key.replace([' ', '-'], "_")));
    let names: Vec<String> = COLUMNS.map(str::to_owned).into_iter().chain(named).collect();
    let line = |m: &Measurement| {
        let value = |key: &&String| m.settings.get(*key).cloned().unwrap_or_default();
        cells(m).into_iter().chain(settings.iter().map(value)).collect()
    };
    lines(std::iter::once(names).chain(measurements.iter().map(line)))
}

fn cells(m: &Measurement) -> [String; 33] {
    let latency = |pick: fn(&Latency) -> u64| optional(m.latency.as_ref().map(pick));
    [
        m.test.clone(),
        m.spatial.clone(),
        m.temporal.clone(),
        m.method.clone(),
        m.phase.clone(),
        optional(m.size),
        m.repetition.to_string(),
        m.ranks.to_string(),
        m.bytes.to_string(),
        m.operations.to_string(),
        format!("{:.3}", m.mib_per_second),
        format!("{:.3}", m.operations_per_second),
        latency(|l| l.p50),
        latency(|l| l.p99),
        latency(|l| l.max),
        m.open_ns.to_string(),
        m.transfer_ns.to_string(),
        m.sync_ns.to_string(),
        m.close_ns.to_string(),
        m.total_ns.to_string(),
        m.barrier_before_ns.to_string(),
        m.barrier_cost_ns.to_string(),
        optional(m.skew_ns),
        m.first_done_ns.to_string(),
        m.last_done_ns.to_string(),
        m.cpu_ns.to_string(),
        m.short.to_string(),
        m.cache.clone(),
        m.allocation.clone(),
        optional(m.verified),
        m.invalid.clone().unwrap_or_default(),
        m.predicted.clone().unwrap_or_default(),
        optional(m.transfer_slack_ns),
    ]
}

fn optional(value: Option<u64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_special_about_a_measurement_stands_in_its_notes() {
        let predicted = |range| Measurement {
            predicted: Some("disk".to_owned()),
            predicted_range_ns: range,
            transfer_ns: 100,
            ..Measurement::default()
        };
        let band = "predicted on disk, time -10.0 to +20.0 %";
        assert_eq!(notes(&predicted(Some((90, 120)))), band);
        assert_eq!(notes(&predicted(Some((100, 100)))), "predicted on disk");
        assert_eq!(notes(&predicted(None)), "predicted on disk");
        let all = Measurement {
            cache: "dropped".to_owned(),
            verified: Some(4096),
            short: 2,
            invalid: Some("too fast".to_owned()),
            ..Measurement::default()
        };
        assert_eq!(notes(&all), "dropped, 4 KiB verified, 2 short, [INVALID] too fast");
        assert_eq!(notes(&Measurement::default()), "");
    }
    use std::collections::BTreeMap;

    #[test]
    fn names_with_commas_quotes_and_line_ends_come_back_from_the_csv() {
        let evil = "a,\"b\"\r\nc";
        let mut measurement = Measurement::default();
        for cell in [
            &mut measurement.test,
            &mut measurement.temporal,
            &mut measurement.method,
            &mut measurement.allocation,
        ] {
            evil.clone_into(cell);
        }
        measurement.settings.insert("file-per rank".to_owned(), evil.to_owned());
        let text = csv(&[measurement, Measurement::default()]);
        let rows = ::csv::Reader::from_reader(text.as_bytes()).into_deserialize();
        let rows: Vec<BTreeMap<String, String>> = rows.map(|row| row.expect("a row")).collect();
        for name in ["test", "temporal", "method", "allocation", "setting_file_per_rank"] {
            assert_eq!((&*rows[0][name], &*rows[1][name]), (evil, ""), "{name}");
        }
    }
}
