//! Which syncs are under way, and who waits for the next one.
//!
//! Promises: a sync of the device serves all who asked before it began, and nobody who asked later: what
//! was written in between it may have missed. What was not changed since it was synced is not synced again.
//! Of one subfile one sync is under way at a time, those counted that come before its pages are summed: of two,
//! a kernel tells one only that it could not write, and names that one of them brings to the device the other does
//! not wait for.
//! Costs: an entry for each subfile that is being synced, and [`CLEAN_MAX`] at most for those that were.

use super::{Action, IoServer, Operation, Outcome, Subfile, Work};
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
    /// What sums pages once it is over.
    sum: Option<Operation>,
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

/// Who hoped for a sync that has failed.
#[derive(Debug, Default)]
pub(super) struct Failed {
    /// Who asked for one.
    pub(super) syncs: Vec<Operation>,
    /// What was to sum pages.
    pub(super) sum: Option<Operation>,
}

impl Commits {
    /// Somebody wants durable what is done by now.
    pub(super) fn ask(&mut self, subfile: Subfile, operation: Operation) -> Wished {
        if self.clean.contains(&subfile) {
            return Wished::Clean;
        }
        if let Some(commit) = self.under_way.get_mut(&subfile) {
            match is_planted(Plant::SyncJoined) {
                true => commit.joined.push(operation),
                false => commit.waiting.push(operation),
            }
            return Wished::Waits;
        }
        self.under_way.insert(subfile, Commit::default());
        Wished::Begins
    }

    /// Pages are to be summed, which begins with a sync. Tells whether that begins at once.
    pub(super) fn ask_for_sum(&mut self, subfile: Subfile, operation: Operation) -> bool {
        if is_planted(Plant::SummedBesideSync) {
            return true;
        }
        if let Some(commit) = self.under_way.get_mut(&subfile) {
            commit.sum = Some(operation);
            return false;
        }
        self.under_way.insert(subfile, Commit::default());
        true
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
        let Commit { joined: served, waiting, sum, is_changed } = commit;
        let mut rest = waiting.into_iter();
        // Writes wait for what sums their pages; it syncs for the others, too.
        let Some(next) = sum.or_else(|| rest.next()) else {
            if !is_changed {
                if self.clean.len() == CLEAN_MAX {
                    self.clean.pop_first();
                }
                self.clean.insert(subfile);
            }
            return Over { served, next: None };
        };
        let joined = rest.collect();
        self.under_way.insert(subfile, Commit { joined, ..Commit::default() });
        Over { served, next: Some(next) }
    }

    /// The sync of a subfile has failed. Gives all others who wait for it, or for the next one.
    pub(super) fn failed(&mut self, subfile: Subfile) -> Failed {
        let Some(commit) = self.under_way.remove(&subfile) else { return Failed::default() };
        let Commit { joined, waiting, sum, .. } = commit;
        Failed { syncs: joined.into_iter().chain(waiting).collect(), sum }
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
            Wished::Begins => self.begin_commit(operation, out),
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
        let message = match &result {
            Ok(_) => Message::Done,
            Err(code) => Message::failed(*code, FAILED),
        };
        self.end(operation, message, None, out);
        self.commit_over(subfile, result.map(|_| ()), out);
    }

    /// A sync that was under way is over, whoever it was for: others were served by it, and the next one begins.
    pub(super) fn commit_over(
        &mut self,
        subfile: Subfile,
        result: Result<(), Code>,
        out: &mut Vec<Action>,
    ) {
        let (message, served) = match result {
            Ok(()) => {
                let over = self.commits.synced(subfile);
                if let Some(next) = over.next {
                    self.begin_commit(next, out);
                }
                (Message::Done, over.served)
            }
            Err(code) => {
                if !is_planted(Plant::SyncRetried) {
                    self.failed.get_or_insert(code);
                }
                let failed = self.commits.failed(subfile);
                if let Some(sum) = failed.sum {
                    self.do_not_sum(sum);
                }
                (Message::failed(code, FAILED), failed.syncs)
            }
        };
        for operation in served {
            self.end(operation, message.clone(), None, out);
        }
    }

    /// Has the device sync for a job whose turn it is, and sum what it is for.
    pub(super) fn begin_commit(&mut self, operation: Operation, out: &mut Vec<Action>) {
        match self.serving.job(operation) {
            Some(&mut Work::Sync { subfile }) => out.push(Action::Sync { operation, subfile }),
            Some(&mut Work::Sum { subfile, pages }) => {
                out.push(Action::Sum { operation, subfile, pages });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUBFILE: Subfile = Subfile { inode: Inode(7), index: 0 };

    #[test]
    fn what_sums_pages_waits_for_a_sync_and_syncs_for_who_asked_meanwhile() {
        let mut commits = Commits::default();
        let [first, sum, second, third] = [1, 2, 3, 4].map(Operation);
        assert_eq!(commits.ask(SUBFILE, first), Wished::Begins);
        assert!(!commits.ask_for_sum(SUBFILE, sum));
        assert_eq!(commits.ask(SUBFILE, second), Wished::Waits);
        let over = commits.synced(SUBFILE);
        assert_eq!((over.served, over.next), (vec![], Some(sum)));
        assert_eq!(commits.ask(SUBFILE, third), Wished::Waits);
        let over = commits.synced(SUBFILE);
        assert_eq!((over.served, over.next), (vec![second], Some(third)));
        assert_eq!(commits.synced(SUBFILE).next, None);
        // Nothing has changed: who asks now need not wait for what sums, either.
        assert!(commits.ask_for_sum(SUBFILE, sum));
        assert_eq!(commits.ask(SUBFILE, first), Wished::Clean);
        commits.changed(SUBFILE);
        assert_eq!(commits.ask(SUBFILE, first), Wished::Waits);
    }

    #[test]
    fn all_who_hoped_for_a_sync_that_failed_are_told() {
        let mut commits = Commits::default();
        let [first, second, third] = [1, 2, 3].map(Operation);
        assert!(commits.ask_for_sum(SUBFILE, first));
        assert_eq!(commits.ask(SUBFILE, second), Wished::Waits);
        assert!(!commits.ask_for_sum(SUBFILE, third));
        let failed = commits.failed(SUBFILE);
        assert_eq!((failed.syncs, failed.sum), (vec![second], Some(third)));
        assert!(commits.failed(SUBFILE).syncs.is_empty());
    }
}
