//! Stretches of files that are kept in memory, least recently used first to go.

use iolab_vocab::{Extent, FileId};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct LruExtents {
    bytes: u64,
    uses: u64,
    /// By file and start: the end, and when it was used last. They never overlap.
    stretches: BTreeMap<(FileId, u64), (u64, u64)>,
    by_use: BTreeMap<u64, (FileId, u64)>,
}

impl LruExtents {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Those that have a byte of `extent`, in order.
    fn touching(&self, file: FileId, extent: Extent) -> Vec<Extent> {
        let before = self.stretches.range(..(file, extent.offset)).next_back();
        let inside = self.stretches.range((file, extent.offset)..(file, extent.end()));
        before
            .into_iter()
            .chain(inside)
            .map(|(&(at, start), &(end, _))| (at, Extent::new(start, end - start)))
            .filter(|(at, kept)| *at == file && kept.overlaps(extent))
            .map(|(_, kept)| kept)
            .collect()
    }

    /// The parts of `extent` that are not kept.
    pub(super) fn missing(&self, file: FileId, extent: Extent) -> Vec<Extent> {
        let mut at = extent.offset;
        let mut missing = Vec::new();
        for kept in self.touching(file, extent) {
            if kept.offset > at {
                missing.push(Extent::new(at, kept.offset - at));
            }
            at = kept.end();
        }
        if at < extent.end() {
            missing.push(Extent::new(at, extent.end() - at));
        }
        missing
    }

    /// What touches `extent` has been used just now.
    pub(super) fn touch(&mut self, file: FileId, extent: Extent) {
        for kept in self.touching(file, extent) {
            self.uses += 1;
            let place = (file, kept.offset);
            let stretch = self.stretches.get_mut(&place).expect("it was found there");
            self.by_use.remove(&std::mem::replace(&mut stretch.1, self.uses));
            self.by_use.insert(self.uses, place);
        }
    }

    /// Keeps `extent`, of which nothing is kept yet.
    pub(super) fn insert(&mut self, file: FileId, extent: Extent) {
        self.uses += 1;
        self.bytes += extent.length;
        self.stretches.insert((file, extent.offset), (extent.end(), self.uses));
        self.by_use.insert(self.uses, (file, extent.offset));
    }

    /// Lets go of what has not been used for longest.
    pub(super) fn evict(&mut self) -> Option<(FileId, Extent)> {
        let (_, (file, start)) = self.by_use.pop_first()?;
        let (end, _) = self.stretches.remove(&(file, start)).expect("both indexes agree");
        self.bytes -= end - start;
        Some((file, Extent::new(start, end - start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_lies_between_what_is_kept_and_the_oldest_goes_first() {
        let (mut kept, file) = (LruExtents::default(), FileId(1));
        kept.insert(file, Extent::new(10, 10));
        kept.insert(file, Extent::new(30, 10));
        kept.insert(FileId(2), Extent::new(0, 100));
        let missing = kept.missing(file, Extent::new(5, 30));
        assert_eq!(missing, [Extent::new(5, 5), Extent::new(20, 10)]);
        assert!(kept.missing(file, Extent::new(12, 8)).is_empty());
        kept.touch(file, Extent::new(12, 1));
        assert_eq!(kept.evict(), Some((file, Extent::new(30, 10))));
        assert_eq!(kept.evict(), Some((FileId(2), Extent::new(0, 100))));
        assert_eq!(kept.bytes(), 10);
    }
}
