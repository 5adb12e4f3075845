//! Waiting writes of one file, sorted by offset, newer data replacing older, joined where adjacent.
//!
//! O(log n) for each write, plus the older ones it replaces.

use super::shelf::{Place, Shelf};
use iolab_vocab::Extent;

/// Waiting writes of one file; no byte waits twice.
#[derive(Debug, Default)]
pub(super) struct Writes {
    bytes: u64,
    shelf: Shelf<()>,
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
        self.shelf.len()
    }

    /// Keeps a write; older data under it is cut or removed. Returns the bytes replaced.
    pub(super) fn insert(&mut self, new: Extent, access_bytes: u64) -> u64 {
        let replaced = self.cut_out(new);
        self.put(new);
        let start = match self.shelf.before(place(new.offset)) {
            Some(before) if self.join(before, access_bytes) => before,
            _ => place(new.offset),
        };
        self.join(start, access_bytes);
        replaced
    }

    /// The first write if it is near the end of the last access, else the longest of the others.
    pub(super) fn take(&mut self, last_end: Option<u64>, near_bytes: u64) -> Option<Extent> {
        let place = self.shelf.choose(last_end, near_bytes)?;
        self.pull(place)
    }

    fn put(&mut self, extent: Extent) {
        self.bytes += extent.length;
        self.shelf.insert(place(extent.offset), extent, ());
    }

    fn pull(&mut self, place: Place) -> Option<Extent> {
        let (extent, ()) = self.shelf.remove(place)?;
        self.bytes -= extent.length;
        Some(extent)
    }

    /// Removes what lies under `new`. Returns how much that was.
    fn cut_out(&mut self, new: Extent) -> u64 {
        let before = self.bytes;
        while let Some(last) = self.shelf.before(place(new.end())) {
            match self.shelf.get(last) {
                Some((old, ())) if old.end() > new.offset => {}
                _ => break,
            }
            let Some(old) = self.pull(last) else { break };
            if old.end() > new.end() {
                self.put(Extent::new(new.end(), old.end() - new.end()));
            }
            if old.offset < new.offset {
                self.put(Extent::new(old.offset, new.offset - old.offset));
            }
        }
        before - self.bytes
    }

    /// Joins a write with the next one if that is adjacent.
    fn join(&mut self, at: Place, access_bytes: u64) -> bool {
        let neighbours = self.shelf.get(at).zip(self.shelf.after(at));
        let Some((&(one, ()), next)) = neighbours else { return false };
        let length = one.length + self.shelf.get(next).map_or(0, |(other, ())| other.length);
        if one.end() != next.0 || length > access_bytes {
            return false;
        }
        self.pull(next);
        self.pull(at);
        self.put(Extent::new(one.offset, length));
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
    fn insert(list: &mut Vec<Extent>, new: Extent) -> u64 {
        let before: u64 = list.iter().map(|one| one.length).sum();
        let mut rest = Vec::new();
        for old in list.drain(..) {
            let left = old.end().min(new.offset).saturating_sub(old.offset);
            let right = old.end().saturating_sub(old.offset.max(new.end()));
            rest.extend((left > 0).then(|| Extent::new(old.offset, left)));
            rest.extend((right > 0).then(|| Extent::new(old.end() - right, right)));
        }
        *list = rest;
        let replaced = before - list.iter().map(|one| one.length).sum::<u64>();
        let mut at = list.partition_point(|one| one.offset < new.offset);
        list.insert(at, new);
        let fits = |one: Extent, next: Extent| {
            one.end() == next.offset && one.length + next.length <= ACCESS
        };
        if at > 0 && fits(list[at - 1], list[at]) {
            list[at - 1].length += list.remove(at).length;
            at -= 1;
        }
        if at + 1 < list.len() && fits(list[at], list[at + 1]) {
            list[at].length += list.remove(at + 1).length;
        }
        replaced
    }

    fn take(list: &mut Vec<Extent>, last_end: Option<u64>) -> Option<Extent> {
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
        for seed in 0..200 {
            let mut random = Random::new(Seed(seed));
            let (mut list, mut writes) = (Vec::new(), Writes::default());
            let mut last_end = None;
            for _ in 0..300 {
                if random.below(3) > 0 {
                    let new = Extent::new(random.below(400), 1 + random.below(30));
                    assert_eq!(writes.insert(new, ACCESS), insert(&mut list, new));
                } else {
                    let expected = take(&mut list, last_end);
                    assert_eq!(writes.take(last_end, NEAR), expected);
                    last_end = expected.map(|one| one.end()).or(last_end);
                }
                assert_eq!(writes.bytes(), list.iter().map(|one| one.length).sum::<u64>());
            }
        }
    }
}
