//! Events that may be moved: at most one per slot, found without searching.
//!
//! A binary heap of slots that remembers where each slot stands, so moving a timer costs
//! O(log slots).

use super::Entry;

/// Not in the heap.
const NOWHERE: u32 = u32::MAX;

pub(super) struct Timers<E> {
    /// Slots, as a heap by the keys of their entries.
    heap: Vec<u32>,
    /// Per slot, where it stands in the heap, and its entry.
    places: Vec<u32>,
    entries: Vec<Option<Entry<E>>>,
    /// Key of the first one, the greatest of all when there is none.
    first_key: u128,
}

impl<E: Copy> Timers<E> {
    pub(super) fn new() -> Timers<E> {
        let (heap, places, entries) = (Vec::new(), Vec::new(), Vec::new());
        Timers { heap, places, entries, first_key: u128::MAX }
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    #[inline]
    pub(super) fn first_key(&self) -> u128 {
        self.first_key
    }

    /// Sets a slot's timer, wherever it was before.
    pub(super) fn set(&mut self, slot: u32, entry: Entry<E>) {
        let index = slot as usize;
        if index >= self.places.len() {
            self.places.resize(index + 1, NOWHERE);
            self.entries.resize(index + 1, None);
        }
        self.entries[index] = Some(entry);
        if self.places[index] == NOWHERE {
            self.places[index] = self.heap.len() as u32;
            self.heap.push(slot);
        }
        let at = self.sift_up(self.places[index] as usize);
        self.sift_down(at);
        self.first_key = self.key(self.heap[0]);
    }

    /// Takes the first one.
    pub(super) fn pop(&mut self) -> Option<Entry<E>> {
        let last = self.heap.len().checked_sub(1)?;
        self.swap(0, last);
        let slot = self.heap.pop()?;
        self.places[slot as usize] = NOWHERE;
        if last > 0 {
            self.sift_down(0);
        }
        self.first_key = self.heap.first().map_or(u128::MAX, |first| self.key(*first));
        self.entries[slot as usize].take()
    }

    #[inline]
    fn key(&self, slot: u32) -> u128 {
        self.entries[slot as usize].map_or(u128::MAX, |entry| entry.key())
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.places[self.heap[one] as usize] = one as u32;
        self.places[self.heap[other] as usize] = other as u32;
    }

    fn sift_up(&mut self, mut at: usize) -> usize {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.key(self.heap[parent]) <= self.key(self.heap[at]) {
                break;
            }
            self.swap(at, parent);
            at = parent;
        }
        at
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let children = (2 * at + 1..2 * at + 3).filter(|child| *child < self.heap.len());
            let Some(child) = children.min_by_key(|child| self.key(self.heap[*child])) else {
                return;
            };
            if self.key(self.heap[at]) <= self.key(self.heap[child]) {
                return;
            }
            self.swap(at, child);
            at = child;
        }
    }
}
