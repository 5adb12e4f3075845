//! Waiting stretches in the order of their places, with the longest at hand.
//!
//! Everything costs O(log n): a tree by place and an index by length. Stretches at the same place
//! stand in the order of arrival.

use iolab_vocab::Extent;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Where a stretch stands: its first byte, then the order of arrival.
pub(super) type Place = (u64, u64);

/// Stretches, each with what belongs to it.
#[derive(Debug)]
pub(super) struct ExtentIndex<T> {
    stretches: BTreeMap<Place, (Extent, T)>,
    lengths: BTreeSet<(u64, Reverse<Place>)>,
}

impl<T> Default for ExtentIndex<T> {
    fn default() -> ExtentIndex<T> {
        ExtentIndex { stretches: BTreeMap::new(), lengths: BTreeSet::new() }
    }
}

impl<T> ExtentIndex<T> {
    pub(super) fn len(&self) -> usize {
        self.stretches.len()
    }

    pub(super) fn get(&self, place: Place) -> Option<&(Extent, T)> {
        self.stretches.get(&place)
    }

    pub(super) fn insert(&mut self, place: Place, extent: Extent, value: T) {
        self.lengths.insert((extent.length, Reverse(place)));
        self.stretches.insert(place, (extent, value));
    }

    pub(super) fn remove(&mut self, place: Place) -> Option<(Extent, T)> {
        let taken = self.stretches.remove(&place)?;
        self.lengths.remove(&(taken.0.length, Reverse(place)));
        Some(taken)
    }

    pub(super) fn first(&self) -> Option<Place> {
        self.stretches.first_key_value().map(|(place, _)| *place)
    }

    pub(super) fn before(&self, place: Place) -> Option<Place> {
        self.stretches.range(..place).next_back().map(|(place, _)| *place)
    }

    pub(super) fn after(&self, place: Place) -> Option<Place> {
        use std::ops::Bound::{Excluded, Unbounded};
        self.stretches.range((Excluded(place), Unbounded)).next().map(|(place, _)| *place)
    }

    /// The first stretch if it starts near the end of the last access, else the longest of the
    /// others, the foremost among equals.
    pub(super) fn choose(&self, last_end: Option<u64>, near_bytes: u64) -> Option<Place> {
        let first = self.first()?;
        if last_end.is_some_and(|end| first.0.abs_diff(end) < near_bytes) {
            return Some(first);
        }
        let others = self.lengths.iter().rev().map(|&(_, Reverse(place))| place);
        others.take(2).find(|place| *place != first).or(Some(first))
    }
}
