//! When the journal begins anew, and with what: a *checkpoint*, the state as the records of a short history.
//!
//! The driver writes it beside the journal while records go on to that; once it is on its device, it takes the
//! journal's place, with the records that have come meanwhile. So whatever crashes, and whenever, one of the
//! two is there, and it has everything.
//!
//! Promises: a journal is at most three times as long as the state that it tells of, or the length from the settings
//! longer than that; so a new life reads as much. Costs: a pass over all names for each checkpoint, in
//! which nobody is answered; the records that come while one is written are kept in memory until it is.

use super::events::Action;
use super::{Metadata, Waiting};
use crate::change::Change;
use crate::journal::Record;
use crate::plant::{Plant, is_planted};
use crate::{Message, Request, SessionId};

/// Changes in a record of a checkpoint: those of one that is damaged are lost to who rescues.
const CHANGES: usize = 256;
/// How many times as long as the state that the journal begins with its records become, at least.
const TIMES: u64 = 2;

/// How long the journal is, and what is to be behind a checkpoint that is being written.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    /// Bytes of the state that the journal begins with.
    base_bytes: u64,
    /// Bytes of records behind it.
    behind_bytes: u64,
    /// One that is being written.
    underway: Option<Underway>,
}

/// A checkpoint that is being written.
#[derive(Debug)]
struct Underway {
    bytes: u64,
    /// Records since it was taken.
    behind: Vec<u8>,
}

impl Checkpoints {
    /// A record was put into the journal.
    pub(super) fn appended(&mut self, record: &[u8]) {
        self.behind_bytes += record.len() as u64;
        if let Some(underway) = &mut self.underway
            && !is_planted(Plant::CheckpointAlone)
        {
            underway.behind.extend(record);
        }
    }

    /// What was read so far is the state that the journal begins with.
    pub(super) fn begins(&mut self) {
        self.base_bytes = std::mem::take(&mut self.behind_bytes);
    }

    /// Of a journal that cannot be written any more.
    pub(super) fn cancel(&mut self) {
        self.underway = None;
    }
}

impl Metadata {
    /// Takes a checkpoint if the journal has become long.
    pub(super) fn take_checkpoint(&mut self, out: &mut Vec<Action>) {
        let Checkpoints { base_bytes, behind_bytes, underway } = &self.checkpoints;
        let long = self.settings.journal_bytes.max(base_bytes.saturating_mul(TIMES));
        if self.has_failed || underway.is_some() || *behind_bytes < long {
            return;
        }
        let records = self.checkpoint();
        let bytes = records.len() as u64;
        self.checkpoints.underway = Some(Underway { bytes, behind: Vec::new() });
        out.push(Action::Checkpoint { first: self.last + 1, records });
        if is_planted(Plant::JournalCutEarly) {
            self.checkpointed(true, out);
        }
    }

    /// A checkpoint is on its device, or could not be written.
    pub(super) fn checkpointed(&mut self, is_durable: bool, out: &mut Vec<Action>) {
        let Some(Underway { bytes, behind }) = self.checkpoints.underway.take() else { return };
        self.checkpoints.behind_bytes = behind.len() as u64;
        // One that could not be written is tried again when the journal has become as long once more.
        if is_durable {
            self.checkpoints.base_bytes = bytes;
            out.push(Action::Supersede { upto: self.last, records: behind });
        }
    }

    /// The state as records, numbered from 1: names, opens and pointers, and the answers of sessions.
    fn checkpoint(&self) -> Vec<u8> {
        let mut records = Records::default();
        let answers = self.sessions.answers().chain(self.unwritten());
        for (session, request, answer) in answers {
            if !is_planted(Plant::CheckpointWithoutAnswers) {
                records.push(Some((session, request)), answer.clone(), Vec::new());
            }
        }
        let mut changes = Vec::new();
        self.names.history(self.last, &mut |change: Change| {
            changes.push(change);
            if changes.len() == CHANGES {
                records.push(None, Message::Done, std::mem::take(&mut changes));
            }
        });
        if !changes.is_empty() {
            records.push(None, Message::Done, changes);
        }
        records.bytes
    }

    /// Answers whose records are in the checkpoint and were not written before it.
    fn unwritten(&self) -> impl Iterator<Item = (SessionId, Request, &Message)> + '_ {
        let changed =
            self.waiting.iter().filter(|it| it.is_change && self.sessions.has(it.session));
        changed.map(|Waiting { session, request, message, .. }| (*session, *request, message))
    }
}

/// Records in the making.
#[derive(Default)]
struct Records {
    bytes: Vec<u8>,
    last: u64,
}

impl Records {
    fn push(&mut self, asked: Option<(SessionId, Request)>, answer: Message, changes: Vec<Change>) {
        self.last += 1;
        let record = Record { sequence: self.last, asked, answer, changes };
        self.bytes.extend(record.encode(self.last - 1));
    }
}
