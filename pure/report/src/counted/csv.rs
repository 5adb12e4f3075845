//! Files of a log as a table for spreadsheets.

use super::{CountedFile, CountedReport};
use crate::csv::lines;

const COLUMNS: [&str; 26] = [
    "path",
    "file_system",
    "module",
    "rank_count",
    "shared",
    "mover_count",
    "open_count",
    "read_count",
    "read_bytes",
    "write_count",
    "written_bytes",
    "seek_count",
    "stat_count",
    "sync_count",
    "sequential_read_share",
    "sequential_write_share",
    "consecutive_read_share",
    "consecutive_write_share",
    "collective_count",
    "misaligned_count",
    "alignment_bytes",
    "common_sizes",
    "read_ns",
    "write_ns",
    "metadata_ns",
    "slowest_rank",
];

/// A line for each module and file, the one that took longest first.
pub fn files(report: &CountedReport) -> String {
    let names = COLUMNS.map(str::to_owned);
    lines(std::iter::once(names).chain(report.files.iter().map(cells)))
}

fn cells(file: &CountedFile) -> [String; 26] {
    let share = |share: Option<f64>| share.map_or_else(String::new, |share| format!("{share:.6}"));
    let sizes: Vec<_> =
        file.common_sizes.iter().map(|(size, count)| format!("{size}:{count}")).collect();
    [
        file.path.clone(),
        file.file_system.clone(),
        file.module.to_owned(),
        file.rank_count.to_string(),
        file.shared.to_string(),
        file.mover_count.to_string(),
        file.open_count.to_string(),
        file.read_count.to_string(),
        file.read_bytes.to_string(),
        file.write_count.to_string(),
        file.written_bytes.to_string(),
        file.seek_count.to_string(),
        file.stat_count.to_string(),
        file.sync_count.to_string(),
        share(file.sequential_read_share),
        share(file.sequential_write_share),
        share(file.consecutive_read_share),
        share(file.consecutive_write_share),
        file.collective_count.to_string(),
        file.misaligned_count.to_string(),
        file.alignment_bytes.to_string(),
        sizes.join(" "),
        file.read_ns.to_string(),
        file.write_ns.to_string(),
        file.metadata_ns.to_string(),
        file.slowest_rank.map_or_else(String::new, |(rank, ..)| rank.to_string()),
    ]
}
