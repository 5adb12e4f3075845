//! Blocks one behind the other, some of which must stay.
//!
//! Costs: O(log n) each, for n blocks.

use super::{Block, Event};
use std::collections::BTreeMap;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    of: BTreeMap<Block, Entry>,
    /// Those that may leave, by their places.
    free: BTreeMap<u64, Block>,
    last: u64,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    place: u64,
    must_stay: bool,
    bytes: u32,
}

impl Queue {
    /// Bytes of all.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What all members do alike: blocks come to the end, stay, may leave again, are gone. Uses, and that there is no room,
    /// are for the member.
    pub(super) fn told(&mut self, event: Event) {
        match event {
            Event::Came { block, bytes } => self.push(block, bytes),
            Event::Held { block } => drop(self.hold(block, true)),
            Event::Freed { block } => drop(self.hold(block, false)),
            Event::Gone { block } => drop(self.remove(block)),
            Event::Used { .. } | Event::Full => {}
        }
    }

    /// One that may leave, behind all others.
    pub(super) fn push(&mut self, block: Block, bytes: u32) {
        self.remove(block);
        self.last += 1;
        self.of.insert(block, Entry { place: self.last, must_stay: false, bytes });
        self.free.insert(self.last, block);
        self.bytes += u64::from(bytes);
    }

    /// Puts one that is there behind all others.
    pub(super) fn used(&mut self, block: Block) {
        let Some(entry) = self.of.get_mut(&block) else { return };
        self.last += 1;
        if !entry.must_stay {
            self.free.remove(&entry.place);
            self.free.insert(self.last, block);
        }
        entry.place = self.last;
    }

    /// Gives its bytes, if it is there.
    pub(super) fn remove(&mut self, block: Block) -> Option<u32> {
        let Entry { place, bytes, .. } = self.of.remove(&block)?;
        self.free.remove(&place);
        self.bytes -= u64::from(bytes);
        Some(bytes)
    }

    /// Whether it must stay from now on; false if it is not there.
    pub(super) fn hold(&mut self, block: Block, must_stay: bool) -> bool {
        let Some(entry) = self.of.get_mut(&block) else { return false };
        entry.must_stay = must_stay;
        match must_stay {
            true => self.free.remove(&entry.place),
            false => self.free.insert(entry.place, block),
        };
        true
    }

    /// The first that may leave.
    pub(super) fn first(&self) -> Option<Block> {
        self.free.values().next().copied()
    }

    /// The last that may leave.
    pub(super) fn last(&self) -> Option<Block> {
        self.free.values().next_back().copied()
    }

    /// Takes the first that may leave, which has so many bytes.
    pub(super) fn pop(&mut self) -> Option<(Block, u32)> {
        let first = self.first()?;
        Some((first, self.remove(first)?))
    }
}
