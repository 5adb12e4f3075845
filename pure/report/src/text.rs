//! The report for people at a terminal: findings first, then who, what and when; short.

pub(crate) mod datasets;
pub(crate) mod parts;

pub use datasets::by_dataset;

use crate::findings::{Finding, Severity};
use crate::report::{FileRow, LayerRow, ProcessRow, Report, Summary};
use crate::sizes::Sizes;
use crate::thousands::{grouped, of_calls, of_files};
use crate::timeline::{Slice, Timeline};
use iolab_trace::Origin;
use iolab_vocab::{format_bytes, printable};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Lines of a list before it is cut.
pub(crate) const LISTED: usize = 10;
/// Columns of a curve over time.
pub(crate) const CURVE_COLUMNS: usize = 60;
/// Columns of the longest bar.
pub(crate) const BAR_COLUMNS: u64 = 30;

/// How the text is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style<'a> {
    /// Mark severities with terminal colours.
    pub colour: bool,
    /// What shows the trace, as a command: `iolab view run.iot`. With it a finding that names rows says how to see
    /// the first one.
    pub view: Option<&'a str>,
}

/// Writes the whole report.
pub fn write(report: &Report, style: Style<'_>) -> String {
    let mut text = heading(&report.summary);
    text.push_str(&findings(&report.findings, style));
    text.push_str(&files(&report.files));
    text.push_str(&datasets::write(&report.datasets, LISTED));
    text.push_str(&parts::write(report.parts.as_ref()));
    if report.processes.len() > 1 {
        text.push_str(&processes(&report.processes, &report.summary));
    }
    if report.layers.len() > 1 {
        text.push_str(&layers(&report.layers));
    }
    text.push_str(&sizes("Sizes of writes", &report.write_sizes));
    text.push_str(&sizes("Sizes of reads", &report.read_sizes));
    text.push_str(&curves(&report.timeline));
    text.push_str(&lacks(report));
    text
}

fn heading(summary: &Summary) -> String {
    let origin = match summary.origin {
        Origin::Recorded => "recorded",
        Origin::Simulated => "simulated",
        Origin::Replayed => "replayed",
        Origin::Imported => "imported",
    };
    let place =
        if summary.host.is_empty() { String::new() } else { format!(" on {}", summary.host) };
    let who = match (summary.rank_count, summary.process_count) {
        (ranks, _) if ranks > 1 => format!("{ranks} ranks"),
        (_, 1) => "1 process".to_owned(),
        (_, processes) => format!("{processes} processes"),
    };
    let mut text = String::new();
    if !summary.command.is_empty() {
        text.push_str(&shortened(&printable(&summary.command.join(" ")), 96));
        text.push('\n');
    }
    let mut facts = vec![format!("{origin}{place}"), who, duration(summary.run_ns)];
    if !summary.strategies.is_empty() {
        let given_up = match summary.given_up.is_empty() {
            true => String::new(),
            false => format!(" ({})", summary.given_up.join(", ")),
        };
        facts.push(format!("with {}{given_up}", summary.strategies.join(" ")));
    }
    _ = writeln!(text, "{}", facts.join(" · "));
    let failed = match summary.failed_count {
        0 => String::new(),
        count => format!(", {} failed", grouped(count)),
    };
    // Nothing timed is nothing known: other tools keep reads and writes only.
    let metadata = match summary.metadata_share {
        share if share > 0.0 => format!(", {:.0} % of it metadata", 100.0 * share),
        _ => String::new(),
    };
    _ = writeln!(
        text,
        "{}{failed} on {} · read {} · wrote {} · {} in I/O{metadata}",
        of_calls(summary.call_count),
        of_files(summary.file_count as u64),
        format_bytes(summary.read_bytes),
        format_bytes(summary.written_bytes),
        duration(summary.io_ns),
    );
    text
}

pub(crate) fn findings(findings: &[Finding], style: Style<'_>) -> String {
    if findings.is_empty() {
        return "\nFindings\n  ✔ none\n".to_owned();
    }
    let mut text = "\nFindings\n".to_owned();
    for finding in findings.iter().take(LISTED) {
        text.push_str(&one_finding(finding, style));
    }
    if let Some(more) = findings.len().checked_sub(LISTED).filter(|&more| more > 0) {
        _ = writeln!(text, "  … and {more} lesser ones (--json lists all)");
    }
    text
}

