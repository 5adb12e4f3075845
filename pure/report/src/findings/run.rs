//! Rules about a run as a whole: many files, much metadata.

use super::crowd::{SMALL_FILE_BYTES, crowded_directory};
use super::finding::{Evidence, Finding};
use crate::facts::{Facts, FileFacts};
use crate::stream::Calls;
use crate::thousands::grouped;
use iolab_vocab::{Direction, format_bytes};
use std::collections::BTreeMap;

pub(super) const NAMES: &[&str] = &["many-small-files", "metadata-heavy"];

/// More of the I/O time than this for metadata is too much (Drishti warns from 30 s; a share fits
/// short runs too).
const METADATA_SHARE: f64 = 0.3;

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    small_files(facts).into_iter().chain(metadata_heavy(facts)).collect()
}

fn small_files(facts: &Facts) -> Option<Finding> {
    let small = facts.files.iter().filter(|file| is_small(file));
    let (directory, files) = crowded_directory(small, |file| file.path)?;
    let mut total = Calls::default();
    let mut by_process: BTreeMap<u32, u64> = BTreeMap::new();
    for file in &files {
        total.merge(file.sum(|stream| stream.opens.and(stream.closes)));
        for (process, ns) in file.time_by_process(|stream| stream.opens.and(stream.closes)) {
            *by_process.entry(process).or_default() += ns;
        }
    }
    let bytes: u64 = files.iter().map(|file| moved(file)).fold(0, u64::saturating_add);
    let message = format!(
        "{} files in {directory}, of each of which {} are read or written on average",
        grouped(files.len() as u64),
        format_bytes(bytes / files.len() as u64)
    );
    let remedy = "pack them into few files (an archive, a container format such as HDF5)";
    let evidence = Evidence { rows: total.row.into_iter().collect(), ..Evidence::default() };
    let evidence = Evidence { calls: total.count, bytes, time_ns: total.ns, ..evidence };
    Some(Finding::of_run(NAMES[0], facts, &by_process, evidence, message, remedy))
}

fn is_small(file: &FileFacts) -> bool {
    let bytes = moved(file);
    let opens = file.sum(|stream| stream.opens).count;
    bytes > 0 && bytes < SMALL_FILE_BYTES && (1..=2).contains(&opens)
}

fn moved(file: &FileFacts) -> u64 {
    file.all(Direction::Read).and(file.all(Direction::Write)).bytes
}

fn metadata_heavy(facts: &Facts) -> Option<Finding> {
    let processes = &facts.analysis.processes;
    let metadata =
        processes.iter().fold(Calls::default(), |sum, state| sum.and(state.totals.metadata));
    let io_ns: u64 =
        processes.iter().map(|state| state.totals.io_ns()).fold(0, u64::saturating_add);
    let share = metadata.ns as f64 / io_ns.max(1) as f64;
    if share < METADATA_SHARE || metadata.count < 100 {
        return None;
    }
    let message = format!(
        "{:.0} % of the time in I/O goes to {} calls that move no data",
        100.0 * share,
        grouped(metadata.count)
    );
    let numbered = processes.iter().enumerate();
    let by_process =
        numbered.map(|(index, state)| (index as u32, state.totals.metadata.ns)).collect();
    let remedy = "see which files they are for in the list of files; fewer opens, seeks and stats";
    let evidence = Evidence {
        calls: metadata.count,
        time_ns: metadata.ns,
        rows: metadata.row.into_iter().collect(),
        ..Evidence::default()
    };
    Some(Finding::of_run(NAMES[1], facts, &by_process, evidence, message, remedy))
}
