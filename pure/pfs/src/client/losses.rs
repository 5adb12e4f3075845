//! What a process has written that no sync has spoken for yet: a cache manager that begins a new life has lost
//! it, unless its write policy has servers get it first; and so may an I/O server have where a sync is for devices; the program is told so.
//!
//! Promises: each loss is told once for each open that wrote, by the next call on the file, at the latest
//! by sync or close. Costs: an entry for each party that an open has written through.

use super::answers::{answer, failed, not_open};
use super::events::{Action, Call, CallNumber, Done, Failure, FileNumber, Outcome};
use super::group::Then;
use super::{Client, Task};
use crate::configuration::Durability;
use crate::plant::{Plant, is_planted};
use crate::{Code, Incarnation, Party};
use iolab_policy::write_policy::catalog::Answer;
use iolab_vocab::Nanos;
use std::collections::BTreeMap;

/// See the module; of one open.
#[derive(Clone, Debug, Default)]
pub(super) struct Unsynced {
    /// In which life of each party something was written, and which of the writes was the last.
    through: BTreeMap<Party, (Incarnation, u64)>,
    writes: u64,
    loss: Option<Failure>,
}

impl Unsynced {
    /// Whether there is anything to sync, or to tell.
    pub(super) fn is_some(&self) -> bool {
        !self.through.is_empty() || self.loss.is_some()
    }

    /// How many writes there were: those that a sync begins with.
    pub(super) fn writes(&self) -> u64 {
        self.writes
    }

    /// The first so many writes are as durable as the class says.
    pub(super) fn synced(&mut self, writes: u64) {
        self.through.retain(|_, (_, last)| *last > writes);
    }

    /// A loss that was taken is still to be told.
    pub(super) fn keep_loss(&mut self, loss: Failure) {
        self.loss.get_or_insert(loss);
    }

    /// What is to be told, once.
    pub(super) fn take_loss(&mut self) -> Option<Failure> {
        self.loss.take()
    }
}

impl Client {
    /// Whether a new life of a party means that what was not synced may be lost.
    fn may_lose(&self, party: Party) -> bool {
        match party {
            // Servers had it before the write was answered. What they have not synced, they may lose.
            Party::Cache(_) if self.settings.write_policy.answer == Answer::Saved => {
                self.settings.durability == Durability::Device
            }
            Party::Cache(_) => true,
            // What its kernel has, it keeps; but it may have begun anew because its host did.
            Party::Server(_) => self.settings.durability == Durability::Device,
            Party::Metadata => false,
        }
    }

    /// What a sync or close comes to that brings nothing anywhere.
    pub(super) fn nothing_synced(&mut self, number: FileNumber) -> Outcome {
        let Some(file) = self.files.get_mut(&number) else { return not_open() };
        file.unsynced.take_loss().map_or(Ok(Done::Nothing), Err)
    }

    /// A party has written something of a file.
    pub(super) fn wrote(&mut self, number: FileNumber, through: Party) {
        if !self.may_lose(through) {
            return;
        }
        let life = self.links.incarnation(through);
        if let (Some(file), Some(life)) = (self.files.get_mut(&number), life) {
            file.unsynced.writes += 1;
            file.unsynced.through.insert(through, (life, file.unsynced.writes));
        }
    }

    /// A party is in a new life, or has forgotten this process.
    pub(super) fn restarted(&mut self, party: Party, life: Incarnation) {
        if !self.may_lose(party) {
            return;
        }
        let what = match party {
            Party::Server(_) => "not synced",
            _ => "in its memory",
        };
        for file in self.files.values_mut() {
            let inode = file.opened.inode;
            let Unsynced { through, loss, .. } = &mut file.unsynced;
            if through.get(&party).is_none_or(|(of, _)| *of == life) {
                continue;
            }
            through.remove(&party);
            if !is_planted(Plant::LossNotTold) {
                let text = format!("{party} has ended with data of file {inode} {what}");
                loss.get_or_insert(failed(Code::LOST, text));
            }
        }
        for task in self.tasks.values_mut() {
            if let Task::Access { transfers, .. } = task {
                transfers.is_doubtful = true;
            }
        }
    }

    /// What a call is told instead of being carried out. Sync and close do their work, and tell it then; what
    /// asks nobody tells nothing.
    pub(super) fn take_loss(&mut self, what: &Call) -> Option<(FileNumber, Failure)> {
        let number = what.file()?;
        if matches!(what, Call::Sync { .. } | Call::Close { .. } | Call::SetAtomic { .. }) {
            return None;
        }
        let loss = self.files.get_mut(&number)?.unsynced.take_loss()?;
        Some((number, loss))
    }

    /// Tells a call of a loss; of a collective one, all ranks.
    pub(super) fn tell_loss(
        &mut self,
        now: Nanos,
        call: CallNumber,
        (file, what): (FileNumber, Call),
        loss: Failure,
        out: &mut Vec<Action>,
    ) {
        match what {
            Call::Access { collective: true, .. } | Call::Agree { .. } => {
                self.agree(now, call, file, Err(loss), Then::Answer, out);
            }
            _ => answer(call, Err(loss), out),
        }
    }
}
