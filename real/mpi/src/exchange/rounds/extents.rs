//! What the rounds ask about extents and intervals.

use iolab_pattern::Nest;
use iolab_policy::collective::{BUFFER_BYTES, Wanted};
use iolab_vocab::Extent;

/// Bytes of what is wanted inside an extent.
pub(super) fn interval_bytes(wanted: &Wanted, extent: Extent) -> u64 {
    let (from, to) = wanted.interval(extent);
    to - from
}

/// First byte to last byte of an interval that has some.
pub(super) fn hull_of(view: &Nest, from: u64, to: u64) -> Extent {
    let start = view.at(from).unwrap_or(0);
    let last = view.at(to.saturating_sub(1)).unwrap_or(start);
    Extent::new(start, (last + 1).saturating_sub(start))
}

/// Extents in ascending order, with neighbours joined.
pub(super) fn joined(extents: &[Extent]) -> Vec<Extent> {
    let mut runs: Vec<Extent> = Vec::new();
    for extent in extents.iter().filter(|extent| !extent.is_empty()) {
        match runs.last_mut() {
            Some(last) if extent.offset <= last.end() => {
                let end = last.end().max(extent.end());
                *last = Extent::new(last.offset, end - last.offset);
            }
            _ => runs.push(*extent),
        }
    }
    runs
}

/// A run in parts that memory is taken for.
pub(super) fn parts(run: Extent) -> impl Iterator<Item = Extent> {
    (0..run.length.div_ceil(BUFFER_BYTES)).map(move |part| {
        let from = part * BUFFER_BYTES;
        Extent::new(run.offset + from, (run.length - from).min(BUFFER_BYTES))
    })
}
