//! Requests of clients: each goes through its blocks one after the other, in the order of its view, and
//! waits where one must be fetched or where memory is short. Its claim on the stripes lasts until its end,
//! so nobody sees a part of it.

use super::blocks::{Block, Key};
use super::events::{Action, Place};
use super::grants::Cover;
use super::runs::Run;
use super::{CacheManager, Pause};
use crate::plant::{Plant, is_planted};
use crate::serving::{self, Needs, Operation, Subfile};
use crate::{
    Buffer, Code, Division, Inode, Layout, Message, Peer, PeerAction, Portion, Request, SessionId,
};
use iolab_pattern::Nest;
use iolab_policy::write_policy::catalog::Answer;
use iolab_vocab::{Extent, Nanos};
use std::collections::BTreeMap;

/// What is done for a request.
#[derive(Debug)]
pub(super) enum Work {
    Write {
        subfile: Subfile,
        portion: Portion,
        span: Extent,
        buffer: Buffer,
        /// How far it is: in the view, and in the buffer.
        at: u64,
        taken: u64,
    },
    Read {
        subfile: Subfile,
        portion: Portion,
        at: u64,
        taken: u64,
        /// How long the subfile is at least, by blocks that may be gone when the last one is read.
        end: u64,
    },
    /// First others come to an end and servers get what they do not have, then the blocks are cut, then
    /// everybody waits for [`Work::Resume`].
    Resize {
        subfile: Subfile,
        bytes: u64,
    },
    Resume {
        inode: Inode,
    },
    Sync {
        subfile: Subfile,
    },
}

impl serving::Work for Work {
    fn needs(&self) -> Option<Needs> {
        Some(match self {
            Work::Write { subfile, portion, span, .. } => {
                Needs::stripes(*subfile, portion.division, *span, true)
            }
            Work::Read { subfile, portion, .. } => {
                let span = portion.span().unwrap_or(Extent::new(0, 0));
                Needs::stripes(*subfile, portion.division, span, false)
            }
            Work::Resize { subfile, .. } => Needs::all_of(*subfile, true),
            Work::Sync { subfile } => Needs::nothing_of(*subfile),
            Work::Resume { .. } => return None,
        })
    }
}

/// What a portion has of one block.
struct Part {
    key: Key,
    /// Of the block.
    bytes: u32,
    /// Where the block begins in the subfile.
    place: u64,
    from: u64,
    to: u64,
}

/// How many blocks a read fetches ahead of the one that it needs next.
const AHEAD: usize = 4;
/// A block has at least so many bytes for each run that is remembered of it: a run takes eight.
const BYTES_PER_RUN: u32 = 16;

impl CacheManager {
    /// What is to be done for a request; or its answer, if there is one at once.
    pub(super) fn work_of(
        &mut self,
        id: SessionId,
        message: Message,
        payload: Option<(Buffer, u64)>,
        out: &mut Vec<Action>,
    ) -> Result<Work, Message> {
        let message = match self.serving.views(id, message) {
            Ok(answer) => return Err(answer),
            Err(message) => message,
        };
        let managers = self.settings.managers();
        let work = match message {
            Message::Ping => return Err(Message::Pong),
            Message::Count => return Err(Message::Counts(self.counts())),
            Message::Discard { inode } => return Err(self.discard(inode, out)),
            Message::Write(access) => {
                let over = |layout: Layout| managers.divide(layout);
                let (subfile, portion, layout) = self.serving.portion(id, access, over)?;
                let (buffer, span) = serving::payload_of(&portion, payload)?;
                self.check_there(subfile)?;
                self.know(subfile, layout)?;
                Work::Write { subfile, at: portion.from, taken: 0, portion, span, buffer }
            }
            Message::Read(access) => {
                let over = |layout: Layout| managers.divide(layout);
                let (subfile, portion, layout) = self.serving.portion(id, access, over)?;
                serving::check_read(&portion)?;
                self.check_there(subfile)?;
                self.know(subfile, layout)?;
                Work::Read { subfile, at: portion.from, taken: 0, end: 0, portion }
            }
            Message::Measure { inode, subfile } => {
                let subfile = Subfile { inode, index: subfile };
                self.check_there(subfile)?;
                return Err(Message::End { bytes: self.length(subfile) });
            }
            Message::Resize { inode, subfile, bytes, .. } => {
                Work::Resize { subfile: Subfile { inode, index: subfile }, bytes }
            }
            Message::Resume { inode, .. } => return Ok(Work::Resume { inode }),
            Message::Sync { inode, subfile } => {
                Work::Sync { subfile: Subfile { inode, index: subfile } }
            }
            _ => {
                return Err(Message::failed(Code::UNSUPPORTED, "a cache manager does not do that"));
            }
        };
        if let Work::Resize { subfile, .. } | Work::Sync { subfile } = &work {
            self.check_there(*subfile)?;
        }
        Ok(work)
    }