pub(crate) fn one_finding(finding: &Finding, style: Style<'_>) -> String {
    let (mark, colour) = match finding.severity {
        Severity::High => ("✖", "31"),
        Severity::Medium => ("▲", "33"),
        Severity::Low => ("·", "36"),
    };
    let label = format!("{mark} {:<6}", finding.severity.name());
    let label = if style.colour { format!("\x1b[{colour}m{label}\x1b[0m") } else { label };
    let mut text = String::new();
    _ = writeln!(text, "  {label} {}{}", finding.rule, about(&finding.files));
    _ = writeln!(text, "           {}", printable(&finding.message));
    _ = writeln!(text, "           {}", printable(&evidence(finding)));
    if let (Some(view), Some(row)) = (style.view, finding.evidence.rows.first()) {
        _ = writeln!(text, "             {view} --at row={row}");
    }
    if let Some(remedy) = &finding.remedy {
        for (index, line) in wrapped(&remedy.sentence, 86).iter().enumerate() {
            _ = writeln!(text, "           {} {line}", if index == 0 { "→" } else { " " });
        }
        if let Some(strategy) = &remedy.strategy {
            _ = writeln!(text, "             --apply '{}'", printable(strategy));
        }
    }
    text
}

pub(crate) fn about(files: &[String]) -> String {
    match files {
        [] => String::new(),
        [path] => format!("  {}", printable(path)),
        [path, others @ ..] => format!("  {} and {} more", printable(path), others.len()),
    }
}

fn evidence(finding: &Finding) -> String {
    let rows: Vec<_> = finding.evidence.rows.iter().map(u64::to_string).collect();
    match rows.is_empty() {
        true => cost(finding),
        false => format!("{} · see row {}", cost(finding), rows.join(", ")),
    }
}

/// What a finding costs and how sure it is.
pub(crate) fn cost(finding: &Finding) -> String {
    let evidence = &finding.evidence;
    let share = match evidence.share_of_run * 100.0 {
        percent @ 1.0.. => format!("{percent:.0} % of {}", evidence.share_of),
        _ => format!("less than 1 % of {}", evidence.share_of),
    };
    format!("{} · {share} · {}", duration(evidence.time_ns), finding.confidence.name())
}

fn files(files: &[FileRow]) -> String {
    let shown: Vec<&FileRow> = files
        .iter()
        .filter(|file| file.read_count.max(file.write_count).max(file.metadata_count) > 0)
        .collect();
    let mut rows = vec![cells(["time", "reads", "", "writes", "", "other", "pattern", "file"])];
    for file in shown.iter().take(LISTED) {
        rows.push([
            duration(file.time_ns),
            grouped(file.read_count),
            bytes_or_dash(file.read_bytes),
            grouped(file.write_count),
            bytes_or_dash(file.written_bytes),
            grouped(file.metadata_count),
            file_pattern(file),
            shortened_path(&printable(&file.path), 60),
        ]);
    }
    let mut text = format!("\nFiles\n{}", table(&rows, 6));
    if let Some(more) = shown.len().checked_sub(LISTED).filter(|&more| more > 0) {
        _ = writeln!(text, "  … and {} more files (--csv lists all)", grouped(more as u64));
    }
    text
}

pub(crate) fn file_pattern(file: &FileRow) -> String {
    let name = |pattern: &Option<crate::SharedPattern>| {
        pattern.as_ref().map(|pattern| pattern.description.clone())
    };
    match (name(&file.read_pattern), name(&file.write_pattern)) {
        (None, None) => "–".to_owned(),
        (Some(read), None) => format!("r {read}"),
        (None, Some(write)) => format!("w {write}"),
        (Some(read), Some(write)) if read == write => format!("rw {read}"),
        (Some(read), Some(write)) => format!("r {read}; w {write}"),
    }
}

