//! Which syncs are under way, and who waits for the next one.
//!
//! Promises: a sync of the device serves all who asked before it began, and nobody who asked later: what
//! was written in between it may have missed. What was not changed since it was synced is not synced again.
//! Costs: an entry for each subfile that is being synced, and [`CLEAN_MAX`] at most for those that were.

use super::{Action, IoServer, Operation, Outcome, Subfile};
use crate::plant::{Plant, is_planted};
use crate::{Code, Inode, Message};
use std::collections::{BTreeMap, BTreeSet};

/// How many subfiles are known to have nothing to sync; to sync one again does no harm.
const CLEAN_MAX: usize = 1 << 16;

/// What clients are told after a sync that failed.
pub(super) const FAILED: &str = "the device could not sync: what was not synced may be lost, and nothing more is written until the \
                      server is started again";

/// The sync of a subfile that is under way.
#[derive(Debug, Default)]
struct Commit {
    /// Who else is served by it.
    joined: Vec<Operation>,
    /// Who needs another one.
    waiting: Vec<Operation>,
    /// Something was changed since it began.
    is_changed: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Commits {
    under_way: BTreeMap<Subfile, Commit>,
    clean: BTreeSet<Subfile>,
}

/// What becomes of a wish to sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wished {
    /// There is nothing to sync.
    Clean,
    /// The device is to sync for it.
    Begins,
    /// It is served by another one.
    Waits,
}

/// What follows when a sync is over.
#[derive(Debug, Default)]
pub(super) struct Over {
    /// Who was served by it, beside the one that began it.
    pub(super) served: Vec<Operation>,
    /// Who begins the next one.
    pub(super) next: Option<Operation>,
}

impl Commits {
    /// Somebody wants durable what is done by now.
    pub(super) fn ask(&mut self, subfile: Subfile, operation: Operation) -> Wished {
        if let Some(commit) = self.under_way.get_mut(&subfile) {
            match is_planted(Plant::SyncJoined) {
                true => commit.joined.push(operation),
                false => commit.waiting.push(operation),
            }
            return Wished::Waits;
        }
        if self.clean.contains(&subfile) {
            return Wished::Clean;
        }
        self.under_way.insert(subfile, Commit::default());
        Wished::Begins
    }

    /// Something of a subfile was changed, or may have been.
    pub(super) fn changed(&mut self, subfile: Subfile) {
        self.clean.remove(&subfile);
        if let Some(commit) = self.under_way.get_mut(&subfile) {
            commit.is_changed = true;
        }
    }

    /// The sync of a subfile is over.
    pub(super) fn synced(&mut self, subfile: Subfile) -> Over {
        let Some(commit) = self.under_way.remove(&subfile) else { return Over::default() };
        let Commit { joined: served, mut waiting, is_changed } = commit;
        if waiting.is_empty() {
            if !is_changed {
                if self.clean.len() == CLEAN_MAX {
                    self.clean.pop_first();
                }
                self.clean.insert(subfile);
            }
            return Over { served, next: None };
        }
        let joined = waiting.split_off(1);
        self.under_way.insert(subfile, Commit { joined, ..Commit::default() });
        Over { served, next: waiting.pop() }
    }

    /// The sync of a subfile has failed. Gives all others who wait for it, or for the next one.
    pub(super) fn failed(&mut self, subfile: Subfile) -> Vec<Operation> {
        let Some(commit) = self.under_way.remove(&subfile) else { return Vec::new() };
        commit.joined.into_iter().chain(commit.waiting).collect()
    }

    /// A file is no more.
    pub(super) fn forget(&mut self, inode: Inode) {
        self.clean.retain(|subfile| subfile.inode != inode);
    }
}

impl IoServer {
    /// Has a subfile synced, unless that is not needed or another sync serves.
    pub(super) fn sync(&mut self, operation: Operation, subfile: Subfile, out: &mut Vec<Action>) {
        if is_planted(Plant::SyncNotAwaited) {
            return self.end(operation, Message::Done, None, out);
        }
        match self.commits.ask(subfile, operation) {
            Wished::Begins => out.push(Action::Sync { operation, subfile }),
            Wished::Clean => self.end(operation, Message::Done, None, out),
            Wished::Waits => {}
        }
    }

    /// The device has synced a subfile, or has failed to.
    pub(super) fn synced(
        &mut self,
        operation: Operation,
        subfile: Subfile,
        result: Result<Outcome, Code>,
        out: &mut Vec<Action>,
    ) {
        let (message, served) = match result {
            Ok(_) => {
                let over = self.commits.synced(subfile);
                out.extend(over.next.map(|operation| Action::Sync { operation, subfile }));
                (Message::Done, over.served)
            }
            Err(code) => {
                if !is_planted(Plant::SyncRetried) {
                    self.failed.get_or_insert(code);
                }
                (Message::failed(code, FAILED), self.commits.failed(subfile))
            }
        };
        for operation in std::iter::once(operation).chain(served) {
            self.end(operation, message.clone(), None, out);
        }
    }
}
