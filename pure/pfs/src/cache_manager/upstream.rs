//! What a manager asks of I/O servers: missing bytes of blocks, and to take those that were written.
//!
//! A flush writes the runs that are there; the missing bytes between a few runs are not worth asking for.
//! Of many runs they are: one question and one write instead of a write for each.

use super::CacheManager;
use super::blocks::{Flush, Key};
use super::events::{Action, Row};
use super::runs::{Run, Runs};
use crate::plant::{Plant, is_planted};
use crate::serving::Operation;
use crate::{Access, Buffer, Code, Message, Party};
use iolab_pattern::Nest;
use iolab_vocab::Nanos;
use std::collections::BTreeMap;

/// What an answer is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Errand {
    /// Nobody waits for it.
    Nobody,
    /// Missing bytes of a block.
    Fetch(Key),
    /// Room on the device of this server.
    Grant(u32),
    /// A run of a block on its way to the server.
    Flush(Key, Run),
}

/// Flushes under way at most: their requests fit the window of a link.
const FLUSHES_MAX: usize = 8;
/// Runs that a flush writes one by one.
const RUNS_MAX: usize = 8;
/// How long after a failed flush the next one begins.
const FLUSH_AGAIN: Nanos = Nanos(1_000_000_000);

impl CacheManager {
    /// Asks the server of a block, which gets the view of its file first if it does not have it.
    fn ask_server(
        &mut self,
        now: Nanos,
        (inode, base): Key,
        (from, to): Run,
        row: Option<Row>,
        errand: Errand,
        out: &mut Vec<Action>,
    ) {
        let Some(file) = self.files.get_mut(&inode) else { return };
        let (layout, view) = (file.layout, file.view);
        let subfile = layout.subfile_of(base);
        let party = Party::Server(layout.server_of(subfile, self.settings.servers));
        let link = self.links.to(party);
        if file.stored.insert(party) {
            let mut part = Vec::new();
            Nest::WHOLE_FILE.encode(&mut part);
            let (offset, total) = (0, part.len() as u32);
            let message = Message::SetView { view, inode, layout, offset, total, part };
            link.ask(now, message, None, Errand::Nobody, out);
        }
        let (from, to) = (base + u64::from(from), base + u64::from(to));
        let access = Access { view, subfile, from, to };
        let message = if row.is_some() { Message::Write(access) } else { Message::Read(access) };
        link.ask(now, message, row, errand, out);
    }

    /// Has what is missing of a block fetched, for somebody who waits for it.
    pub(super) fn fetch(
        &mut self,
        now: Nanos,
        key: Key,
        waiter: Option<Operation>,
        out: &mut Vec<Action>,
    ) {
        let begun = self.blocks.change(key, |block| {
            block.waiters.extend(waiter);
            let was_fetching = std::mem::replace(&mut block.is_fetching, true);
            (!was_fetching).then_some(block.bytes)
        });
        if let Some(Some(bytes)) = begun {
            self.counts.fetches += 1;
            self.count_in_flight(key, 1);
            self.ask_server(now, key, (0, bytes), None, Errand::Fetch(key), out);
        }
    }

    fn count_in_flight(&mut self, key: Key, more: u32) {
        if let Some(file) = self.files.get_mut(&key.0) {
            file.in_flight += more;
        }
    }

    /// A question about a file is answered: with the last of them it may be cut.
    fn answered(&mut self, now: Nanos, key: Key, out: &mut Vec<Action>) {
        let Some(file) = self.files.get_mut(&key.0) else { return };
        file.in_flight -= 1;
        if file.in_flight == 0
            && let Some(operation) = file.cutting.take()
        {
            self.cut(now, operation, out);
        }
    }

    /// Questions that will not be answered: each is as if it had failed.
    pub(super) fn unanswered(
        &mut self,
        now: Nanos,
        from: Party,
        errands: Vec<Errand>,
        code: Code,
        out: &mut Vec<Action>,
    ) {
        for errand in errands {
            let message = Message::failed(code, "");
            self.replied(now, from, errand, (message, None), out);
        }
    }