fn processes(processes: &[ProcessRow], summary: &Summary) -> String {
    let mut order: Vec<&ProcessRow> = processes.iter().collect();
    order.sort_by_key(|process| std::cmp::Reverse(process.io_ns));
    let title = if summary.rank_count > 1 { "Ranks" } else { "Processes" };
    let mut rows = vec![cells(["in I/O", "of run", "calls", "read", "written", "", ""])];
    let longest = order.first().map_or(1, |process| process.io_ns.max(1));
    for process in order.iter().take(LISTED) {
        rows.push([
            duration(process.io_ns),
            format!("{:.0} %", 100.0 * process.io_share),
            grouped(process.call_count),
            bytes_or_dash(process.read_bytes),
            bytes_or_dash(process.written_bytes),
            bar(process.io_ns, longest, BAR_COLUMNS / 2),
            printable(&process.name).into_owned(),
        ]);
    }
    let mut text = format!("\n{title}, the one longest in I/O first\n{}", table(&rows, 5));
    if let Some(more) = order.len().checked_sub(LISTED).filter(|&more| more > 0) {
        _ = writeln!(text, "  … and {more} more");
    }
    text
}

fn layers(layers: &[LayerRow]) -> String {
    let mut rows = vec![cells(["time", "calls", "inside others", "read", "written", "layer"])];
    for layer in layers {
        rows.push([
            duration(layer.time_ns),
            grouped(layer.call_count),
            grouped(layer.nested_count),
            bytes_or_dash(layer.read_bytes),
            bytes_or_dash(layer.written_bytes),
            layer.layer.to_owned(),
        ]);
    }
    format!("\nLayers\n{}", table(&rows, 5))
}

fn sizes(title: &str, sizes: &Sizes) -> String {
    let ranges = sizes.ranges();
    if ranges.is_empty() {
        return String::new();
    }
    let largest = ranges.iter().map(|range| range.count).max().unwrap_or(1);
    let mut rows: Vec<[String; 3]> = Vec::new();
    for range in ranges {
        let text = match range.below {
            Some(below) if below == range.from + 1 => format_bytes(range.from),
            Some(below) => format!("{} – {}", format_bytes(range.from), format_bytes(below)),
            None => format!("{} and more", format_bytes(range.from)),
        };
        rows.push([text, grouped(range.count), bar(range.count, largest, BAR_COLUMNS)]);
    }
    format!("\n{title}\n{}", table(&rows, 2))
}

fn curves(timeline: &Timeline) -> String {
    let read = curve(timeline, |slice| slice.read_bytes);
    let written = curve(timeline, |slice| slice.written_bytes);
    let mut text = String::new();
    for (name, (line, peak)) in [("read", read), ("written", written)] {
        if peak > 0.0 {
            _ = writeln!(text, "  {name:<8}{line}  peak {}/s", format_bytes(peak as u64));
        }
    }
    let length = duration(timeline.slice_ns.saturating_mul(timeline.slices.len() as u64));
    if text.is_empty() { text } else { format!("\nBandwidth over {length}\n{text}") }
}

/// One character per few slices, and the highest rate in bytes per second.
fn curve(timeline: &Timeline, bytes: fn(&Slice) -> f64) -> (String, f64) {
    let each = timeline.slices.len().div_ceil(CURVE_COLUMNS).max(1);
    let sum = |slices: &[Slice]| slices.iter().map(bytes).sum::<f64>() / slices.len() as f64;
    let values: Vec<f64> = timeline.slices.chunks(each).map(sum).collect();
    let peak = values.iter().copied().fold(0.0, f64::max);
    let line = values.iter().map(|value| level(*value, peak)).collect();
    (line, peak / (timeline.slice_ns as f64 / 1e9))
}

pub(crate) fn level(value: f64, peak: f64) -> char {
    const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let index = if peak > 0.0 { (value / peak * 8.0).ceil() as usize } else { 0 };
    LEVELS[index.min(8)]
}

fn lacks(report: &Report) -> String {
    let lines = lack_lines(report);
    if lines.is_empty() {
        return String::new();
    }
    let mut text = "\nWhat the trace does not show\n".to_owned();
    for line in lines.iter().take(LISTED) {
        for (index, part) in wrapped(line, 94).iter().enumerate() {
            _ = writeln!(text, "  {}{part}", if index == 0 { "" } else { "  " });
        }
    }
    if let Some(more) = lines.len().checked_sub(LISTED).filter(|&more| more > 0) {
        _ = writeln!(text, "  … and {more} more (--json lists all)");
    }
    text
}

