//! Waiting reads of one file, sorted by offset, joined where they touch or overlap.
//!
//! By definition all reads are sorted before one is chosen, and then joined from the left to the
//! right as long as the largest access allows. Only what came since the last time, and what stands
//! beside something taken since, can change that, so only these places are looked at: O(log n) for
//! each read. Whom a joined read serves is a chain, so joining moves no lists.

use super::extent_index::{ExtentIndex, Place};
use super::{Job, Tag};
use iolab_vocab::{Extent, FileId};
use std::collections::BTreeSet;

/// Waiting reads of one file.
#[derive(Debug, Default)]
pub(super) struct Reads {
    bytes: u64,
    arrivals: u64,
    extent_index: ExtentIndex<Chain>,
    parts: Vec<Part>,
    free: Option<u32>,
    /// Where joining is to be tried.
    unsettled: BTreeSet<Place>,
    /// Something came since the last settlement.
    has_new: bool,
}

/// When reads are joined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joining {
    /// Neither a joined stretch nor what it serves may be longer.
    pub(super) access_bytes: u64,
    /// Stretches as close as this are read as one.
    pub(super) hole_bytes: u64,
}

/// A read that may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    place: Place,
    /// The whole stretch.
    pub(super) extent: Extent,
    /// What it serves; bytes asked for twice count twice.
    pub(super) bytes: u64,
}

/// The parts of a joined read.
#[derive(Clone, Copy, Debug)]
struct Chain {
    first: u32,
    last: u32,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    tag: Tag,
    extent: Extent,
    next: Option<u32>,
}

