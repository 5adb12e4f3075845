//! When the journal begins anew, and with what: a *checkpoint*, the state as the records of a short history.
//!
//! The driver writes it beside the journal while records go on to that; once it is on its device, it takes the
//! journal's place, with the records that have come meanwhile. So whatever crashes, and whenever, one of the
//! two is there, and it has everything.
//!
//! Promises: a journal is at most three times as long as the state that it tells of, or the length from the settings
//! longer than that; so a new life reads as much. Costs: a pass over all names for each checkpoint, in slices
//! between which requests are answered, and which are all of the instant at which it began; the records that come
//! meanwhile are kept in memory until it is written.

use super::events::Action;
use super::names::Walk;
use super::{Metadata, Waiting};
use crate::change::Change;
use crate::journal::Record;
use crate::plant::{Plant, is_planted};
use crate::{Message, Request, SessionId};
use iolab_vocab::Nanos;

/// Changes in a record of a checkpoint: those of one that is damaged are lost to who rescues.
const CHANGES: usize = 256;
/// How many times as long as the state that the journal begins with its records become, at least.
const TIMES: u64 = 2;

/// Names in a slice of the usual journal, in proportion in shorter ones, which begin anew more often. One takes
/// half a millisecond at most (2.2 s were measured for a million, without optimisation), less than a request
/// waits for a device.
const SLICE_NAMES_MAX: u64 = 256;
/// Bytes of a journal for each name of a slice.
const BYTES_FOR_NAME: u64 = (64 << 20) / SLICE_NAMES_MAX;
/// Between two slices: requests that have come are answered.
const PAUSE: Nanos = Nanos(100_000);

/// How long the journal is, and what is to be behind a checkpoint that is being written.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    /// Bytes of the state that the journal begins with.
    base_bytes: u64,
    /// Bytes of records behind it.
    behind_bytes: u64,
    /// One that is being made or written.
    underway: Option<Underway>,
}

/// A checkpoint that is being made or written.
#[derive(Debug)]
struct Underway {
    /// None once it is being written.
    making: Option<Making>,
    bytes: u64,
    /// Records since it began.
    behind: Vec<u8>,
}

/// A checkpoint of which some has been told.
#[derive(Debug)]
struct Making {
    /// The sequence of the first record behind it.
    first: u64,
    walk: Walk,
    records: Records,
    /// When it goes on.
    next_at: Nanos,
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

    /// When one that is being made goes on.
    pub(super) fn next_at(&self) -> Option<Nanos> {
        Some(self.underway.as_ref()?.making.as_ref()?.next_at)
    }

    /// Of a journal that cannot be written any more.
    pub(super) fn cancel(&mut self) {
        self.underway = None;
    }
}

impl Metadata {
    /// Goes on with a checkpoint, or begins one if the journal has become long.
    pub(super) fn take_checkpoint(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let Checkpoints { base_bytes, behind_bytes, underway } = &self.checkpoints;
        let long = self.settings.journal_bytes.max(base_bytes.saturating_mul(TIMES));
        if self.has_failed || underway.is_none() && *behind_bytes < long {
            return;
        }
        if underway.is_none() {
            self.begin_checkpoint(now);
        }
        let Some(Underway { making, bytes, .. }) = &mut self.checkpoints.underway else { return };
        let Some(Making { walk, records, next_at, .. }) =
            making.as_mut().filter(|it| it.next_at <= now)
        else {
            return;
        };
        *next_at = now.after(PAUSE);
        let slice = (self.settings.journal_bytes / BYTES_FOR_NAME).clamp(1, SLICE_NAMES_MAX);
        if !self.names.walk_on(walk, slice as usize, &mut |change| records.tell(change)) {
            return;
        }
        let Some(Making { first, records, .. }) = making.take() else { return };
        let records = records.all();
        *bytes = records.len() as u64;
        out.push(Action::Checkpoint { first, records });
        if is_planted(Plant::JournalCutEarly) {
            self.checkpointed(true, out);
        }
    }

    /// Whether names are being told for a checkpoint.
    pub fn tells_names(&self) -> bool {
        self.checkpoints.next_at().is_some()
    }

    /// A checkpoint is on its device, or could not be written.
    pub(super) fn checkpointed(&mut self, is_durable: bool, out: &mut Vec<Action>) {
        let written = self.checkpoints.underway.take_if(|underway| underway.making.is_none());
        let Some(Underway { bytes, behind, .. }) = written else { return };
        self.checkpoints.behind_bytes = behind.len() as u64;
        // One that could not be written is tried again when the journal has become as long once more.
        if is_durable {
            self.checkpoints.base_bytes = bytes;
            out.push(Action::Supersede { upto: self.last, records: behind });
        }
    }

    /// Begins with the state as records, numbered from 1: the answers of sessions, opens of what has no name,
    /// then slice by slice all names, opens and pointers.
    fn begin_checkpoint(&mut self, now: Nanos) {
        let mut records = Records::default();
        let answers = self.sessions.answers().chain(self.unwritten());
        for (session, request, answer) in answers {
            if !is_planted(Plant::CheckpointWithoutAnswers) {
                records.push(Some((session, request)), answer.clone(), Vec::new());
            }
        }
        let walk = self.names.begin_walk(self.last, &mut |change| records.tell(change));
        let making = Making { first: self.last + 1, walk, records, next_at: now };
        let underway = Underway { making: Some(making), bytes: 0, behind: Vec::new() };
        self.checkpoints.underway = Some(underway);
    }

    /// Answers whose records are in the checkpoint and were not written before it.
    fn unwritten(&self) -> impl Iterator<Item = (SessionId, Request, &Message)> + '_ {
        let changed =
            self.waiting.iter().filter(|it| it.is_change && self.sessions.has(it.session));
        changed.map(|Waiting { session, request, message, .. }| (*session, *request, message))
    }
}

/// Records in the making.
#[derive(Debug, Default)]
struct Records {
    bytes: Vec<u8>,
    last: u64,
    /// Changes that are in none yet.
    changes: Vec<Change>,
}

impl Records {
    /// One more change.
    fn tell(&mut self, change: Change) {
        self.changes.push(change);
        if self.changes.len() == CHANGES {
            let changes = std::mem::take(&mut self.changes);
            self.push(None, Message::Done, changes);
        }
    }

    /// The bytes of all.
    fn all(mut self) -> Vec<u8> {
        if !self.changes.is_empty() {
            let changes = std::mem::take(&mut self.changes);
            self.push(None, Message::Done, changes);
        }
        self.bytes
    }

    fn push(&mut self, asked: Option<(SessionId, Request)>, answer: Message, changes: Vec<Change>) {
        self.last += 1;
        let record = Record { sequence: self.last, asked, answer, changes };
        self.bytes.extend(record.encode(self.last - 1));
    }
}