    fn check_there(&self, subfile: Subfile) -> Result<(), Message> {
        match self.serving.subfiles.is_discarded(subfile.inode) {
            true => Err(Message::failed(Code::STALE, "the file was removed")),
            false => Ok(()),
        }
    }

    /// Which manager has what of a file.
    fn divide(&self, layout: Layout) -> Division {
        self.settings.managers().divide(layout)
    }

    /// How long its part of a file is at least: what servers have beyond that, they tell themselves.
    fn length(&self, subfile: Subfile) -> u64 {
        let division = self.files.get(&subfile.inode).map(|file| self.divide(file.layout));
        let mut blocks = self.blocks.of_file(subfile.inode).rev();
        let last = blocks.find(|(_, block)| block.end > 0);
        let here = division
            .zip(last)
            .map(|(division, (key, block))| division.place_of(key.1) + u64::from(block.end));
        self.serving.subfiles.at_least(subfile).max(here.unwrap_or(0))
    }

    /// Goes on with a job as far as possible.
    pub(super) fn act(&mut self, now: Nanos, operation: Operation, out: &mut Vec<Action>) {
        match self.serving.job(operation) {
            Some(Work::Write { .. }) => self.write(now, operation, out),
            Some(Work::Read { .. }) => self.read(now, operation, out),
            Some(&mut Work::Resize { subfile, .. }) => self.resize(now, operation, subfile, out),
            Some(&mut Work::Sync { subfile }) => self.sync(operation, subfile, out),
            Some(Work::Resume { .. }) | None => {}
        }
    }

    /// What a portion has of the block where byte `at` of its view lies.
    fn part(&self, subfile: Subfile, portion: &Portion, at: u64) -> Option<Part> {
        let piece = portion.behind(at).pieces().next()?;
        let within = portion.view.at(piece.from)? - piece.stripe.offset;
        let before = within / self.settings.block_bytes * self.settings.block_bytes;
        let base = piece.stripe.offset + before;
        let end = piece.stripe.end().min(base.saturating_add(self.settings.block_bytes));
        let to = portion.view.rank(end).map_or(piece.to, |to| to.min(piece.to));
        let (bytes, place) = ((end - base) as u32, piece.place + before);
        Some(Part { key: (subfile.inode, base), bytes, place, from: piece.from, to })
    }

    fn write(&mut self, now: Nanos, operation: Operation, out: &mut Vec<Action>) {
        let Some(Work::Write { subfile, portion, buffer, at, taken, .. }) =
            self.serving.job(operation)
        else {
            return;
        };
        let (subfile, portion, buffer) = (*subfile, portion.clone(), *buffer);
        let (mut from, mut done) = (*at, *taken);
        while let Some(part) = self.part(subfile, &portion, from) {
            let is_on =
                self.write_part(now, operation, (subfile, &portion), &part, (buffer, done), out);
            if let Some(Work::Write { at, taken, .. }) = self.serving.job(operation) {
                (*at, *taken) = (from, done);
            }
            if !is_on {
                return;
            }
            (from, done) = (part.to, done + (part.to - part.from));
        }
        self.written(operation, (subfile, &portion), out);
    }

