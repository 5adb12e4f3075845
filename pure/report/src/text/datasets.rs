//! The tree from datasets to system calls, for people at a terminal.

use super::{bytes_or_dash, cells, duration, shortened_path, table};
use crate::objects::ObjectRow;
use crate::report::Report;
use crate::thousands::grouped;
use iolab_trace::Layer;
use std::fmt::Write;

/// What a row has.
pub(crate) const COLUMNS: [&str; 7] =
    ["time", "own", "calls", "read", "written", "moved", "dataset"];

/// Every dataset of a report; none where the trace has no call of HDF5 or NetCDF.
pub fn by_dataset(report: &Report) -> Option<String> {
    (!report.datasets.is_empty()).then(|| write(&report.datasets, usize::MAX))
}

/// At most `listed` datasets, each with the layers below it.
pub(super) fn write(datasets: &[ObjectRow], listed: usize) -> String {
    if datasets.is_empty() {
        return String::new();
    }
    let mut all = vec![COLUMNS.map(str::to_owned)];
    all.extend(rows(datasets.iter().take(listed)));
    let mut text = format!("\n{}\n{}", title(datasets), table(&all, 6));
    if let Some(more) = datasets.len().checked_sub(listed).filter(|&more| more > 0) {
        _ = writeln!(text, "  … and {} more (--by dataset lists all)", grouped(more as u64));
    }
    text
}

/// What the table shows, by the layers that the datasets are of.
pub(crate) fn title(datasets: &[ObjectRow]) -> &'static str {
    let has = |layer: Layer| datasets.iter().any(|it| it.layer == layer.name());
    match (has(Layer::Netcdf), has(Layer::Hdf5)) {
        (true, true) => "Variables of NetCDF and datasets of HDF5, with what they come to below",
        (true, false) => "Variables of NetCDF, with what they come to below",
        (false, _) => "Datasets of HDF5, with what they come to below",
    }
}

/// The name of a layer's library.
pub(crate) fn library(layer: &str) -> &'static str {
    if layer == Layer::Netcdf.name() { "NetCDF" } else { "HDF5" }
}

/// Of each dataset a row for its calls, and one for each layer below them.
pub(crate) fn rows<'a>(datasets: impl Iterator<Item = &'a ObjectRow>) -> Vec<[String; 7]> {
    let mut rows = Vec::new();
    for dataset in datasets {
        if dataset.top().is_none() {
            // Nothing but what goes out when the program ends.
            let mut row = cells(["–"; 7]);
            row[5] = moved(dataset);
            row[6] = name(dataset);
            rows.push(row);
        }
        rows.extend(dataset.levels.iter().map(|level| {
            let is_first = level.layer == dataset.layer;
            [
                duration(level.time_ns),
                duration(level.own_ns),
                grouped(level.call_count),
                bytes_or_dash(level.read_bytes),
                bytes_or_dash(level.written_bytes),
                if is_first { moved(dataset) } else { String::new() },
                if is_first { name(dataset) } else { format!("  {}", level.layer) },
            ]
        }));
    }
    rows
}

/// How much more moved below than was asked for; of the library's own, what share of the file's.
fn moved(dataset: &ObjectRow) -> String {
    if dataset.dataset.is_none() {
        return format!("{:.0} %", 100.0 * dataset.share_of_file);
    }
    let side = |name: &str, ratio: Option<f64>| ratio.map(|ratio| format!("{name} {ratio:.2} ×"));
    let sides = [side("r", dataset.read_amplification), side("w", dataset.write_amplification)];
    let sides: Vec<String> = sides.into_iter().flatten().collect();
    if sides.is_empty() { "–".to_owned() } else { sides.join(", ") }
}

fn name(dataset: &ObjectRow) -> String {
    let file = shortened_path(&dataset.file, 40);
    match &dataset.dataset {
        None => format!("{file}: {}'s own", library(dataset.layer)),
        Some(name) if dataset.chunk.is_empty() => format!("{file}:{}", shortened_path(name, 40)),
        Some(name) => {
            let sides: Vec<String> = dataset.chunk.iter().map(u64::to_string).collect();
            format!("{file}:{} in chunks of {}", shortened_path(name, 40), sides.join(" × "))
        }
    }
}