    /// A server has answered.
    pub(super) fn replied(
        &mut self,
        now: Nanos,
        from: Party,
        errand: Errand,
        (message, payload): (Message, Option<Buffer>),
        out: &mut Vec<Action>,
    ) {
        self.is_room_new = true;
        let is_unknown = matches!(message, Message::Failed { code: Code::UNKNOWN_VIEW, .. });
        let (key, run) = match errand {
            Errand::Nobody => return out.extend(payload.map(|buffer| Action::Release { buffer })),
            Errand::Grant(server) => {
                out.extend(payload.map(|buffer| Action::Release { buffer }));
                return self.granted(server, (from, message), out);
            }
            Errand::Fetch(key) => (key, None),
            Errand::Flush(key, run) => (key, Some(run)),
        };
        if is_unknown && let Some(block) = self.blocks.get(key) {
            let (number, bytes) = (block.number, block.bytes);
            if let Some(file) = self.files.get_mut(&key.0) {
                file.stored.remove(&from);
            }
            let row = run.map(|(from, to)| Row { block: number, from, to });
            return self.ask_server(now, key, run.unwrap_or((0, bytes)), row, errand, out);
        }
        match run {
            None => self.fetched(now, key, (from, message, payload), out),
            Some(_) => {
                out.extend(payload.map(|buffer| Action::Release { buffer }));
                self.flushed(now, key, (from, message), out);
            }
        }
        self.answered(now, key, out);
    }

    fn fetched(
        &mut self,
        now: Nanos,
        key: Key,
        (from, message, payload): (Party, Message, Option<Buffer>),
        out: &mut Vec<Action>,
    ) {
        let Some(block) = self.blocks.get(key) else {
            return out.extend(payload.map(|buffer| Action::Release { buffer }));
        };
        let (number, bytes) = (block.number, block.bytes);
        let data = match &message {
            Message::Data { end } => {
                let data = end.saturating_sub(key.1).min(u64::from(bytes)) as u32;
                ((data > 0) == payload.is_some()).then_some(data)
            }
            _ => None,
        };
        let planted = is_planted(Plant::FetchedOverNewer);
        let gaps = if planted { vec![(0, bytes)] } else { block.have.gaps(bytes) };
        let waiters = self.blocks.change(key, |block| {
            block.is_fetching = false;
            if let Some(data) = data {
                block.have = Runs::whole(bytes);
                block.end = block.end.max(data);
            }
            std::mem::take(&mut block.waiters)
        });
        let waiters = waiters.unwrap_or_default();
        if let Some(data) = data {
            out.push(Action::Fill { block: number, from: payload, bytes: data, runs: gaps });
            return waiters.into_iter().for_each(|operation| self.act(now, operation, out));
        }
        out.extend(payload.map(|buffer| Action::Release { buffer }));
        let (code, why) = failure(from, message);
        waiters.into_iter().for_each(|operation| self.fail(operation, (code, &why), out));
        match self.blocks.get(key).is_some_and(|block| block.have.is_empty()) {
            true => self.blocks.free(key, out),
            // Perhaps it was fetched to be flushed.
            false => self.flush_failed(now, key, (code, &why), out),
        }
    }

    /// Brings to servers what is due, as much at a time as may be under way.
    pub(super) fn flush_due(&mut self, now: Nanos, out: &mut Vec<Action>) {
        if self.flush_again_at.is_some_and(|at| now < at) {
            return;
        }
        self.flush_again_at = None;
        while self.flushing < FLUSHES_MAX
            && let Some(key) = self.next_flush(now)
        {
            self.flush(now, key, out);
        }
    }

