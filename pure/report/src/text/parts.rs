//! Where the time of calls on a simulated cluster went, for people at a terminal.

use super::{cells, duration, shortened_path, table};
use crate::parts::{Part, PartRow, PartSums, Parts};
use crate::thousands::grouped;
use std::fmt::Write;

/// Rows of each grouping before it is cut.
const LISTED: usize = 5;

/// What a row has.
pub(crate) const COLUMNS: [&str; 13] = [
    "time", "client", "sending", "wire", "memory", "server", "device", "position", "transfer",
    "answer", "rest", "calls", "",
];

pub(super) fn write(parts: Option<&PartSums>) -> String {
    let Some(sums) = parts else { return String::new() };
    let mut rows = vec![cells(COLUMNS)];
    let mut notes = String::new();
    for (grouping, name, of) in groupings(sums) {
        rows.extend(of.iter().take(LISTED).map(|row| line(row, &named(name, row))));
        if let Some(more) = of.len().checked_sub(LISTED).filter(|&more| more > 0) {
            _ = writeln!(
                notes,
                "  … and {} more {grouping} (--json lists all)",
                grouped(more as u64)
            );
        }
    }
    format!(
        "\nWhere the time of calls went (memory: until a full server takes more; server, device: waiting for them; rest: waiting for other ranks)\n{}{notes}",
        table(&rows, 12)
    )
}

/// What rows are grouped by: all of its rows, with what stands before their names.
pub(crate) fn groupings(sums: &PartSums) -> [(&'static str, &'static str, &[PartRow]); 5] {
    [
        ("", "", std::slice::from_ref(&sums.total)),
        ("functions", "", &sums.functions),
        ("phases", "phase", &sums.phases),
        ("files", "file", &sums.files),
        ("servers", "last answer from", &sums.servers),
    ]
}

pub(crate) fn named(prefix: &str, row: &PartRow) -> String {
    let name = shortened_path(&row.name, 40);
    if prefix.is_empty() { name } else { format!("{prefix} {name}") }
}

fn line(row: &PartRow, name: &str) -> [String; 13] {
    let mut cells = cells([""; 13]);
    cells[0] = duration(row.time_ns);
    for (cell, part) in cells[1..].iter_mut().zip(Part::ALL) {
        *cell = share(&row.parts, part);
    }
    cells[11] = grouped(row.call_count);
    cells[12] = name.to_owned();
    cells
}

/// What a part is of all, in percent; nothing of nothing.
pub(crate) fn share(parts: &Parts, part: Part) -> String {
    match (parts.of(part), parts.total()) {
        (0, _) => "–".to_owned(),
        (ns, total) => match 100.0 * ns as f64 / total as f64 {
            small if small < 1.0 => "<1 %".to_owned(),
            percent => format!("{percent:.0} %"),
        },
    }
}