    /// All of a request is in its blocks: it is answered, or first servers get them, as the write policy says.
    fn written(
        &mut self,
        operation: Operation,
        (subfile, portion): (Subfile, &Portion),
        out: &mut Vec<Action>,
    ) {
        let mut wanted = BTreeMap::new();
        if self.settings.write_policy.answer == Answer::Saved && !is_planted(Plant::AnsweredUnsaved)
        {
            let mut from = portion.from;
            while let Some(Part { key, to, .. }) = self.part(subfile, portion, from) {
                let block = self.blocks.get(key).filter(|block| block.is_unsaved());
                wanted.extend(block.map(|block| over(key, block)));
                from = to;
            }
        }
        match wanted.is_empty() {
            true => self.end(operation, Message::Done, None, out),
            false => drop(self.syncs.insert(operation, wanted)),
        }
    }

    /// Writes a part of a request to its block; false if it has to wait.
    fn write_part(
        &mut self,
        now: Nanos,
        operation: Operation,
        (subfile, portion): (Subfile, &Portion),
        part: &Part,
        (buffer, taken): (Buffer, u64),
        out: &mut Vec<Action>,
    ) -> bool {
        let &Part { key, bytes, place, from, to } = part;
        let is_unsaved = self.blocks.get(key).is_some_and(|block| block.is_unsaved());
        let has_room = is_unsaved || self.blocks.takes_dirt(bytes);
        let is_there = self.blocks.get(key).is_some();
        if !has_room || !(is_there || self.blocks.take(key, bytes, out)) {
            self.waiting.push_back(operation);
            return false;
        }
        let cut = portion.view.cut(from, to);
        let Some(block) = self.blocks.get(key) else { return false };
        let runs = block.have.count() as u64 + cut.run_count();
        if runs > u64::from((bytes / BYTES_PER_RUN).max(2)) && !block.is_whole() {
            // Nobody keeps a list of so many runs; with what is missing it is one.
            self.fetch(now, key, Some(operation), out);
            return false;
        }
        let number = block.number;
        match self.cover(now, operation, key, out) {
            Cover::Granted => {}
            Cover::Waits => return false,
            Cover::Refused(code) => {
                self.fail(operation, (code, "a server has no room for it"), out);
                return false;
            }
        }
        let more = u32::from(is_planted(Plant::RunTooLong));
        let run = |run: Extent| {
            let from = (run.offset - key.1) as u32;
            (from, (from + run.length as u32 + more).min(bytes))
        };
        let hull = hull(&portion.view, key.1, from, to);
        self.blocks.wrote(now, key, cut.runs().map(run), hull);
        self.blocks.touch(key);
        self.serving.subfiles.reaches(subfile, place + u64::from(hull.1));
        let to = Place { block: number, base: key.1, view: portion.view.clone(), from, to };
        out.push(Action::Scatter { from: buffer, at: taken, to });
        true
    }

    fn read(&mut self, now: Nanos, operation: Operation, out: &mut Vec<Action>) {
        let Some(Work::Read { subfile, portion, at, taken, end }) = self.serving.job(operation)
        else {
            return;
        };
        let (subfile, portion) = (*subfile, portion.clone());
        let (mut from, mut done, mut there) = (*at, *taken, *end);
        while let Some(part) = self.part(subfile, &portion, from) {
            let Part { key, from: first, to, .. } = part;
            if !self.is_here(&portion, &part) {
                if let Some(Work::Read { at, taken, end, .. }) = self.serving.job(operation) {
                    (*at, *taken, *end) = (from, done, there);
                }
                return self.fetch_for(now, operation, (subfile, &portion), part, out);
            }
            let Some(block) = self.blocks.get(key) else { return };
            if block.end > 0 {
                there = there.max(part.place + u64::from(block.end));
            }
            let view = portion.view.clone();
            let place = Place { block: block.number, base: key.1, view, from: first, to };
            out.push(Action::Gather { operation, from: place });
            self.blocks.touch(key);
            self.counts.reads += 1;
            (from, done) = (to, done + (to - first));
        }
        // What lies before the end of its part of the file, and nobody has written, is zeros.
        let end = portion.data_end(there.max(self.length(subfile)));
        let bytes = if end == portion.to { done } else { portion.before(end).bytes() };
        self.end(operation, Message::Data { end }, Some(bytes), out);
    }

