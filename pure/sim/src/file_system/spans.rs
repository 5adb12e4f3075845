//! Sets of bytes of a subfile.

use iolab_vocab::Extent;
use std::collections::BTreeMap;

/// Stretches that never overlap or touch: ends by starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spans(BTreeMap<u64, u64>);

impl Spans {
    /// The stretches, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Extent> + '_ {
        self.0.iter().map(|(&start, &end)| Extent::new(start, end - start))
    }

    /// Those that have a byte of `extent`, or touch it.
    fn near(&self, extent: Extent) -> Vec<Extent> {
        let before = self.0.range(..extent.offset).next_back();
        let inside = self.0.range(extent.offset..=extent.end());
        let all = before.into_iter().chain(inside);
        let spans = all.map(|(&start, &end)| Extent::new(start, end - start));
        spans.filter(|span| span.end() >= extent.offset).collect()
    }

    /// The parts of `extent` that are in the set.
    pub(super) fn within(&self, extent: Extent) -> Vec<Extent> {
        let parts = self.near(extent).into_iter().map(|span| span.intersection(extent));
        parts.filter(|part| !part.is_empty()).collect()
    }

    /// The parts of `extent` that are not.
    pub(super) fn missing(&self, extent: Extent) -> Vec<Extent> {
        let mut at = extent.offset;
        let mut missing = Vec::new();
        for part in self.within(extent) {
            missing.push(Extent::new(at, part.offset - at));
            at = part.end();
        }
        missing.push(Extent::new(at, extent.end() - at));
        missing.retain(|part| !part.is_empty());
        missing
    }

    /// Takes a stretch in.
    pub(super) fn insert(&mut self, extent: Extent) {
        if extent.is_empty() {
            return;
        }
        let (mut start, mut end) = (extent.offset, extent.end());
        for span in self.near(extent) {
            self.0.remove(&span.offset);
            (start, end) = (start.min(span.offset), end.max(span.end()));
        }
        self.0.insert(start, end);
    }

    /// Puts a stretch out.
    pub(super) fn remove(&mut self, extent: Extent) {
        for span in self.near(extent) {
            self.0.remove(&span.offset);
            for (start, end) in [
                (span.offset, span.end().min(extent.offset)),
                (span.offset.max(extent.end()), span.end()),
            ] {
                if start < end {
                    self.0.insert(start, end);
                }
            }
        }
    }
}

/// How many bytes they have.
pub(super) fn bytes_of(extents: &[Extent]) -> u64 {
    extents.iter().map(|extent| extent.length).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_and_not_out_is_there() {
        let mut spans = Spans::default();
        let mut bytes = [false; 64];
        for step in 0u64..400 {
            let extent = Extent::new(step * 37 % 50, step * 13 % 14);
            let is_in = step % 3 != 0;
            match is_in {
                true => spans.insert(extent),
                false => spans.remove(extent),
            }
            bytes[extent.offset as usize..extent.end() as usize].fill(is_in);
            let all = Extent::new(0, 64);
            for part in spans.within(all) {
                assert!(bytes[part.offset as usize..part.end() as usize].iter().all(|here| *here));
            }
            let here = bytes.iter().filter(|here| **here).count() as u64;
            assert_eq!(
                (bytes_of(&spans.within(all)), bytes_of(&spans.missing(all))),
                (here, 64 - here)
            );
        }
    }

    #[test]
    fn neighbours_become_one_stretch() {
        let mut spans = Spans::default();
        for (at, bytes) in [(0, 10), (20, 10), (10, 10)] {
            spans.insert(Extent::new(at, bytes));
        }
        assert_eq!(spans.iter().collect::<Vec<_>>(), [Extent::new(0, 30)]);
    }
}
