//! Results as text: one row per phase and repetition, a summary, CSV.

use crate::outcome::{Measurement, Summary};
use iolab_vocab::format_bytes;

/// The heading of the table.
pub fn header() -> String {
    format!(
        "{:<18} {:<28} {:<22} {:>3} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9} {:>10}  {}",
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

/// One row of the table.
pub fn row(m: &Measurement) -> String {
    let latency = |pick: fn(&crate::outcome::Latency) -> u64| {
        m.latency.as_ref().map_or("-".to_owned(), |latency| duration(pick(latency)))
    };
    format!(
        "{:<18} {:<28} {:<22} {:>3} {:>10} {:>10.0} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9} {:>10}  {}",
        m.phase,
        shortened(&pattern(&m.spatial, &m.temporal, m.size), 28),
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

/// A time with a unit that leaves three digits.
pub(crate) fn duration(ns: u64) -> String {
    match ns as f64 {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{} us", three(ns / 1e3)),
        ns if ns < 1e9 => format!("{} ms", three(ns / 1e6)),
        ns => format!("{} s", three(ns / 1e9)),
    }
}

fn three(value: f64) -> String {
    match value {
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 100.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// The pattern, its swept size in front where it is not cut off. Metadata operations have none.
fn pattern(spatial: &str, temporal: &str, size: Option<u64>) -> String {
    match (temporal, size, spatial.split_once(':')) {
        ("metadata", ..) => "-".to_owned(),
        (_, Some(size), Some((name, _))) => format!("{name} {}", format_bytes(size)),
        _ => spatial.to_owned(),
    }
}

fn shortened(text: &str, width: usize) -> String {
    match text.chars().count() > width {
        true => text.chars().take(width - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// The repetitions of each phase together.
pub fn summary_table(summaries: &[Summary]) -> String {
    let mut text = format!(
        "{:<18} {:<28} {:<22} {:>10} {:>10} {:>23}\n",
        "phase", "pattern", "method", "first", "median", "95 % interval (MiB/s)"
    );
    for s in summaries {
        text += &format!(
            "{:<18} {:<28} {:<22} {:>10.1} {:>10.1} {:>23}\n",
            s.phase,
            shortened(&pattern(&s.spatial, &s.phase, s.size), 28),
            s.method,
            s.first,
            s.median,
            format!("{:.1} to {:.1} (n={})", s.interval.low, s.interval.high, s.repetitions)
        );
    }
    text
}

/// All measurements as CSV, one line each, times in nanoseconds.
pub fn csv(measurements: &[Measurement]) -> String {
    let mut text = "test,spatial,temporal,method,phase,size,repetition,ranks,bytes,operations,\
                    mib_per_second,operations_per_second,p50_ns,p99_ns,max_ns,open_ns,transfer_ns,\
                    sync_ns,close_ns,total_ns,barrier_before_ns,barrier_cost_ns,skew_ns,\
                    first_done_ns,last_done_ns,cpu_ns,short,cache,allocation,verified,invalid,predicted\n"
        .to_owned();
    for m in measurements {
        let latency = |pick: fn(&crate::outcome::Latency) -> u64| m.latency.as_ref().map(pick);
        let cells = [
            quoted(&m.test),
            quoted(&m.spatial),
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
            optional(latency(|l| l.p50)),
            optional(latency(|l| l.p99)),
            optional(latency(|l| l.max)),
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
            quoted(&m.cache),
            m.allocation.clone(),
            optional(m.verified),
            quoted(m.invalid.as_deref().unwrap_or("")),
            quoted(m.predicted.as_deref().unwrap_or("")),
        ];
        text += &cells.join(",");
        text.push('\n');
    }
    text
}

fn optional(value: Option<u64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// Text as CSV wants it: in quotes where a comma, quote or line end is in it.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