    /// Whether all bytes of a part are in memory.
    fn is_here(&self, portion: &Portion, part: &Part) -> bool {
        let Some(block) = self.blocks.get(part.key) else { return false };
        let run = |run: Extent| {
            let from = (run.offset - part.key.1) as u32;
            (from, from + run.length as u32)
        };
        block.have.covers(hull(&portion.view, part.key.1, part.from, part.to))
            || portion.view.cut(part.from, part.to).runs().all(|each| block.have.covers(run(each)))
    }

    /// Fetches the block that a read needs next, and some behind it while there is memory.
    fn fetch_for(
        &mut self,
        now: Nanos,
        operation: Operation,
        (subfile, portion): (Subfile, &Portion),
        next: Part,
        out: &mut Vec<Action>,
    ) {
        let is_there = self.blocks.get(next.key).is_some();
        if !is_there && !self.blocks.take(next.key, next.bytes, out) {
            return self.waiting.push_back(operation);
        }
        self.counts.misses += 1;
        self.fetch(now, next.key, Some(operation), out);
        let mut from = next.to;
        for _ in 0..AHEAD {
            let Some(part) = self.part(subfile, portion, from) else { return };
            if self.blocks.get(part.key).is_none() {
                if !self.blocks.take(part.key, part.bytes, out) {
                    return;
                }
                self.fetch(now, part.key, None, out);
            }
            from = part.to;
        }
    }

    /// A job is over; its answer goes out, with so many of the bytes that were gathered for it.
    pub(super) fn end(
        &mut self,
        operation: Operation,
        message: Message,
        bytes: Option<u64>,
        out: &mut Vec<Action>,
    ) {
        let to = self.answer(operation, &message);
        let is_read = matches!(self.serving.job(operation), Some(Work::Read { .. }));
        let payload = bytes.filter(|&bytes| bytes > 0).map(|bytes| (operation, bytes));
        if is_read && (payload.is_none() || to.is_none()) {
            out.push(Action::Forget { operation });
        }
        if let Some((peer, request)) = to {
            out.push(Action::Peer(PeerAction::Reply { peer, request, message, payload }));
        }
        if let Some(Work::Write { buffer, .. }) = self.serving.leave(operation) {
            out.push(Action::Release { buffer });
        }
    }

    /// A job cannot go on.
    pub(super) fn fail(
        &mut self,
        operation: Operation,
        (code, text): (Code, &str),
        out: &mut Vec<Action>,
    ) {
        self.end(operation, Message::failed(code, text), None, out);
    }

    fn answer(&mut self, operation: Operation, message: &Message) -> Option<(Peer, Request)> {
        let work = self.serving.job(operation);
        let is_change =
            matches!(work, Some(Work::Write { .. } | Work::Resize { .. } | Work::Resume { .. }));
        self.serving.answer(operation, message, is_change)
    }

    /// Cuts a file once servers have all of it, as one of them may not be able to cut: then everybody sees what
    /// was written last. Nobody writes meanwhile.
    fn resize(
        &mut self,
        now: Nanos,
        operation: Operation,
        subfile: Subfile,
        out: &mut Vec<Action>,
    ) {
        let wanted = self.unsaved(subfile);
        if wanted.is_empty() || is_planted(Plant::CutUnsaved) {
            return self.hold(now, operation, subfile, out);
        }
        self.syncs.insert(operation, wanted);
    }

    /// Cuts a file once nothing is asked of servers about it; until then they are asked nothing new.
    fn hold(&mut self, now: Nanos, operation: Operation, subfile: Subfile, out: &mut Vec<Action>) {
        if let Some(file) = self.files.get_mut(&subfile.inode) {
            file.is_held = true;
            self.blocks.keep_from_servers(subfile.inode, true);
            if file.in_flight > 0 && !is_planted(Plant::CutWhileFetching) {
                file.cutting = Some(operation);
                return;
            }
        }
        self.cut(now, operation, out);
    }

