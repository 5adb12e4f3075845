//! Waiting writes of one file, sorted by offset, newer data replacing older, joined where adjacent.
//!
//! By definition what waits is joined when one is chosen, from the left to the right as long as the
//! largest access allows. Only what came or was cut since the last time can change that, so only
//! these places are looked at: O(log n) for each write, plus the older ones it replaces.

use super::extent_index::{ExtentIndex, Place};
use iolab_vocab::Extent;
use std::collections::BTreeSet;

/// What becomes of an older write's bytes behind a newer one that lies inside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tails {
    /// They wait on.
    #[default]
    Kept,
    /// They are forgotten: a defect of PIOsimHD that loses data, for its published results only.
    Lost,
}

/// Waiting writes of one file; no byte waits twice.
#[derive(Debug, Default)]
pub(super) struct Writes {
    bytes: u64,
    extent_index: ExtentIndex<()>,
    /// Where joining is to be tried.
    unsettled: BTreeSet<Place>,
}

/// Nothing overlaps, so the offset alone tells the place.
fn place(offset: u64) -> Place {
    (offset, 0)
}

impl Writes {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.extent_index.len()
    }

    /// Keeps a write; older data under it is cut or removed. Returns the bytes replaced.
    pub(super) fn insert(&mut self, new: Extent, tails: Tails) -> u64 {
        let replaced = self.cut_out(new, tails);
        self.put(new);
        replaced
    }

    /// Joins what touches; then the first write if it is near the end of the last access, else the
    /// longest of the others.
    pub(super) fn take(
        &mut self,
        last_end: Option<u64>,
        near_bytes: u64,
        access_bytes: u64,
    ) -> Option<Extent> {
        while let Some(place) = self.unsettled.pop_first() {
            if self.extent_index.get(place).is_some() {
                self.settle_around(place, access_bytes);
            }
        }
        let place = self.extent_index.choose(last_end, near_bytes)?;
        self.pull(place)
    }

    fn put(&mut self, extent: Extent) {
        self.bytes += extent.length;
        self.extent_index.insert(place(extent.offset), extent, ());
        self.unsettled.insert(place(extent.offset));
    }

    fn pull(&mut self, place: Place) -> Option<Extent> {
        let (extent, ()) = self.extent_index.remove(place)?;
        self.bytes -= extent.length;
        Some(extent)
    }

    /// Removes what lies under `new`. Returns how much that was, with what was lost.
    fn cut_out(&mut self, new: Extent, tails: Tails) -> u64 {
        let before = self.bytes;
        while let Some(last) = self.extent_index.before(place(new.end())) {
            match self.extent_index.get(last) {
                Some((old, ())) if old.end() > new.offset => {}
                _ => break,
            }
            let Some(old) = self.pull(last) else { break };
            let is_inside = old.offset < new.offset;
            if old.end() > new.end() && (tails == Tails::Kept || !is_inside) {
                self.put(Extent::new(new.end(), old.end() - new.end()));
            }
            if is_inside {
                self.put(Extent::new(old.offset, new.offset - old.offset));
            }
        }
        before - self.bytes
    }

    /// Joins from the neighbour on the left on, until nothing changes any more.
    fn settle_around(&mut self, place: Place, access_bytes: u64) {
        let mut last = self.extent_index.before(place).unwrap_or(place);
        while let Some(next) = self.extent_index.after(last) {
            if self.join(last, next, access_bytes) {
                self.unsettled.remove(&next);
            } else if next == place || self.unsettled.remove(&next) {
                last = next;
            } else {
                return;
            }
        }
    }

    fn join(&mut self, last: Place, next: Place, access_bytes: u64) -> bool {
        let neighbours = self.extent_index.get(last).zip(self.extent_index.get(next));
        let Some((&(one, ()), &(other, ()))) = neighbours else { return false };
        let length = one.length + other.length;
        if one.end() != other.offset || length > access_bytes {
            return false;
        }
        self.extent_index.remove(next);
        self.extent_index.remove(last);
        self.extent_index.insert(last, Extent::new(one.offset, length), ());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_vocab::{Random, Seed};

    const ACCESS: u64 = 40;
    const NEAR: u64 = 25;

    /// The definition itself, on a sorted list.
    fn insert(list: &mut Vec<Extent>, new: Extent, tails: Tails) -> u64 {
        let before: u64 = list.iter().map(|one| one.length).sum();
        let mut rest = Vec::new();
        for old in list.drain(..) {
            let left = old.end().min(new.offset).saturating_sub(old.offset);
            let right = old.end().saturating_sub(old.offset.max(new.end()));
            let is_inside = old.offset < new.offset && new.end() < old.end();
            let is_kept = right > 0 && !(is_inside && tails == Tails::Lost);
            rest.extend((left > 0).then(|| Extent::new(old.offset, left)));
            rest.extend(is_kept.then(|| Extent::new(old.end() - right, right)));
        }
        *list = rest;
        let replaced = before - list.iter().map(|one| one.length).sum::<u64>();
        let at = list.partition_point(|one| one.offset < new.offset);
        list.insert(at, new);
        replaced
    }

    /// Everything is joined from the left, then one is taken.
    fn take(list: &mut Vec<Extent>, last_end: Option<u64>) -> Option<Extent> {
        let mut kept: Vec<Extent> = Vec::new();
        for next in list.drain(..) {
            match kept.last_mut() {
                Some(last) if last.end() == next.offset && last.length + next.length <= ACCESS => {
                    last.length += next.length;
                }
                _ => kept.push(next),
            }
        }
        *list = kept;
        let first = list.first()?;
        if last_end.is_some_and(|end| first.offset.abs_diff(end) < NEAR) {
            return Some(list.remove(0));
        }
        let others = (1..list.len()).rev();
        let longest = others.max_by_key(|index| list[*index].length).unwrap_or(0);
        Some(list.remove(longest))
    }

    #[test]
    fn random_writes_replace_join_and_come_out_as_on_a_sorted_list() {
        for seed in 0..400 {
            let tails = if seed % 2 == 0 { Tails::Kept } else { Tails::Lost };
            let mut random = Random::new(Seed(seed));
            let (mut list, mut writes) = (Vec::new(), Writes::default());
            let mut last_end = None;
            for _ in 0..300 {
                if random.below(3) > 0 {
                    let new = Extent::new(random.below(400), 1 + random.below(30));
                    assert_eq!(writes.insert(new, tails), insert(&mut list, new, tails));
                } else {
                    let expected = take(&mut list, last_end);
                    assert_eq!(writes.take(last_end, NEAR, ACCESS), expected);
                    last_end = expected.map(|one| one.end()).or(last_end);
                }
                assert_eq!(writes.bytes(), list.iter().map(|one| one.length).sum::<u64>());
            }
        }
    }

    #[test]
    fn waiting_writes_are_joined_from_the_left_when_one_is_chosen_not_as_they_come() {
        let mut writes = Writes::default();
        for offset in [20, 40, 0] {
            writes.insert(Extent::new(offset, 20), Tails::Kept);
        }
        // As they came, the second and the third would have been joined, and the first left alone.
        assert_eq!(writes.take(Some(0), NEAR, ACCESS), Some(Extent::new(0, 40)));
        assert_eq!(writes.take(Some(40), NEAR, ACCESS), Some(Extent::new(40, 20)));
    }

    #[test]
    fn a_write_inside_an_older_one_loses_its_tail_only_where_that_is_asked_for() {
        let after = |tails| {
            let mut writes = Writes::default();
            writes.insert(Extent::new(0, 30), Tails::Kept);
            (writes.insert(Extent::new(10, 10), tails), writes.bytes())
        };
        assert_eq!(after(Tails::Kept), (10, 30));
        assert_eq!(after(Tails::Lost), (20, 20));
        let mut writes = Writes::default();
        writes.insert(Extent::new(0, 30), Tails::Lost);
        assert_eq!((writes.insert(Extent::new(0, 10), Tails::Lost), writes.bytes()), (10, 30));
    }
}