impl Reads {
    /// Bytes asked for, those asked for twice counted twice.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.extent_index.len()
    }

    pub(super) fn push(&mut self, tag: Tag, extent: Extent) {
        self.bytes += extent.length;
        self.arrivals += 1;
        let place = (extent.offset, self.arrivals);
        let part = self.keep(Part { tag, extent, next: None });
        self.extent_index.insert(
            place,
            extent,
            Chain { first: part, last: part, bytes: extent.length },
        );
        self.unsettled.insert(place);
        self.has_new = true;
    }

    /// Joins what touches, and chooses.
    pub(super) fn choose(
        &mut self,
        joining: &Joining,
        last_end: Option<u64>,
        near_bytes: u64,
    ) -> Option<Chosen> {
        self.settle(joining);
        let place = self.extent_index.choose(last_end, near_bytes)?;
        let &(extent, Chain { bytes, .. }) = self.extent_index.get(place)?;
        Some(Chosen { place, extent, bytes })
    }

    /// Takes the read chosen; whom it serves is put into `jobs`.
    pub(super) fn take(&mut self, file: FileId, chosen: &Chosen, jobs: &mut Vec<Job>) {
        let Some((_, chain)) = self.extent_index.remove(chosen.place) else { return };
        self.bytes -= chain.bytes;
        self.unsettled.extend(self.extent_index.after(chosen.place));
        let mut next = Some(chain.first);
        while let Some(part) = next {
            let Part { tag, extent, next: follower } = self.parts[part as usize];
            jobs.push(Job { tag, file, extent });
            self.parts[part as usize].next = self.free.replace(part);
            next = follower;
        }
    }

    fn keep(&mut self, part: Part) -> u32 {
        match self.free {
            Some(slot) => {
                self.free = std::mem::replace(&mut self.parts[slot as usize], part).next;
                slot
            }
            None => {
                self.parts.push(part);
                self.parts.len() as u32 - 1
            }
        }
    }

    fn settle(&mut self, joining: &Joining) {
        if !std::mem::take(&mut self.has_new) {
            return;
        }
        while let Some(place) = self.unsettled.pop_first() {
            if self.extent_index.get(place).is_some() {
                self.settle_around(place, joining);
            }
        }
    }

    /// Joins from the neighbour on the left on, until nothing changes any more.
    fn settle_around(&mut self, place: Place, joining: &Joining) {
        let mut last = self.extent_index.before(place).unwrap_or(place);
        while let Some(next) = self.extent_index.after(last) {
            if self.join(last, next, joining) {
                self.unsettled.remove(&next);
            } else if next == place || self.unsettled.remove(&next) {
                last = next;
            } else {
                return;
            }
        }
    }

    fn join(&mut self, last: Place, next: Place, joining: &Joining) -> bool {
        let (Some(&(one, chain)), Some(&(other, tail))) =
            (self.extent_index.get(last), self.extent_index.get(next))
        else {
            return false;
        };
        let length = one.end().max(other.end()) - one.offset;
        let bytes = chain.bytes + tail.bytes;
        let is_close = other.offset <= one.end() + joining.hole_bytes;
        if !is_close || length.max(bytes) > joining.access_bytes {
            return false;
        }
        self.parts[chain.last as usize].next = Some(tail.first);
        self.extent_index.remove(next);
        self.extent_index.remove(last);
        let chain = Chain { first: chain.first, last: tail.last, bytes };
        self.extent_index.insert(last, Extent::new(one.offset, length), chain);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_vocab::{Random, Seed};

    const JOINING: [Joining; 2] =
        [Joining { access_bytes: 40, hole_bytes: 0 }, Joining { access_bytes: 60, hole_bytes: 5 }];
    const NEAR: u64 = 25;

    /// The definition itself: sort everything, join from the left.
    #[derive(Default)]
    struct Naive {
        is_settled: bool,
        list: Vec<Served>,
    }

    type Served = (Extent, Vec<(Tag, Extent)>);

    fn joins(last: &Served, next: &Served, joining: &Joining) -> bool {
        let length = next.0.end().max(last.0.end()) - last.0.offset;
        let bytes: u64 = last.1.iter().chain(&next.1).map(|part| part.1.length).sum();
        next.0.offset <= last.0.end() + joining.hole_bytes
            && length.max(bytes) <= joining.access_bytes
    }

    impl Naive {
        fn push(&mut self, tag: Tag, extent: Extent) {
            self.is_settled = false;
            self.list.push((extent, vec![(tag, extent)]));
        }

        fn settle(&mut self, joining: &Joining) {
            if std::mem::replace(&mut self.is_settled, true) {
                return;
            }
            self.list.sort_by_key(|read| read.0.offset);
            let mut kept: Vec<Served> = Vec::new();
            for next in self.list.drain(..) {
                match kept.last_mut() {
                    Some(last) if joins(last, &next, joining) => {
                        last.0.length = next.0.end().max(last.0.end()) - last.0.offset;
                        last.1.extend(next.1);
                    }
                    _ => kept.push(next),
                }
            }
            self.list = kept;
        }

        fn take(&mut self, joining: &Joining, last_end: Option<u64>) -> Option<Served> {
            self.settle(joining);
            let first = self.list.first()?;
            if last_end.is_some_and(|end| first.0.offset.abs_diff(end) < NEAR) {
                return Some(self.list.remove(0));
            }
            let others = (1..self.list.len()).rev();
            let longest = others.max_by_key(|index| self.list[*index].0.length).unwrap_or(0);
            Some(self.list.remove(longest))
        }
    }

    #[test]
    fn random_reads_are_joined_chosen_and_served_as_by_sorting_everything_each_time() {
        for seed in 0..200 {
            let (mut random, joining) = (Random::new(Seed(seed)), &JOINING[seed as usize % 2]);
            let (mut naive, mut reads) = (Naive::default(), Reads::default());
            let mut last_end = None;
            for tag in 0..300 {
                if random.below(3) > 0 {
                    let extent = Extent::new(random.below(400), 1 + random.below(30));
                    naive.push(Tag(tag), extent);
                    reads.push(Tag(tag), extent);
                    continue;
                }
                let expected = naive.take(joining, last_end);
                let chosen = reads.choose(joining, last_end, NEAR);
                assert_eq!(chosen.map(|one| one.extent), expected.as_ref().map(|one| one.0));
                let Some(chosen) = chosen else { continue };
                let mut jobs = Vec::new();
                reads.take(FileId(0), &chosen, &mut jobs);
                let served: Vec<_> = jobs.iter().map(|job| (job.tag, job.extent)).collect();
                assert_eq!(Some(served), expected.map(|one| one.1));
                last_end = Some(chosen.extent.end());
            }
            let waiting: u64 =
                naive.list.iter().flat_map(|read| &read.1).map(|part| part.1.length).sum();
            assert_eq!(reads.bytes(), waiting);
        }
    }
}
