//! The blocks of a cache manager: which bytes of them are there, which of these no server has yet, and whose
//! memory goes to others.
//!
//! Promises: memory is within [`Blocks::memory`]; blocks with bytes that no server has, and those that
//! somebody waits for, stay; which of the others goes first is the replacement's to say, and when servers get what
//! they do not have the write policy's. At most three quarters hold
//! bytes that no server has, so that reads always find room.

use super::Settings;
use super::events::{Action, BlockNumber};
use super::grants::Grants;
use super::runs::{Run, Runs};
use crate::Inode;
use crate::plant::{Plant, is_planted};
use crate::serving::Operation;
use iolab_policy::Machine;
use iolab_policy::replacement::{self, Replacement};
use iolab_policy::write_policy::{self, WritePolicy};
use iolab_vocab::{Nanos, Seed};
use std::collections::BTreeMap;

/// Which block: the file, and the place of the first byte in it.
pub(super) type Key = (Inode, u64);

/// As policies name it.
fn named((inode, offset): Key) -> replacement::Block {
    replacement::Block { file: inode.0, offset }
}

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
    /// Nothing of it is brought to its server for now.
    is_kept: bool,
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
        let may_leave = is_planted(Plant::DirtyMayLeave) && self.flush.is_none();
        let is_saved = may_leave || !self.is_unsaved();
        is_saved && !self.is_fetching && self.waiters.is_empty()
    }

    /// Whether it may be flushed.
    fn is_offered(&self) -> bool {
        self.dirty.is_some() && self.flush.is_none() && !self.is_fetching && !self.is_kept
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
    /// Which of those that may goes when memory is full.
    replacement: Box<dyn Replacement>,
    /// Which of those that may is flushed next.
    write_policy: Box<dyn WritePolicy>,
    offered_count: usize,
    /// What both have answered.
    leaving: Vec<replacement::Action>,
    flushing: Vec<write_policy::Action>,
    last: u64,
    /// What servers have room for.
    pub(super) grants: Grants,
}

impl Blocks {
    /// None; the settings are in range.
    pub(super) fn new(settings: &Settings) -> Blocks {
        let Settings { memory, age, index, .. } = *settings;
        let replacement = settings.replacement.make(replacement::Place { memory });
        let seed = Seed(u64::from(index));
        Blocks {
            of: BTreeMap::new(),
            memory,
            used_bytes: 0,
            unsaved_bytes: 0,
            replacement,
            write_policy: settings.write_policy.make(write_policy::Place { age, seed }),
            offered_count: 0,
            leaving: Vec::new(),
            flushing: Vec::new(),
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

    fn tell_replacement(&mut self, event: replacement::Event) {
        // It goes by what happens, not by when.
        self.replacement.step(Nanos::ZERO, event, &mut self.leaving);
    }

    /// Whether any may be flushed.
    pub(super) fn may_flush(&self) -> bool {
        self.offered_count > 0
    }

    /// The one that the write policy has flushed next, if any; it must name one if there is any and `must` is true.
    pub(super) fn next_flush(&mut self, now: Nanos, must: bool) -> Option<Key> {
        let (dirty_bytes, memory) = (self.unsaved_bytes, self.memory);
        let turn = write_policy::Event::Turn { must, dirty_bytes, memory };
        self.write_policy.step(now, turn, &mut self.flushing);
        match self.flushing.pop()? {
            write_policy::Action::Flush { block } => Some((Inode(block.file), block.offset)),
            write_policy::Action::WakeAt(_) => None,
        }
    }

    /// When the write policy wants one flushed that nobody has to wait for.
    pub(super) fn flushes_at(&mut self, now: Nanos) -> Option<Nanos> {
        self.write_policy.step(now, write_policy::Event::Rested, &mut self.flushing);
        match self.flushing.pop()? {
            write_policy::Action::WakeAt(at) => Some(at),
            write_policy::Action::Flush { .. } => None,
        }
    }

    /// Whether nothing of a file is brought to servers until further notice.
    pub(super) fn keep_from_servers(&mut self, inode: Inode, is_kept: bool) {
        let keys: Vec<Key> = self.of_file(inode).map(|(key, _)| key).collect();
        for key in keys {
            self.change(key, |block| block.is_kept = is_kept);
        }
    }

    /// A new block without bytes, if there is room, or others make some. Tells whether there is.
    pub(super) fn take(&mut self, key: Key, bytes: u32, out: &mut Vec<Action>) -> bool {
        while self.used_bytes + u64::from(bytes) > self.memory {
            self.tell_replacement(replacement::Event::Full);
            let Some(replacement::Action::Leave { block }) = self.leaving.pop() else {
                return false;
            };
            let key = (Inode(block.file), block.offset);
            // Nothing, but for a planted defect.
            self.change(key, |block| block.dirty = None);
            self.forget(key, out);
        }
        let number = BlockNumber(self.next());
        self.used_bytes += u64::from(bytes);
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
            is_kept: false,
        };
        self.tell_replacement(replacement::Event::Came { block: named(key), bytes });
        self.of.insert(key, block);
        out.push(Action::Take { block: number, bytes });
        true
    }

    /// Forgets a block that nobody will look for.
    pub(super) fn free(&mut self, key: Key, out: &mut Vec<Action>) {
        self.change(key, |block| (block.dirty, block.flush) = (None, None));
        if self.of.contains_key(&key) {
            self.tell_replacement(replacement::Event::Gone { block: named(key) });
            self.forget(key, out);
        }
    }

    fn forget(&mut self, key: Key, out: &mut Vec<Action>) {
        let Some(block) = self.of.remove(&key) else { return };
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
        let (was_unsaved, was_idle, was_offered) =
            (block.is_unsaved(), block.is_idle(), block.is_offered());
        let result = change(block);
        let (is_idle, is_offered) = (block.is_idle(), block.is_offered());
        let (name, (since, order)) = (named(key), block.dirty_since);
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
        match (was_idle, is_idle) {
            (true, false) => self.tell_replacement(replacement::Event::Held { block: name }),
            (false, true) => self.tell_replacement(replacement::Event::Freed { block: name }),
            _ => {}
        }
        let event = match (was_offered, is_offered) {
            (false, true) => write_policy::Event::Offered { block: name, since, order },
            (true, false) => write_policy::Event::Withdrawn { block: name },
            _ => return Some(result),
        };
        self.offered_count =
            self.offered_count + usize::from(is_offered) - usize::from(was_offered);
        self.write_policy.step(since, event, &mut self.flushing);
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
        if self.of.contains_key(&key) {
            self.tell_replacement(replacement::Event::Used { block: named(key) });
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

    /// Those of a file that have bytes no server has for certain.
    pub(super) fn unsaved(&self, inode: Inode) -> impl Iterator<Item = (Key, &Block)> {
        self.of_file(inode).filter(|(_, block)| block.is_unsaved())
    }

    /// Those of a file, in its order.
    pub(super) fn of_file(&self, inode: Inode) -> impl DoubleEndedIterator<Item = (Key, &Block)> {
        self.of.range((inode, 0)..=(inode, u64::MAX)).map(|(&key, block)| (key, block))
    }
}
