//! The report as parts of a page, so that `iolab report --html` and `iolab study` show the same.

use crate::chart::{Axis, Chart, Mark, Series, Unit};
use crate::findings::{Finding, Severity};
use crate::page::{self, Cell, Jump, Page, Section, Table, Tone};
use crate::parts::{Part, PartSums};
use crate::report::{FileRow, ProcessRow, Report};
use crate::sizes::SizeRange;
use crate::text::{self, datasets, duration};
use crate::thousands::grouped;
use iolab_trace::Trace;
use iolab_vocab::format_bytes;

/// Rows of a table before it is cut; a page has more room than a terminal.
const LISTED: usize = 50;

/// A page about one trace, as the bytes of one HTML file.
pub fn page(report: &Report, trace: &Trace) -> Vec<u8> {
    page_with(report, trace, Vec::new())
}

/// The same with more behind all else.
pub fn page_with(report: &Report, trace: &Trace, more: Vec<Section>) -> Vec<u8> {
    let summary = &report.summary;
    let title = match summary.command.is_empty() {
        true => "I/O of a run".to_owned(),
        false => format!("I/O of {}", summary.command.join(" ")),
    };
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let facts = vec![
        fact("run", duration(summary.run_ns)),
        fact("in I/O", duration(summary.io_ns)),
        fact("calls", grouped(summary.call_count)),
        fact("read", format_bytes(summary.read_bytes)),
        fact("written", format_bytes(summary.written_bytes)),
        fact("files", grouped(summary.file_count as u64)),
        fact("processes", summary.process_count.to_string()),
        fact("host", summary.host.clone()),
    ];
    let timelines = vec![page::Timeline::new(page::label(&trace.header), trace)];
    let headline = headline(report);
    let mut sections = sections(report, trace, 0);
    sections.extend(more);
    page::render(&Page { title, headline, facts, sections, timelines })
}

fn headline(report: &Report) -> String {
    let sentence = |finding: &Finding| {
        let place = finding.files.first().map(|path| format!(" in {path}")).unwrap_or_default();
        let message = &finding.message;
        let evidence = &finding.evidence;
        let share = 100.0 * evidence.share_of_run;
        format!("{message}{place}: {share:.0} % of {}.", evidence.share_of)
    };
    let worst = report.findings.first().filter(|finding| finding.severity > Severity::Low);
    worst.map_or("Nothing is wrong with how this run does its I/O.".to_owned(), sentence)
}

/// Findings, tables and charts of a report; findings jump into the page's timeline number
/// `timeline`, which must be of `trace`.
pub fn sections(report: &Report, trace: &Trace, timeline: usize) -> Vec<Section> {
    let finding = |finding: &Finding| shown(finding, trace, timeline);
    let mut sections = Vec::new();
    if !report.findings.is_empty() {
        sections.push(Section::Findings(report.findings.iter().map(finding).collect()));
    }
    sections.push(Section::Timeline);
    sections.push(Section::Charts(charts(report)));
    sections.push(Section::Table(files(&report.files)));
    if !report.datasets.is_empty() {
        let title = datasets::title(&report.datasets);
        let rows = datasets::rows(report.datasets.iter().take(LISTED));
        sections.push(Section::Table(
            rows.into_iter().fold(Table::new(title, datasets::COLUMNS), Table::row),
        ));
    }
    if let Some(sums) = &report.parts {
        sections.push(Section::Table(parts(sums)));
    }
    sections.push(Section::Table(processes(&report.processes)));
    let lacks = crate::text::lack_lines(report);
    if !lacks.is_empty() {
        let title = "What the trace does not show".to_owned();
        sections.push(Section::Text { title, paragraphs: lacks });
    }
    sections
}

fn shown(finding: &Finding, trace: &Trace, timeline: usize) -> page::Finding {
    let tone = match finding.severity {
        Severity::High => Tone::Bad,
        Severity::Medium => Tone::Doubtful,
        Severity::Low => Tone::Quiet,
    };
    let remedy = finding.remedy.as_ref().map_or(String::new(), |remedy| match &remedy.strategy {
        Some(strategy) => {
            format!("{} Without a change: --apply '{strategy}'.", sentence(&remedy.sentence))
        }
        None => sentence(&remedy.sentence),
    });
    let rows = finding.evidence.rows.iter().map(|&row| row as usize);
    let jumps = rows.filter_map(|row| {
        let jump = Jump::to_rows(format!("row {row}"), timeline, trace, [row])?;
        Some(Jump { filter: finding.files.first().cloned().unwrap_or_default(), ..jump }.widened())
    });
    page::Finding {
        title: format!("{}{}", finding.rule.replace('-', " "), crate::text::about(&finding.files)),
        tone,
        evidence: format!("{} ({})", sentence(&finding.message), crate::text::cost(finding)),
        remedy,
        gain: String::new(),
        jumps: jumps.collect(),
    }
}

pub(crate) fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", characters.as_str())
}

