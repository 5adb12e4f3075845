//! What Darshan counted of a run without keeping the single calls.
//!
//! Source: `darshan-posix-log-format.h`, `darshan-stdio-log-format.h` and what their readers do about
//! older versions.

use super::DarshanError;
use super::log::{Fields, Log, Module};
use std::collections::BTreeMap;

/// Sums over all files and ranks, by what was counted.
pub(super) type Counts = BTreeMap<&'static str, u64>;

/// Number and rank stand in front of every record.
const HEAD: usize = 16;

/// Places of the first counters of POSIX, by version of the module, and the size of a record.
struct Posix {
    bytes: usize,
    places: [(&'static str, usize); 10],
    /// Where version 1 counts opens of streams: such records mix two layers.
    streams: Option<usize>,
}

impl Posix {
    fn of(version: u32) -> Option<Posix> {
        // What came in between: FILENOS and DUPS (2) behind the opens, RENAME_* (3) before the mode,
        // and in version 1 four counters of streams.
        let (bytes, dups, renames, streams) = match version {
            1 => (680, 0, 0, 4),
            2 => (648, 0, 0, 0),
            3 => (664, 0, 0, 0),
            4 => (704, 2, 3, 0),
            _ => return None,
        };
        let syncs = 6 + dups + streams;
        let moved = syncs + 3 + renames;
        let places = [
            ("open", 0),
            ("read", 1 + dups),
            ("write", 2 + dups),
            ("seek", 3 + dups),
            ("stat", 4 + dups),
            ("mmap", 5 + dups),
            ("fsync", syncs),
            ("fdatasync", syncs + 1),
            ("bytes read", moved),
            ("bytes written", moved + 1),
        ];
        Some(Posix { bytes, places, streams: (streams > 0).then_some(6) })
    }
}

/// Sums of the POSIX counters; none if there are none, or of a version that nobody knew.
pub(super) fn posix(log: &Log<'_>) -> Result<Option<Counts>, DarshanError> {
    let Some(layout) = log.version(Module::Posix).and_then(Posix::of) else { return Ok(None) };
    let mut counts = Counts::new();
    let mut stream = log.records(Module::Posix)?;
    while let Some(record) = stream.take(layout.bytes)? {
        if layout.streams.is_some_and(|opens| counter(&record, opens) > 0) {
            continue;
        }
        for (name, place) in layout.places {
            let sum = counts.entry(name).or_default();
            *sum = sum.saturating_add(counter(&record, place));
        }
    }
    Ok(Some(counts))
}

/// Calls on streams: reads and writes.
pub(super) fn stdio(log: &Log<'_>) -> Result<Counts, DarshanError> {
    // Version 1 has no FDOPENS.
    let (bytes, fdopens) = match log.version(Module::Stdio) {
        Some(1) => (16 + 13 * 8 + 15 * 8, 0),
        Some(2) => (16 + 14 * 8 + 15 * 8, 1),
        _ => return Ok(Counts::new()),
    };
    let mut counts = Counts::new();
    let mut stream = log.records(Module::Stdio)?;
    while let Some(record) = stream.take(bytes)? {
        let places = [("fopen", 0), ("fread", 1 + fdopens), ("fwrite", 2 + fdopens)];
        for (name, place) in places {
            let sum = counts.entry(name).or_default();
            *sum = sum.saturating_add(counter(&record, place));
        }
    }
    Ok(counts)
}

/// A counter that was never touched is −1.
fn counter(record: &Fields<'_>, place: usize) -> u64 {
    u64::try_from(record.i64(HEAD + 8 * place)).unwrap_or(0)
}
