//! Sets of bytes.

use iolab_vocab::Extent;
use std::collections::BTreeMap;

/// A set of bytes: ends by starts, none touching another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Covered(BTreeMap<u64, u64>);

impl Covered {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn insert(&mut self, extent: Extent) {
        if extent.is_empty() {
            return;
        }
        let (mut start, mut end) = (extent.offset, extent.end());
        while let Some((&from, &to)) = self.0.range(..=end).next_back()
            && to >= start
        {
            self.0.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        self.0.insert(start, end);
    }

    pub(crate) fn remove(&mut self, extent: Extent) {
        if extent.is_empty() {
            return;
        }
        let (start, end) = (extent.offset, extent.end());
        while let Some((&from, &to)) = self.0.range(..end).next_back()
            && to > start
        {
            self.0.remove(&from);
            if to > end {
                self.0.insert(end, to);
            }
            if from < start {
                self.0.insert(from, start);
            }
        }
    }

    pub(crate) fn contains(&self, extent: Extent) -> bool {
        let around = self.0.range(..=extent.offset).next_back();
        extent.is_empty() || around.is_some_and(|(_, end)| *end >= extent.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_vocab::{Random, Seed};
    use std::collections::BTreeSet;

    #[test]
    fn it_has_the_bytes_that_were_put_in_and_not_taken_out() {
        let mut random = Random::new(Seed(1));
        let (mut covered, mut bytes) = (Covered::default(), BTreeSet::new());
        for _ in 0..2000 {
            let extent = Extent::new(random.below(60), random.below(12));
            let all = extent.offset..extent.end();
            match random.below(2) {
                0 => {
                    covered.insert(extent);
                    bytes.extend(all.clone());
                }
                _ => {
                    covered.remove(extent);
                    bytes.retain(|at| !all.contains(at));
                }
            }
            let asked = Extent::new(random.below(60), random.below(12));
            let has_all = (asked.offset..asked.end()).all(|at| bytes.contains(&at));
            assert_eq!(covered.contains(asked), has_all, "{covered:?} {asked}");
            assert_eq!(covered.is_empty(), bytes.is_empty());
        }
    }
}