    /// The block to be flushed next: one that a sync waits for; else one that the write policy chooses, which must
    /// choose one if memory or room is wanted.
    fn next_flush(&mut self, now: Nanos) -> Option<Key> {
        let is_free = |key: &Key| self.files.get(&key.0).is_some_and(|file| !file.is_held);
        let may = |key: &Key| {
            let block = self.blocks.get(*key);
            let is_ready = block.is_some_and(|block| {
                block.dirty.is_some() && block.flush.is_none() && !block.is_fetching
            });
            is_ready && is_free(key)
        };
        let mut wanted = self.syncs.values().flat_map(BTreeMap::keys);
        if let Some(&key) = wanted.find(|key| may(key)) {
            return Some(key);
        }
        let is_wanted = !self.waiting.is_empty() || self.blocks.grants.is_short();
        self.blocks.next_flush(now, self.is_ending || is_wanted)
    }

    fn flush(&mut self, now: Nanos, key: Key, out: &mut Vec<Action>) {
        let Some(block) = self.blocks.get(key) else { return };
        let Some(hull) = block.dirty else { return };
        let number = block.number;
        let runs: Vec<Run> = block.have.within(hull).take(RUNS_MAX + 1).collect();
        if runs.len() > RUNS_MAX {
            return self.fetch(now, key, None, out);
        }
        self.blocks.change(key, |block| {
            block.dirty = None;
            block.flushes += 1;
            block.flush = Some(Flush { hull, pending: runs.len() as u32 });
        });
        self.flushing += 1;
        self.counts.flushes += 1;
        for run in runs {
            self.count_in_flight(key, 1);
            let row = Some(Row { block: number, from: run.0, to: run.1 });
            self.ask_server(now, key, run, row, Errand::Flush(key, run), out);
        }
    }

    fn flushed(
        &mut self,
        now: Nanos,
        key: Key,
        (from, message): (Party, Message),
        out: &mut Vec<Action>,
    ) {
        let failed = match message {
            Message::Done => None,
            // The file is no more, and what was written to it has no place to go.
            Message::Failed { code: Code::STALE, .. } => None,
            message => Some(failure(from, message)),
        };
        let is_over = self.blocks.change(key, |block| {
            let Flush { hull, pending } = block.flush.as_mut()?;
            *pending -= 1;
            let hull = *hull;
            if failed.is_some() {
                let all = |other: Run| (other.0.min(hull.0), other.1.max(hull.1));
                block.dirty = Some(block.dirty.map_or(hull, all));
            }
            if block.flush.as_ref()?.pending > 0 {
                return None;
            }
            block.flush = None;
            Some(())
        });
        self.flushing -= usize::from(is_over == Some(Some(())));
        match failed {
            Some((code, why)) => self.flush_failed(now, key, (code, &why), out),
            None => self.check_syncs(now, key, out),
        }
    }

    /// A server did not take what it should: who waits for that, or for memory, is told. The data stays, and
    /// the next flush tries again.
    fn flush_failed(&mut self, now: Nanos, key: Key, why: (Code, &str), out: &mut Vec<Action>) {
        self.flush_again_at = Some(now.after(FLUSH_AGAIN));
        let mut waiting: Vec<Operation> = self.waiting.drain(..).collect();
        waiting.extend(self.give_up_grants(key));
        let of_block = self.syncs.iter().filter(|(_, wanted)| wanted.contains_key(&key));
        let syncs: Vec<Operation> = of_block.map(|(&operation, _)| operation).collect();
        for operation in waiting.into_iter().chain(syncs) {
            self.syncs.remove(&operation);
            self.fail(operation, why, out);
        }
    }
}

/// What a server's failure, or an answer that is none, comes to for those who wait.
pub(super) fn failure(from: Party, message: Message) -> (Code, String) {
    match message {
        Message::Failed { code, text } if text.is_empty() => (code, format!("{from}: {code}")),
        Message::Failed { code, text } => (code, format!("{from}: {text}")),
        _ => (Code::BAD_MESSAGE, format!("{from} answered something else")),
    }
}