fn charts(report: &Report) -> Vec<Chart> {
    vec![bandwidth(report), sizes(report)]
}

fn bandwidth(report: &Report) -> Chart {
    let slice_s = report.timeline.slice_ns as f64 / 1e9;
    let series = |label: &str, bytes: fn(&crate::Slice) -> f64| {
        let slices = report.timeline.slices.iter().enumerate();
        let points = slices.map(|(index, slice)| (index as f64 * slice_s, bytes(slice) / slice_s));
        Series::new(label, Mark::Area, points)
    };
    let time = Axis::linear("time", Unit::Seconds);
    Chart::new("Bandwidth over time", time, Axis::linear("bandwidth", Unit::BytesPerSecond))
        .with(series("read", |slice| slice.read_bytes))
        .with(series("written", |slice| slice.written_bytes))
}

/// Bars per power of two, from the smallest request of the run to its largest.
fn sizes(report: &Report) -> Chart {
    let both = [&report.read_sizes, &report.write_sizes].map(|sizes| sizes.ranges());
    let from = |power: u32| if power == 0 { 0 } else { 1_u64 << (power - 1) };
    let used: Vec<u64> = both.iter().flatten().map(|range| range.from).collect();
    let (low, high) = (used.iter().min().copied(), used.iter().max().copied());
    let shown =
        |size: &u64| low.is_some_and(|low| *size >= low) && high.is_some_and(|high| *size <= high);
    let bins: Vec<u64> = (0..64).map(from).filter(shown).collect();
    let series = |label: &str, ranges: &[SizeRange]| {
        let place = |range: &SizeRange| bins.iter().position(|&from| from == range.from);
        let points =
            ranges.iter().filter_map(|range| Some((place(range)? as f64, range.count as f64)));
        Series::new(label, Mark::Bars, points)
    };
    let names = bins.iter().map(|&from| format_bytes(from));
    Chart::new(
        "Request sizes",
        Axis::categories("bytes asked for, at least", names),
        Axis::log10("requests", Unit::Plain),
    )
    .with(series("reads", &both[0]))
    .with(series("writes", &both[1]))
    .caption("Requests that reach the system, by powers of two.")
}

fn files(files: &[FileRow]) -> Table {
    let columns = ["time", "reads", "read", "writes", "written", "other", "pattern", "file"];
    let mut table = Table::new("Files", columns);
    let longest = files.first().map_or(1, |file| file.time_ns.max(1)) as f64;
    for file in files.iter().take(LISTED) {
        table = table.row([
            Cell::bar(duration(file.time_ns), file.time_ns as f64 / longest),
            Cell::from(grouped(file.read_count)),
            Cell::from(format_bytes(file.read_bytes)),
            Cell::from(grouped(file.write_count)),
            Cell::from(format_bytes(file.written_bytes)),
            Cell::from(grouped(file.metadata_count)),
            Cell::from(crate::text::file_pattern(file)),
            Cell::from(file.path.clone()),
        ]);
    }
    match files.len().checked_sub(LISTED).filter(|&more| more > 0) {
        Some(more) => table.caption(format!("{} more files took less time.", grouped(more as u64))),
        None => table,
    }
}

/// A bar for the share of each part.
fn parts(sums: &PartSums) -> Table {
    let mut table = Table::new("Where the time of calls went", text::parts::COLUMNS);
    for (_, prefix, rows) in text::parts::groupings(sums) {
        for row in rows.iter().take(LISTED) {
            let total = row.parts.total().max(1) as f64;
            let share = |part: Part| {
                Cell::bar(text::parts::share(&row.parts, part), row.parts.of(part) as f64 / total)
            };
            let mut cells = vec![Cell::from(duration(row.time_ns))];
            cells.extend(Part::ALL.map(share));
            cells.push(Cell::from(grouped(row.call_count)));
            cells.push(Cell::from(text::parts::named(prefix, row)));
            table.push(cells);
        }
    }
    let parts = Part::ALL.map(Part::name).join(", ");
    table.caption(format!(
        "Parts of the way back from the end of each call over what it waited for last: {parts} (other ranks, and what nobody knows). They add up to the time."
    ))
}

fn processes(processes: &[ProcessRow]) -> Table {
    let columns = ["process", "run", "in I/O", "of run", "calls", "read", "written"];
    let mut order: Vec<&ProcessRow> = processes.iter().collect();
    order.sort_by_key(|process| std::cmp::Reverse(process.io_ns));
    let mut table = Table::new("Time in I/O and the rest", columns);
    for process in order.iter().take(LISTED) {
        table = table.row([
            Cell::from(process.name.clone()),
            Cell::from(duration(process.run_ns)),
            Cell::from(duration(process.io_ns)),
            Cell::bar(format!("{:.0} %", 100.0 * process.io_share), process.io_share),
            Cell::from(grouped(process.call_count)),
            Cell::from(format_bytes(process.read_bytes)),
            Cell::from(format_bytes(process.written_bytes)),
        ]);
    }
    table
}