/// One line for each thing the trace does not show.
pub(crate) fn lack_lines(report: &Report) -> Vec<String> {
    let lacks = &report.lacks;
    let mut lines: Vec<String> = Vec::new();
    for (reason, count) in &lacks.losses.lost_calls {
        lines.push(format!("{} events dropped: {reason}", grouped(*count)));
    }
    let left_out = lacks.losses.left_out_calls.iter();
    let left_out: Vec<_> =
        left_out.map(|(rule, count)| format!("{rule} {}", grouped(*count))).collect();
    if !left_out.is_empty() {
        lines.push(format!("calls left out by rule: {}", left_out.join(", ")));
    }
    if lacks.counted_call_count > 0 {
        lines.push(format!(
            "the times of {} calls on streams that reached no system call: they were counted \
             (`iolab record --stdio calls` records each)",
            grouped(lacks.counted_call_count)
        ));
    }
    lines.extend(lacks.losses.unseen.iter().map(|what| format!("not seen: {what}")));
    lines.extend(lacks.inferred.iter().map(|what| format!("inferred: {what}")));
    let mut cut: BTreeMap<&str, u64> = BTreeMap::new();
    for name in &lacks.cut_processes {
        *cut.entry(name).or_default() += 1;
    }
    lines.extend(cut.iter().map(|(name, count)| match count {
        1 => format!("{name} ended without telling"),
        _ => format!("{name} ended without telling, {count} times"),
    }));
    lines
}

pub(crate) fn cells<const N: usize>(texts: [&str; N]) -> [String; N] {
    texts.map(str::to_owned)
}

/// Aligns columns; the first `right` ones to the right, as numbers are.
pub(crate) fn table<const N: usize>(rows: &[[String; N]], right: usize) -> String {
    let rows: Vec<[Cow<'_, str>; N]> =
        rows.iter().map(|row| row.each_ref().map(|cell| printable(cell))).collect();
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::from("  ");
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            _ = match column < right {
                true => write!(line, "{cell:>width$}  "),
                false => write!(line, "{cell:<width$}  "),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

pub(crate) fn bar(value: u64, largest: u64, columns: u64) -> String {
    let length = (value as u128 * u128::from(columns)).div_ceil(u128::from(largest.max(1)));
    "█".repeat(length as usize)
}

pub(crate) fn bytes_or_dash(bytes: u64) -> String {
    if bytes == 0 { "–".to_owned() } else { format_bytes(bytes) }
}

/// Three significant digits with the unit that fits.
pub(crate) fn duration(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
}

/// By how much of itself something is off; what rounds to nothing has no sign.
pub(crate) fn signed_percent(share: f64) -> String {
    match (share * 100.0).round() {
        0.0 => "0 %".to_owned(),
        percent => format!("{percent:+.0} %"),
    }
}

pub(crate) fn shortened(text: &str, columns: usize) -> String {
    match text.chars().count() > columns {
        true => text.chars().take(columns - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// The end of a path says more than its beginning.
pub(crate) fn shortened_path(path: &str, columns: usize) -> String {
    let count = path.chars().count();
    match count > columns {
        true => ['…'].into_iter().chain(path.chars().skip(count - columns + 1)).collect(),
        false => path.to_owned(),
    }
}

pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace().map(printable) {
        let last = lines.len() - 1;
        if !lines[last].is_empty()
            && lines[last].chars().count() + 1 + word.chars().count() > columns
        {
            lines.push(word.into_owned());
        } else {
            let space = if lines[last].is_empty() { "" } else { " " };
            lines[last].push_str(&format!("{space}{word}"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_off_by_nothing_that_shows_has_no_sign() {
        let told = [-0.004, 0.0, 0.004, -0.006, 0.123, -0.5].map(signed_percent);
        assert_eq!(told, ["0 %", "0 %", "0 %", "-1 %", "+12 %", "-50 %"]);
    }

    #[test]
    fn a_duration_has_three_digits_and_a_unit_that_fits() {
        let texts = [999, 1_500, 41_200_000, 412_000_000, 12_300_000_000].map(duration);
        assert_eq!(texts, ["999 ns", "1.50 µs", "41.2 ms", "412 ms", "12.3 s"]);
    }

    #[test]
    fn long_text_is_wrapped_between_words_and_a_long_path_keeps_its_end() {
        assert_eq!(wrapped("a bb ccc d", 4), ["a bb", "ccc", "d"]);
        assert_eq!(shortened_path("/very/long/name", 8), "…ng/name");
    }
}