    /// Nothing of a file is under way: what lies behind its new end goes.
    pub(super) fn cut(&mut self, now: Nanos, operation: Operation, out: &mut Vec<Action>) {
        let Some(&mut Work::Resize { subfile, bytes }) = self.serving.job(operation) else {
            return;
        };
        let Some(id) = self.serving.session_of(operation) else {
            // Nobody would ever let the others go on.
            return self.let_go(subfile.inode, operation);
        };
        if let Some(file) = self.files.get(&subfile.inode) {
            let division = self.divide(file.layout);
            let kept = |key: Key| bytes.saturating_sub(division.place_of(key.1));
            let of_file = self.blocks.of_file(subfile.inode);
            let cut = of_file.filter(|(key, block)| kept(*key) < u64::from(block.bytes));
            for (key, at) in cut.map(|(key, _)| (key, kept(key) as u32)).collect::<Vec<_>>() {
                self.blocks.cut(key, at, out);
                self.check_syncs(now, key, out);
            }
        }
        self.serving.subfiles.resized(subfile, bytes, false);
        self.is_room_new = true;
        let until = now.after(self.settings.serving.session_timeout);
        self.pauses.push(Pause { session: id, inode: subfile.inode, operation, until });
        if let Some((peer, request)) = self.answer(operation, &Message::Done) {
            out.push(Action::Peer(PeerAction::reply(peer, request, Message::Done)));
        }
    }

    /// Servers have the new length, or the client gave up: others go on.
    pub(super) fn resume(&mut self, id: SessionId, operation: Operation, out: &mut Vec<Action>) {
        let Some(&mut Work::Resume { inode }) = self.serving.job(operation) else { return };
        let own = |pause: &Pause| (pause.session, pause.inode) == (id, inode);
        let Some(at) = self.pauses.iter().position(own) else {
            let why = "others went on with the file before it had its new length";
            return self.fail(operation, (Code::SESSION_LOST, why), out);
        };
        let pause = self.pauses.swap_remove(at);
        self.let_go(inode, pause.operation);
        self.end(operation, Message::Done, None, out);
    }

    /// Waits until servers have what clients have written to a file until now.
    fn sync(&mut self, operation: Operation, subfile: Subfile, out: &mut Vec<Action>) {
        let wanted = self.unsaved(subfile);
        if wanted.is_empty() || is_planted(Plant::SyncWithoutFlush) {
            return self.end(operation, Message::Done, None, out);
        }
        self.syncs.insert(operation, wanted);
    }

    /// Blocks of a file that servers do not have as they are, and how many flushes of each must be over.
    fn unsaved(&self, subfile: Subfile) -> BTreeMap<Key, u64> {
        self.blocks.unsaved(subfile.inode).map(|(key, block)| over(key, block)).collect()
    }

    /// A block has changed that syncs may wait for.
    pub(super) fn check_syncs(&mut self, now: Nanos, key: Key, out: &mut Vec<Action>) {
        let block = self.blocks.get(key);
        let is_over = |&target: &u64| {
            block.is_none_or(|block| {
                block.flush.is_none() && (block.dirty.is_none() || block.flushes >= target)
            })
        };
        let mut over = Vec::new();
        for (&operation, wanted) in &mut self.syncs {
            if wanted.get(&key).is_some_and(is_over) {
                wanted.remove(&key);
                over.extend(wanted.is_empty().then_some(operation));
            }
        }
        for operation in over {
            self.syncs.remove(&operation);
            match self.serving.job(operation) {
                Some(&mut Work::Resize { subfile, .. }) => self.hold(now, operation, subfile, out),
                _ => self.end(operation, Message::Done, None, out),
            }
        }
    }
}

/// How many flushes of a block must be over until servers have what it has now: what is flushed right now may be
/// older than what there is to flush.
fn over(key: Key, block: &Block) -> (Key, u64) {
    (key, block.flushes + u64::from(block.dirty.is_some()))
}

/// The range of a block from the first to the last byte that a view has of it in `[from, to)`.
fn hull(view: &Nest, base: u64, from: u64, to: u64) -> Run {
    let at = |y| (view.at(y).expect("a part lies in its view") - base) as u32;
    (at(from), at(to - 1) + 1)
}
