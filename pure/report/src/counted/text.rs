//! The report of counters for people at a terminal.

use super::{CountedFile, CountedReport, HeatRow, ModuleRow, bin_name};
use crate::text::{
    BAR_COLUMNS, CURVE_COLUMNS, LISTED, Style, bar, bytes_or_dash, cells, duration, findings,
    level, one_finding, shortened, shortened_path, table, wrapped,
};
use crate::thousands::{grouped, of_files};
use iolab_vocab::format_bytes;
use std::fmt::Write;

/// Writes the whole report.
pub fn write(report: &CountedReport, style: Style<'_>) -> String {
    let mut text = heading(report);
    text.push_str(&findings(&report.findings, style));
    text.push_str(&body(report));
    text.push_str(&list("What the log lacks", &report.lacks));
    text.push_str(&list("What counters cannot tell", &report.unknown));
    text
}

/// What counters add to the report of a trace of the same log.
pub fn beside(report: &CountedReport, style: Style<'_>) -> String {
    let mut text = "\nWhat Darshan counted besides\n".to_owned();
    for finding in report.beside_trace() {
        text.push_str(&one_finding(finding, style));
    }
    text.push_str(&body(report));
    text
}

fn body(report: &CountedReport) -> String {
    let mut text = modules(&report.modules);
    text.push_str(&files(&report.files));
    if report.summary.rank_count > 1 {
        text.push_str(&ranks(report));
    }
    for module in &report.modules {
        text.push_str(&sizes(&format!("Sizes of writes, {}", module.module), &module.write_sizes));
        text.push_str(&sizes(&format!("Sizes of reads, {}", module.module), &module.read_sizes));
    }
    for heat in &report.heat {
        text.push_str(&curves(heat));
    }
    text
}

fn heading(report: &CountedReport) -> String {
    let summary = &report.summary;
    let mut text = String::new();
    if !summary.command.is_empty() {
        _ = writeln!(text, "{}", shortened(&summary.command.join(" "), 96));
    }
    let ranks = match summary.rank_count {
        1 => "1 process".to_owned(),
        ranks => format!("{} ranks", grouped(ranks.into())),
    };
    _ = writeln!(
        text,
        "counted by Darshan (log format {}) · {ranks} · {} · counters only, no single calls",
        summary.log_format,
        duration(summary.run_ns)
    );
    let metadata = match summary.metadata_share {
        share if share > 0.0 => format!(", {:.0} % of it metadata", 100.0 * share),
        _ => String::new(),
    };
    _ = writeln!(
        text,
        "{} · read {} · wrote {} · {} in I/O over all ranks{metadata}",
        of_files(summary.file_count as u64),
        format_bytes(summary.read_bytes),
        format_bytes(summary.written_bytes),
        duration(summary.io_ns),
    );
    text
}

fn modules(modules: &[ModuleRow]) -> String {
    if modules.is_empty() {
        return String::new();
    }
    let head = [
        "reads",
        "",
        "in",
        "writes",
        "",
        "in",
        "collective",
        "opens",
        "other",
        "in",
        "files",
        "module",
    ];
    let mut rows = vec![cells(head)];
    for module in modules {
        rows.push([
            grouped(module.read_count),
            bytes_or_dash(module.read_bytes),
            duration(module.read_ns),
            grouped(module.write_count),
            bytes_or_dash(module.written_bytes),
            duration(module.write_ns),
            grouped(module.collective_count),
            grouped(module.open_count),
            grouped(module.metadata_count.saturating_sub(module.open_count)),
            duration(module.metadata_ns),
            match module.shared_file_count {
                0 => grouped(module.file_count as u64),
                shared => format!(
                    "{}, {} shared",
                    grouped(module.file_count as u64),
                    grouped(shared as u64)
                ),
            },
            module.module.to_owned(),
        ]);
    }
    format!("\nModules (times are sums over all ranks)\n{}", table(&rows, 11))
}

fn files(files: &[CountedFile]) -> String {
    let head = [
        "time",
        "reads",
        "",
        "in order",
        "writes",
        "",
        "in order",
        "misaligned",
        "sizes",
        "ranks",
        "module",
        "file",
    ];
    let mut rows = vec![cells(head)];
    for file in files.iter().take(LISTED) {
        rows.push([
            duration(file.ns()),
            grouped(file.read_count),
            bytes_or_dash(file.read_bytes),
            share(file.sequential_read_share),
            grouped(file.write_count),
            bytes_or_dash(file.written_bytes),
            share(file.sequential_write_share),
            match file.misaligned_count {
                0 => "–".to_owned(),
                count => grouped(count),
            },
            common(file),
            ranks_of(file),
            file.module.to_owned(),
            shortened_path(&file.path, 50),
        ]);
    }
    let mut text = format!("\nFiles\n{}", table(&rows, 8));
    if let Some(more) = files.len().checked_sub(LISTED).filter(|more| *more > 0) {
        _ = writeln!(text, "  … and {} more (--csv lists all)", grouped(more as u64));
    }
    text
}

