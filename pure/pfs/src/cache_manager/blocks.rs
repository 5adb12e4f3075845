//! The blocks of a cache manager: which bytes of them are there, which of these no server has yet, and whose
//! memory goes to others.
//!
//! Promises: memory is within [`Blocks::memory`]; blocks with bytes that no server has, and those that
//! somebody waits for, stay; of the others the least recently used goes first. At most three quarters hold
//! bytes that no server has, so that reads always find room.

use super::events::{Action, BlockNumber};
use super::grants::Grants;
use super::runs::{Run, Runs};
use crate::Inode;
use crate::serving::Operation;
use iolab_vocab::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// Which block: the file, and the place of the first byte in it.
pub(super) type Key = (Inode, u64);

/// A flush under way.
#[derive(Clone, Debug)]
pub(super) struct Flush {
    /// What the server did not have when it began.
    pub(super) hull: Run,
    /// Requests without an answer.
    pub(super) pending: u32,
}

/// A block.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) number: BlockNumber,
    pub(super) bytes: u32,
    /// Which bytes of it are there.
    pub(super) have: Runs,
    /// Behind which the file had nothing of it, as far as is known; what is there behind that is zeros.
    pub(super) end: u32,
    /// The range of bytes that no server has. Others in it may be the server's own: to write them once more
    /// does no harm, since nobody else writes there.
    pub(super) dirty: Option<Run>,
    /// Since when, and its place in the order of those that have some.
    dirty_since: (Nanos, u64),
    pub(super) flush: Option<Flush>,
    /// How many flushes have begun.
    pub(super) flushes: u64,
    pub(super) is_fetching: bool,
    /// Which server has granted how much for what it does not have.
    granted: Option<(u32, u64)>,
    /// Who waits for what is fetched.
    pub(super) waiters: Vec<Operation>,
    used: u64,
}

impl Block {
    /// Whether all of it is there.
    pub(super) fn is_whole(&self) -> bool {
        self.have.covers((0, self.bytes))
    }

    /// Whether it has bytes that no server has for certain.
    pub(super) fn is_unsaved(&self) -> bool {
        self.dirty.is_some() || self.flush.is_some()
    }

    fn is_idle(&self) -> bool {
        !self.is_unsaved() && !self.is_fetching && self.waiters.is_empty()
    }
}

/// All blocks of a manager.
#[derive(Debug)]
pub(super) struct Blocks {
    of: BTreeMap<Key, Block>,
    memory: u64,
    used_bytes: u64,
    /// Of blocks that have bytes no server has.
    unsaved_bytes: u64,
    /// Those whose memory may go, the least recently used first.
    idle: BTreeMap<u64, Key>,
    /// Those that may be flushed, the oldest first.
    dirty: BTreeSet<(Nanos, u64, Key)>,
    last: u64,
    /// What servers have room for.
    pub(super) grants: Grants,
}

