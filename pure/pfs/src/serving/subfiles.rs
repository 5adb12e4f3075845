//! Which requests use which bytes of a subfile, and how long subfiles are.

use super::claims::{Claim, Claims};
use super::{Operation, Subfile};
use crate::Inode;
use crate::plant::{Plant, is_planted};
use std::collections::{BTreeMap, BTreeSet};

/// How many subfiles that nobody uses are remembered with their lengths.
const IDLE_MAX: usize = 4096;

/// How many files are remembered that are no more.
const DISCARDED_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
struct State {
    /// How long it is, unless nobody has looked, or something failed since.
    length: Option<u64>,
    /// It is at least so long: what was written up to there is done.
    at_least: u64,
    claims: Claims<Operation>,
}

impl State {
    fn is_idle(&self) -> bool {
        self.claims.is_idle()
    }
}

/// The subfiles of a server that were used lately.
#[derive(Debug, Default)]
pub(crate) struct Subfiles {
    of: BTreeMap<Subfile, State>,
    idle_count: usize,
    /// Files that are no more: their numbers are not used again.
    discarded: BTreeSet<Inode>,
}

impl Subfiles {
    /// Somebody comes. Tells whether it may begin.
    pub(crate) fn enter(&mut self, subfile: Subfile, claim: Claim<Operation>) -> bool {
        let is_known = self.of.contains_key(&subfile);
        let state = self.of.entry(subfile).or_default();
        if is_known && state.is_idle() {
            self.idle_count -= 1;
        }
        state.claims.enter(claim)
    }

    /// Somebody is through. Gives those that may begin now, in the order in which they came.
    pub(crate) fn leave(&mut self, subfile: Subfile, operation: Operation) -> Vec<Operation> {
        let Some(state) = self.of.get_mut(&subfile) else { return Vec::new() };
        let begun = state.claims.leave(operation);
        if state.is_idle() {
            self.idle_count += 1;
            self.forget_one();
        }
        begun
    }

    fn forget_one(&mut self) {
        if self.idle_count <= IDLE_MAX {
            return;
        }
        let idle = self.of.iter().find(|(_, state)| state.is_idle()).map(|(&subfile, _)| subfile);
        if let Some(subfile) = idle {
            self.of.remove(&subfile);
            self.idle_count -= 1;
        }
    }

    /// Whether anybody uses a file.
    pub(crate) fn is_used(&self, inode: Inode) -> bool {
        self.of_file(inode).any(|(_, state)| !state.is_idle())
    }

    /// Whether a file is no more: who still asks for it must not make it anew.
    pub(crate) fn is_discarded(&self, inode: Inode) -> bool {
        self.discarded.contains(&inode)
    }

    /// A file that nobody uses is no more.
    pub(crate) fn discard(&mut self, inode: Inode) {
        if self.discarded.len() == DISCARDED_MAX {
            // The one whose users have had the longest time to learn of it.
            self.discarded.pop_first();
        }
        self.discarded.insert(inode);
        let subfiles: Vec<Subfile> = self.of_file(inode).map(|(&subfile, _)| subfile).collect();
        for subfile in subfiles {
            self.of.remove(&subfile);
            self.idle_count -= 1;
        }
    }

    fn of_file(&self, inode: Inode) -> impl Iterator<Item = (&Subfile, &State)> {
        self.of.range(Subfile { inode, index: 0 }..=Subfile { inode, index: u32::MAX })
    }

    /// How long a subfile is, if that is known.
    pub(crate) fn length(&self, subfile: Subfile) -> Option<u64> {
        self.of.get(&subfile)?.length
    }

    /// A subfile was looked at, while it may have been written. Gives its length.
    pub(crate) fn measured(&mut self, subfile: Subfile, length: u64) -> u64 {
        let Some(state) = self.of.get_mut(&subfile) else { return length };
        // One that is known by now has seen everything since.
        *state.length.get_or_insert(length.max(state.at_least))
    }

    /// Something was written up to there.
    pub(crate) fn reaches(&mut self, subfile: Subfile, end: u64) {
        if let Some(state) = self.of.get_mut(&subfile) {
            state.at_least = end.max(state.at_least);
            state.length = state.length.map(|length| length.max(end));
        }
    }

    /// It has another length. Nobody has looked at it meanwhile.
    pub(crate) fn resized(&mut self, subfile: Subfile, bytes: u64, extends: bool) {
        if let Some(state) = self.of.get_mut(&subfile) {
            if is_planted(Plant::LengthKept) {
                return;
            }
            state.at_least = state.at_least.min(bytes);
            state.length = match (state.length, extends) {
                (_, true) => Some(bytes),
                (length, false) => length.map(|length| length.min(bytes)),
            };
        }
    }

    /// Something failed: nobody knows how long it is.
    pub(crate) fn doubt(&mut self, subfile: Subfile) {
        if let Some(state) = self.of.get_mut(&subfile) {
            state.length = None;
        }
    }
}
