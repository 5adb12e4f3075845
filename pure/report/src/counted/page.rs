//! The report of counters as a page.

use super::text::{common, ranks_of, share};
use super::{CountedFile, CountedReport, HeatRow, ModuleRow, bin_name};
use crate::chart::{Axis, Chart, Mark, Series, Unit};
use crate::findings::{Finding, Severity};
use crate::page::{self, Cell, Page, Section, Table, Tone, render};
use crate::sections::sentence;
use crate::text::duration;
use crate::thousands::grouped;
use iolab_vocab::format_bytes;

/// Rows of a table before it is cut.
const LISTED: usize = 50;

/// A page about a log of counters, as the bytes of one HTML file.
pub fn page(report: &CountedReport) -> Vec<u8> {
    let summary = &report.summary;
    let title = match summary.command.is_empty() {
        true => "I/O of a run, as Darshan counted it".to_owned(),
        false => format!("I/O of {}, as Darshan counted it", summary.command.join(" ")),
    };
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let facts = vec![
        fact("run", duration(summary.run_ns)),
        fact("in I/O, all ranks", duration(summary.io_ns)),
        fact("read", format_bytes(summary.read_bytes)),
        fact("written", format_bytes(summary.written_bytes)),
        fact("files", grouped(summary.file_count as u64)),
        fact("ranks", grouped(summary.rank_count.into())),
        fact("log format", summary.log_format.clone()),
    ];
    let worst = report.findings.first().filter(|finding| finding.severity > Severity::Low);
    let headline = worst.map_or_else(
        || "Counters give no reason to complain of this run's I/O.".to_owned(),
        |finding| sentence(&finding.message),
    );
    let findings = report.findings.iter().map(shown).collect();
    let mut all = vec![Section::Findings(findings)];
    all.extend(sections(report));
    for (title, lines) in
        [("What the log lacks", &report.lacks), ("What counters cannot tell", &report.unknown)]
    {
        if !lines.is_empty() {
            all.push(Section::Text { title: title.to_owned(), paragraphs: lines.clone() });
        }
    }
    render(&Page { title, headline, facts, sections: all, timelines: Vec::new() })
}

/// What counters add to a page about a trace of the same log, without findings.
pub fn sections(report: &CountedReport) -> Vec<Section> {
    let mut sections = vec![Section::Table(modules(&report.modules))];
    let mut charts: Vec<Chart> = report.heat.iter().filter_map(curve).collect();
    charts.extend(report.modules.iter().filter_map(sizes));
    if !charts.is_empty() {
        sections.push(Section::Charts(charts));
    }
    sections.push(Section::Table(files(&report.files)));
    sections
}

/// A finding on a page that has no timeline to jump into.
pub(super) fn shown(finding: &Finding) -> page::Finding {
    let tone = match finding.severity {
        Severity::High => Tone::Bad,
        Severity::Medium => Tone::Doubtful,
        Severity::Low => Tone::Quiet,
    };
    page::Finding {
        title: format!("{}{}", finding.rule.replace('-', " "), crate::text::about(&finding.files)),
        tone,
        evidence: format!("{} ({})", sentence(&finding.message), crate::text::cost(finding)),
        remedy: finding.remedy.as_ref().map_or_else(String::new, |it| sentence(&it.sentence)),
        ..page::Finding::default()
    }
}

fn modules(modules: &[ModuleRow]) -> Table {
    let columns = [
        "module",
        "files",
        "shared",
        "opens",
        "reads",
        "read",
        "in",
        "writes",
        "written",
        "in",
        "collective",
        "metadata in",
    ];
    let rows = modules.iter().map(|module| {
        [
            module.module.to_owned(),
            grouped(module.file_count as u64),
            grouped(module.shared_file_count as u64),
            grouped(module.open_count),
            grouped(module.read_count),
            format_bytes(module.read_bytes),
            duration(module.read_ns),
            grouped(module.write_count),
            format_bytes(module.written_bytes),
            duration(module.write_ns),
            grouped(module.collective_count),
            duration(module.metadata_ns),
        ]
    });
    rows.fold(Table::new("Modules", columns), Table::row).caption(
        "Times are sums over all ranks; what a layer counts, the layers below count again.",
    )
}

fn files(files: &[CountedFile]) -> Table {
    let columns = [
        "time",
        "reads",
        "read",
        "in order",
        "writes",
        "written",
        "in order",
        "misaligned",
        "sizes",
        "ranks",
        "module",
        "file",
    ];
    let longest = files.first().map_or(1, |file| file.ns().max(1)) as f64;
    let mut table = Table::new("Files", columns);
    for file in files.iter().take(LISTED) {
        table = table.row([
            Cell::bar(duration(file.ns()), file.ns() as f64 / longest),
            Cell::from(grouped(file.read_count)),
            Cell::from(format_bytes(file.read_bytes)),
            Cell::from(share(file.sequential_read_share)),
            Cell::from(grouped(file.write_count)),
            Cell::from(format_bytes(file.written_bytes)),
            Cell::from(share(file.sequential_write_share)),
            Cell::from(grouped(file.misaligned_count)),
            Cell::from(common(file)),
            Cell::from(ranks_of(file)),
            Cell::from(file.module),
            Cell::from(file.path.clone()),
        ]);
    }
    match files.len().checked_sub(LISTED).filter(|more| *more > 0) {
        Some(more) => table.caption(format!("{} more took less time.", grouped(more as u64))),
        None => table,
    }
}

fn curve(heat: &HeatRow) -> Option<Chart> {
    let bin_s = heat.bin_ns as f64 / 1e9;
    let is_used = heat.read_bytes.iter().chain(&heat.written_bytes).any(|bytes| *bytes > 0);
    let series = |label: &str, bins: &[u64]| {
        let points = bins.iter().enumerate();
        let points = points.map(|(at, bytes)| (at as f64 * bin_s, *bytes as f64 / bin_s));
        Series::new(label, Mark::Area, points)
    };
    is_used.then(|| {
        Chart::new(
            format!("Bandwidth over time, {}", heat.module),
            Axis::linear("time", Unit::Seconds),
            Axis::linear("bandwidth", Unit::BytesPerSecond),
        )
        .with(series("read", &heat.read_bytes))
        .with(series("written", &heat.written_bytes))
        .caption("By the heat map of the log.")
    })
}

fn sizes(module: &ModuleRow) -> Option<Chart> {
    let series = |label: &str, counts: &[u64; 10]| {
        let points = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        Series::new(label, Mark::Bars, points.map(|(bin, count)| (bin as f64, *count as f64)))
    };
    let is_used = module.read_sizes.iter().chain(&module.write_sizes).any(|count| *count > 0);
    is_used.then(|| {
        Chart::new(
            format!("Sizes of accesses, {}", module.module),
            Axis::categories("size", (0..10).map(bin_name)),
            Axis::log10("accesses", Unit::Plain),
        )
        .with(series("reads", &module.read_sizes))
        .with(series("writes", &module.write_sizes))
    })
}