impl Blocks {
    pub(super) fn new(memory: u64) -> Blocks {
        Blocks {
            of: BTreeMap::new(),
            memory,
            used_bytes: 0,
            unsaved_bytes: 0,
            idle: BTreeMap::new(),
            dirty: BTreeSet::new(),
            last: 0,
            grants: Grants::default(),
        }
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(super) fn get(&self, key: Key) -> Option<&Block> {
        self.of.get(&key)
    }

    /// Bytes of all blocks.
    pub(super) fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// Bytes of blocks that have some no server has.
    pub(super) fn unsaved_bytes(&self) -> u64 {
        self.unsaved_bytes
    }

    /// Whether one more block may have bytes that no server has.
    pub(super) fn takes_dirt(&self, bytes: u32) -> bool {
        self.unsaved_bytes + u64::from(bytes) <= self.memory / 4 * 3
    }

    /// Whether so much is unsaved that flushing begins by itself.
    pub(super) fn is_half_dirty(&self) -> bool {
        self.unsaved_bytes > self.memory / 2
    }

    /// A new block without bytes, if there is room, or others make some. Tells whether there is.
    pub(super) fn take(&mut self, key: Key, bytes: u32, out: &mut Vec<Action>) -> bool {
        while self.used_bytes + u64::from(bytes) > self.memory {
            let Some((_, least)) = self.idle.pop_first() else { return false };
            self.free(least, out);
        }
        let number = BlockNumber(self.next());
        self.used_bytes += u64::from(bytes);
        let used = number.0;
        let block = Block {
            number,
            bytes,
            have: Runs::default(),
            end: 0,
            dirty: None,
            dirty_since: (Nanos::ZERO, 0),
            flush: None,
            flushes: 0,
            is_fetching: false,
            granted: None,
            waiters: Vec::new(),
            used,
        };
        self.idle.insert(used, key);
        self.of.insert(key, block);
        out.push(Action::Take { block: number, bytes });
        true
    }

    /// Forgets a block.
    pub(super) fn free(&mut self, key: Key, out: &mut Vec<Action>) {
        self.change(key, |block| (block.dirty, block.flush) = (None, None));
        let Some(block) = self.of.remove(&key) else { return };
        self.idle.remove(&block.used);
        self.used_bytes -= u64::from(block.bytes);
        out.push(Action::Free { block: block.number });
    }

    /// Changes a block, and with it what may become of its memory.
    pub(super) fn change<R>(
        &mut self,
        key: Key,
        change: impl FnOnce(&mut Block) -> R,
    ) -> Option<R> {
        let block = self.of.get_mut(&key)?;
        let was_unsaved = block.is_unsaved();
        self.idle.remove(&block.used);
        let (since, order) = block.dirty_since;
        self.dirty.remove(&(since, order, key));
        let result = change(block);
        if block.is_idle() {
            self.idle.insert(block.used, key);
        }
        if block.dirty.is_some() && block.flush.is_none() && !block.is_fetching {
            self.dirty.insert((block.dirty_since.0, block.dirty_since.1, key));
        }
        match (was_unsaved, block.is_unsaved()) {
            (false, true) => self.unsaved_bytes += u64::from(block.bytes),
            (true, false) => {
                self.unsaved_bytes -= u64::from(block.bytes);
                if let Some((server, bytes)) = block.granted.take() {
                    self.grants.spent(server, bytes);
                }
            }
            _ => {}
        }
        Some(result)
    }

    /// What a block that is about to be written was granted.
    pub(super) fn charge(&mut self, key: Key, granted: (u32, u64)) {
        if let Some(block) = self.of.get_mut(&key) {
            block.granted = Some(granted);
        }
    }

    /// Somebody uses a block.
    pub(super) fn touch(&mut self, key: Key) {
        let used = self.next();
        if let Some(block) = self.of.get_mut(&key) {
            if self.idle.remove(&block.used).is_some() {
                self.idle.insert(used, key);
            }
            block.used = used;
        }
    }

    /// Bytes of a block were written that no server has.
    pub(super) fn wrote(
        &mut self,
        now: Nanos,
        key: Key,
        runs: impl Iterator<Item = Run>,
        hull: Run,
    ) {
        let order = self.next();
        self.change(key, |block| {
            block.have.add(runs);
            block.end = block.end.max(hull.1);
            if block.dirty.is_none() {
                block.dirty_since = (now, order);
            }
            let all = |old: Run| (old.0.min(hull.0), old.1.max(hull.1));
            block.dirty = Some(block.dirty.map_or(hull, all));
        });
    }

    /// Forgets all bytes of a block from `at` on, and what it does not need to be there for any more.
    pub(super) fn cut(&mut self, key: Key, at: u32, out: &mut Vec<Action>) {
        let is_left = self.change(key, |block| {
            block.have.cut(at);
            block.end = block.end.min(at);
            let cut = |(from, to): Run| (from < at).then_some((from, to.min(at)));
            block.dirty = block.dirty.and_then(cut);
            !block.have.is_empty()
        });
        if is_left == Some(false) {
            self.free(key, out);
        }
    }

    /// Those that may be flushed, the oldest first, and since when they have something to be flushed.
    pub(super) fn dirty(&self) -> impl Iterator<Item = (Nanos, Key)> + '_ {
        self.dirty.iter().map(|&(since, _, key)| (since, key))
    }

    /// Those of a file that have bytes no server has for certain.
    pub(super) fn unsaved(&self, inode: Inode) -> impl Iterator<Item = (Key, &Block)> {
        self.of_file(inode).filter(|(_, block)| block.is_unsaved())
    }

    /// Those of a file, in its order.
    pub(super) fn of_file(&self, inode: Inode) -> impl DoubleEndedIterator<Item = (Key, &Block)> {
        self.of.range((inode, 0)..=(inode, u64::MAX)).map(|(&key, block)| (key, block))
    }
}