/// A share as counters give it.
pub(super) fn share(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{:.0} %", 100.0 * share))
}

/// The two most frequent sizes.
pub(super) fn common(file: &CountedFile) -> String {
    let sizes = file.common_sizes.iter().take(2);
    let sizes: Vec<_> = sizes
        .map(|(size, count)| format!("{} ×{}", format_bytes(*size), grouped(*count)))
        .collect();
    if sizes.is_empty() { "–".to_owned() } else { sizes.join(", ") }
}

/// How many ranks used a file.
pub(super) fn ranks_of(file: &CountedFile) -> String {
    match (file.shared, file.mover_count) {
        (true, movers) if movers < file.rank_count && movers > 0 => {
            format!("all, {} move", grouped(movers.into()))
        }
        (true, _) => "all".to_owned(),
        _ => grouped(file.rank_count.into()),
    }
}

fn ranks(report: &CountedReport) -> String {
    let mut text = String::new();
    if !report.ranks.is_empty() {
        let longest = report.ranks.first().map_or(1, |rank| rank.time_ns.max(1));
        let mut rows = vec![cells(["in I/O", "calls", "read", "written", "", ""])];
        for rank in report.ranks.iter().take(LISTED) {
            rows.push([
                duration(rank.time_ns),
                grouped(rank.call_count),
                bytes_or_dash(rank.read_bytes),
                bytes_or_dash(rank.written_bytes),
                bar(rank.time_ns, longest, BAR_COLUMNS / 2),
                format!("rank {}", rank.rank),
            ]);
        }
        let title = "Ranks by what was counted of each alone, the one longest in I/O first";
        _ = write!(text, "\n{title}\n{}", table(&rows, 4));
        if let Some(more) = report.ranks.len().checked_sub(LISTED).filter(|more| *more > 0) {
            _ = writeln!(text, "  … and {} more (--json lists all)", grouped(more as u64));
        }
    }
    let slowest = report.files.iter().filter_map(|file| Some((file, file.slowest_rank?)));
    let slowest: Vec<_> = slowest.take(LISTED).collect();
    if !slowest.is_empty() {
        let mut rows = vec![cells([
            "slowest",
            "its time",
            "its bytes",
            "mean time",
            "mean bytes",
            "module",
            "file",
        ])];
        for (file, (rank, bytes, ns)) in slowest {
            let ranks = u64::from(file.rank_count.max(1));
            rows.push([
                format!("rank {rank}"),
                duration(ns),
                bytes_or_dash(bytes),
                duration(file.ns() / ranks),
                bytes_or_dash(file.read_bytes.saturating_add(file.written_bytes) / ranks),
                file.module.to_owned(),
                shortened_path(&file.path, 50),
            ]);
        }
        _ = write!(text, "\nFiles that all ranks opened\n{}", table(&rows, 5));
    }
    text
}

fn sizes(title: &str, counts: &[u64; 10]) -> String {
    let largest = counts.iter().max().copied().unwrap_or(0);
    if largest == 0 {
        return String::new();
    }
    let used = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let rows: Vec<[String; 3]> = used
        .map(|(bin, count)| [bin_name(bin), grouped(*count), bar(*count, largest, BAR_COLUMNS)])
        .collect();
    format!("\n{title}\n{}", table(&rows, 2))
}

fn curves(heat: &HeatRow) -> String {
    let mut text = String::new();
    for (name, bins) in [("read", &heat.read_bytes), ("written", &heat.written_bytes)] {
        let each = bins.len().div_ceil(CURVE_COLUMNS).max(1);
        let sums: Vec<f64> = bins
            .chunks(each)
            .map(|bins| bins.iter().map(|bytes| *bytes as f64).sum::<f64>() / bins.len() as f64)
            .collect();
        let peak = sums.iter().copied().fold(0.0, f64::max);
        if peak > 0.0 {
            let line: String = sums.iter().map(|sum| level(*sum, peak)).collect();
            let rate = peak / (heat.bin_ns.max(1) as f64 / 1e9);
            _ = writeln!(text, "  {name:<8}{line}  peak {}/s", format_bytes(rate as u64));
        }
    }
    let length = duration(heat.bin_ns.saturating_mul(heat.read_bytes.len() as u64));
    match text.is_empty() {
        true => text,
        false => format!(
            "\nBandwidth over {length}, {}, {} of the ranks active\n{text}",
            heat.module,
            grouped(heat.active_rank_count as u64)
        ),
    }
}

fn list(title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{title}\n");
    for line in lines {
        for (index, part) in wrapped(line, 94).iter().enumerate() {
            _ = writeln!(text, "  {}{part}", if index == 0 { "" } else { "  " });
        }
    }
    text
}
