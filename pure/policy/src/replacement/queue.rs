//! Blocks one behind the other, some of which must stay.
//!
//! Costs: O(log n) each, for n blocks.

use super::Block;
use std::collections::BTreeMap;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    /// The place of each, and whether it must stay.
    of: BTreeMap<Block, (u64, bool)>,
    /// Those that may leave, by their places.
    free: BTreeMap<u64, Block>,
    last: u64,
}

impl Queue {
    pub(super) fn len(&self) -> u64 {
        self.of.len() as u64
    }

    /// Behind all others, also one that is there.
    pub(super) fn push(&mut self, block: Block) {
        self.last += 1;
        let held = self.remove(block).unwrap_or(false);
        self.of.insert(block, (self.last, held));
        if !held {
            self.free.insert(self.last, block);
        }
    }

    /// Tells whether it had to stay, if it was there.
    pub(super) fn remove(&mut self, block: Block) -> Option<bool> {
        let (place, held) = self.of.remove(&block)?;
        self.free.remove(&place);
        Some(held)
    }

    /// Whether it must stay from now on; false if it is not there.
    pub(super) fn hold(&mut self, block: Block, held: bool) -> bool {
        let Some((place, is_held)) = self.of.get_mut(&block) else { return false };
        *is_held = held;
        match held {
            true => self.free.remove(place),
            false => self.free.insert(*place, block),
        };
        true
    }

    pub(super) fn has(&self, block: Block) -> bool {
        self.of.contains_key(&block)
    }

    /// The first that may leave.
    pub(super) fn first(&self) -> Option<Block> {
        self.free.values().next().copied()
    }

    /// The last that may leave.
    pub(super) fn last(&self) -> Option<Block> {
        self.free.values().next_back().copied()
    }

    /// Takes the first that may leave.
    pub(super) fn pop(&mut self) -> Option<Block> {
        let first = self.first()?;
        self.remove(first);
        Some(first)
    }
}
