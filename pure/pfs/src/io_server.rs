//! An I/O server: subfiles on one device directory, and the views that clients have stored.
//!
//! Promises: what one request does within one stripe happens at one instant (requests that touch the same
//! stripes, one of them writing, go one after the other, in the order in which they came); a request that
//! changes something is carried out at most once in a life of the server; every request gets one reply on
//! the connection that its session has then. Files whose home it is have their groups here. After a sync
//! that failed, nobody knows what the device still has of what was written: this life writes and syncs nothing
//! any more, so that nobody is told otherwise.
//!
//! Costs: O(log n) in sessions, views and operations under way for each request, and a look at each stripe
//! of its portion. Memory: that of [`Settings`] for each session, and a length for each subfile that was
//! used lately.

mod commits;
mod events;
mod groups;
mod holds;
mod room;
mod sums;

pub use crate::serving::{Operation, Settings as ServingSettings, Subfile};
pub use events::{Action, Event, Outcome};
pub use sums::{PAGE_BYTES, Summing};

use crate::plant::{Plant, is_planted};
use crate::serving::{self, Admission, Needs, Serving, TOO_MANY};
use crate::{
    Buffer, Code, Division, HoldNumber, Message, Peer, PeerAction, PeerEvent, Portion, Request,
    SessionId,
};
use commits::{Commits, FAILED};
use groups::{Arrival, Groups, Reply};
use holds::{Holds, Released, Taken};
use iolab_policy::Machine;
use iolab_vocab::{Direction, Extent, Nanos};
use room::{Room, Wanted};
use sums::Sums;

/// How much of its device a server may use, and whose limit that is: what is told to who meets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many bytes were set aside for the file system.
    Capacity(u64),
    /// So many bytes are its user's.
    Quota(u64),
}

impl Limit {
    /// The part of each of so many servers.
    pub fn shared(self, servers: u32) -> Limit {
        match self {
            Limit::Capacity(bytes) => Limit::Capacity(bytes / u64::from(servers)),
            Limit::Quota(bytes) => Limit::Quota(bytes / u64::from(servers)),
        }
    }

    /// How many.
    pub fn bytes(self) -> u64 {
        match self {
            Limit::Capacity(bytes) | Limit::Quota(bytes) => bytes,
        }
    }
}

/// What a server is built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Towards those who ask.
    pub serving: ServingSettings,
    /// How much of its device it may use, if not all.
    pub limit: Option<Limit>,
    /// The sums that its device has of what was written, if any.
    pub summing: Option<Summing>,
}

impl Settings {
    /// As all servers, on all of the device, without sums.
    pub fn usual() -> Settings {
        Settings { serving: ServingSettings::usual(), limit: None, summing: None }
    }
}

/// The I/O server machine.
#[derive(Debug)]
pub struct IoServer {
    serving: Serving<Work>,
    groups: Groups,
    holds: Holds,
    commits: Commits,
    room: Room,
    sums: Sums,
    /// What its device could not sync with.
    failed: Option<Code>,
    /// The wish to be woken that stands.
    woken_at: Option<Nanos>,
}

/// What the device does for a request.
#[derive(Debug)]
enum Work {
    Write {
        subfile: Subfile,
        portion: Portion,
        span: Extent,
        buffer: Buffer,
        /// It waits to hear whether there is room for it.
        asks_room: bool,
        /// It waits until the sums of its pages are struck out.
        strikes: bool,
    },
    /// First how long the subfile is, if that is not known; then what lies before its end.
    Read {
        subfile: Subfile,
        portion: Portion,
        end: u64,
        bytes: u64,
    },
    Measure {
        subfile: Subfile,
    },
    Resize {
        subfile: Subfile,
        bytes: u64,
        extends: bool,
        /// The same.
        strikes: bool,
    },
    Sync {
        subfile: Subfile,
    },
    /// Space that is kept for somebody who will write a block.
    Grant {
        subfile: Subfile,
        block: Extent,
        wanted: Wanted,
    },
    Discard,
    /// Pages that nobody writes get their sums: nobody has asked for it.
    Sum {
        subfile: Subfile,
        pages: Extent,
    },
}

impl IoServer {
    /// A server in a new life: it knows no session.
    pub fn new(settings: Settings) -> IoServer {
        IoServer {
            serving: Serving::new(settings.serving),
            groups: Groups::default(),
            holds: Holds::default(),
            commits: Commits::default(),
            room: Room::of(settings.limit),
            sums: Sums::of(settings.summing),
            failed: None,
            woken_at: None,
        }
    }

    /// Who waits for an operation of the device, and for which reply.
    pub fn asker(&self, operation: Operation) -> Option<(Peer, Request)> {
        self.serving.asker(operation)
    }

    fn asked(
        &mut self,
        now: Nanos,
        peer: Peer,
        request: Request,
        message: Message,
        payload: Option<(Buffer, u64)>,
        out: &mut Vec<Action>,
    ) {
        let reply = |message| Action::Peer(PeerAction::reply(peer, request, message));
        let id = match self.serving.admit(peer, request) {
            Admission::Taken(id) => id,
            Admission::Ignored => return release(payload, out),
            Admission::Repeated(answer) => {
                release(payload, out);
                return out.push(reply(answer));
            }
            Admission::TooMany => {
                release(payload, out);
                return self.drop_peer(now, peer, TOO_MANY, out);
            }
        };
        let is_write = matches!(message, Message::Write(_));
        let work = match self.work_of(now, (id, request), message, payload, out) {
            Ok(work) => work,
            Err(answer) => {
                release(payload, out);
                return out.extend(answer.map(reply));
            }
        };
        if !is_write {
            release(payload, out);
        }
        let subfile = work.subfile();
        if subfile.is_some_and(|subfile| self.serving.subfiles.is_discarded(subfile.inode)) {
            if is_write {
                release(payload, out);
            }
            return out.push(reply(Message::failed(Code::STALE, "the file was removed")));
        }
        self.serving.begin(id, request, work);
    }

    /// What is to be done for a request; or its answer, if there is one at once.
    fn work_of(
        &mut self,
        now: Nanos,
        (id, request): (SessionId, Request),
        message: Message,
        payload: Option<(Buffer, u64)>,
        out: &mut Vec<Action>,
    ) -> Result<Work, Option<Message>> {
        let message = match self.serving.views(id, message) {
            Ok(answer) => return Err(Some(answer)),
            Err(message) => message,
        };
        match message {
            Message::Ping => Err(Some(Message::Pong)),
            Message::Count => Err(Some(Message::Damage { pages: self.sums.damaged_pages() })),
            Message::Write(_) | Message::Resize { .. } | Message::Sync { .. }
                if let Some(code) = self.failed =>
            {
                Err(Some(Message::failed(code, FAILED)))
            }
            Message::Write(access) => {
                let (subfile, portion, _) = self.serving.portion(id, access, Division::from)?;
                let (buffer, span) = serving::payload_of(&portion, payload)?;
                Ok(Work::Write { subfile, portion, span, buffer, asks_room: false, strikes: false })
            }
            Message::Read(access) => {
                let (subfile, portion, _) = self.serving.portion(id, access, Division::from)?;
                serving::check_read(&portion)?;
                Ok(Work::Read { subfile, end: portion.from, portion, bytes: 0 })
            }
            Message::Measure { inode, subfile } => {
                let subfile = Subfile { inode, index: subfile };
                match self.serving.subfiles.length(subfile) {
                    Some(bytes) => Err(Some(Message::End { bytes })),
                    None => Ok(Work::Measure { subfile }),
                }
            }
            Message::Resize { inode, subfile, bytes, extends } => {
                let subfile = Subfile { inode, index: subfile };
                Ok(Work::Resize { subfile, bytes, extends, strikes: false })
            }
            Message::Sync { inode, subfile } => {
                Ok(Work::Sync { subfile: Subfile { inode, index: subfile } })
            }
            Message::Grant { inode, subfile, from, to, taken, bytes, more } => {
                let subfile = Subfile { inode, index: subfile };
                Ok(room::wish(subfile, (from, to), Wanted { taken, bytes, more })?)
            }
            Message::Hold { hold, inode, subfile, from, to, excludes } => {
                let subfile = Subfile { inode, index: subfile };
                let range = Extent::new(from, to.saturating_sub(from));
                let wish = holds::Wish { number: hold, subfile, range, excludes };
                if self.serving.subfiles.is_discarded(inode) {
                    return Err(Some(Message::failed(Code::STALE, "the file was removed")));
                }
                Err(match self.holds.take(id, request, wish) {
                    Taken::Stands => Some(Message::Done),
                    Taken::Waits => {
                        self.serving.waits(id, request);
                        None
                    }
                    Taken::Refused => Some(Message::failed(Code::NO_MEMORY, "too many holds")),
                })
            }
            Message::Release { hold, inode, subfile } => {
                let subfile = Subfile { inode, index: subfile };
                Err(Some(self.release(id, request, (hold, subfile), out)))
            }
            Message::Discard { inode } => match self.serving.subfiles.is_used(inode) {
                true => {
                    Err(Some(Message::failed(Code::BUSY, "requests on the file are under way")))
                }
                false => {
                    self.serving.subfiles.discard(inode);
                    self.commits.forget(inode);
                    self.sums.forget(inode);
                    let operation = self.serving.begin(id, request, Work::Discard);
                    out.push(Action::Discard { operation, inode });
                    Err(None)
                }
            },
            Message::Arrive { group, size, rank, sequence, result, previous, last } => {
                let arrival = Arrival { group, size, rank, sequence, result, previous, last };
                let mut replies = Vec::new();
                let wait = self.serving.settings.session_timeout;
                self.groups.arrive(now, wait, (id, request), arrival, &mut replies);
                self.reply_all(replies, out);
                Err(None)
            }
            _ => Err(Some(Message::failed(Code::UNSUPPORTED, "an I/O server does not do that"))),
        }
    }

    /// Asks the device for what a job needs next.
    fn act(&mut self, operation: Operation, out: &mut Vec<Action>) {
        if self.asks_for_room(operation, out) {
            return;
        }
        let Some(work) = self.serving.job(operation) else { return };
        match work {
            Work::Write { .. } | Work::Resize { .. } => self.change(operation, out),
            &mut Work::Grant { subfile, block, .. } => {
                let extents = if block.is_empty() { Vec::new() } else { vec![block] };
                out.push(Action::Room { operation, subfile, extents });
            }
            Work::Read { subfile, .. } | Work::Measure { subfile } => {
                let subfile = *subfile;
                match self.serving.subfiles.length(subfile) {
                    Some(length) => self.measured(operation, length, out),
                    None => out.push(Action::Measure { operation, subfile }),
                }
            }
            &mut Work::Sum { subfile, .. } => self.sum(operation, subfile, out),
            &mut Work::Sync { subfile } => self.sync(operation, subfile, out),
            Work::Discard => {}
        }
    }

    /// Has the device write what a job brought, or change a length, once no page of it has a sum.
    fn change(&mut self, operation: Operation, out: &mut Vec<Action>) {
        if !self.strikes(operation, out) {
            self.begin_change(operation, out);
        }
    }

    /// The same, once that is so.
    fn begin_change(&mut self, operation: Operation, out: &mut Vec<Action>) {
        match self.serving.job(operation) {
            Some(Work::Write { subfile, portion, buffer, .. }) => out.push(Action::Transfer {
                operation,
                direction: Direction::Write,
                subfile: *subfile,
                portion: portion.clone(),
                from: Some(*buffer),
            }),
            Some(&mut Work::Resize { subfile, bytes, extends, .. }) => {
                out.push(Action::Resize { operation, subfile, bytes, extends });
            }
            _ => {}
        }
    }

    /// It is known how long a subfile is that a job asked for.
    fn measured(&mut self, operation: Operation, length: u64, out: &mut Vec<Action>) {
        let Some(work) = self.serving.job(operation) else { return };
        let Work::Read { subfile, portion, end, bytes } = work else {
            return self.end(operation, Message::End { bytes: length }, None, out);
        };
        *end = portion.data_end(length);
        let there = portion.before(*end);
        *bytes = there.bytes();
        if *bytes == 0 {
            let message = Message::Data { end: *end };
            return self.end(operation, message, None, out);
        }
        let (direction, subfile) = (Direction::Read, *subfile);
        out.push(Action::Transfer { operation, direction, subfile, portion: there, from: None });
    }

    /// The device has done what a job asked for.
    fn done(
        &mut self,
        now: Nanos,
        operation: Operation,
        mut result: Result<Outcome, Code>,
        out: &mut Vec<Action>,
    ) {
        match self.serving.job(operation) {
            Some(Work::Grant { .. } | Work::Write { asks_room: true, .. }) => {
                return self.room_told(operation, result, out);
            }
            Some(&mut Work::Sync { subfile }) => {
                return self.synced(operation, subfile, result, out);
            }
            Some(Work::Write { strikes: true, .. } | Work::Resize { strikes: true, .. }) => {
                return self.struck(now, operation, result, out);
            }
            Some(&mut Work::Sum { subfile, pages }) => {
                return self.summed(operation, (subfile, pages), result, out);
            }
            Some(&mut (Work::Write { subfile, .. } | Work::Resize { subfile, .. })) => {
                self.commits.changed(subfile);
                self.sums.touched(now, subfile);
            }
            _ => {}
        }
        if let Ok(Outcome::Unsummed { buffer, from, to }) = result {
            self.unsummed_seen(now, operation, (from, to));
            result = Ok(Outcome::Bytes(buffer));
        }
        let Some((work, subfiles)) = self.serving.job_and_subfiles(operation) else {
            if let Ok(Outcome::Bytes(buffer)) = result {
                out.push(Action::Release { buffer });
            }
            return;
        };
        let (message, payload) = match (result, work) {
            (Err(code), what) => {
                if let Some(subfile) = what.subfile() {
                    subfiles.doubt(subfile);
                }
                (Message::failed(code, what.name()), None)
            }
            (
                Ok(Outcome::Length(length)),
                Work::Read { subfile, .. } | Work::Measure { subfile },
            ) => {
                let length = subfiles.measured(*subfile, length);
                return self.measured(operation, length, out);
            }
            (Ok(Outcome::Damaged { from, to }), &Work::Read { subfile, .. }) => {
                self.sums.found_damaged(subfile, from, to);
                (sums::damaged(subfile, from, to), None)
            }
            (Ok(Outcome::Bytes(buffer)), &Work::Read { end, bytes, .. }) => {
                (Message::Data { end }, Some((buffer, bytes)))
            }
            (Ok(_), Work::Write { subfile, span, .. }) => {
                subfiles.reaches(*subfile, span.end());
                (Message::Done, None)
            }
            (Ok(_), &Work::Resize { subfile, bytes, extends, .. }) => {
                subfiles.resized(subfile, bytes, extends);
                (Message::Done, None)
            }
            (Ok(_), _) => (Message::Done, None),
        };
        self.end(operation, message, payload, out);
    }

    /// A job is over: its answer goes out, and those that waited for it begin.
    fn end(
        &mut self,
        operation: Operation,
        message: Message,
        payload: Option<(Buffer, u64)>,
        out: &mut Vec<Action>,
    ) {
        let work = self.serving.job(operation);
        let is_change = matches!(work, Some(Work::Write { .. } | Work::Resize { .. }));
        match self.serving.answer(operation, &message, is_change) {
            Some((peer, request)) => {
                out.push(Action::Peer(PeerAction::Reply { peer, request, message, payload }));
            }
            None => release(payload, out),
        }
        self.room.over(operation);
        self.serving.leave(operation);
    }

    /// Somebody does not need a hold any more. Gives the answer.
    fn release(
        &mut self,
        id: SessionId,
        request: Request,
        (hold, subfile): (HoldNumber, Subfile),
        out: &mut Vec<Action>,
    ) -> Message {
        let (released, stand) = self.holds.release(id, hold, subfile);
        let answer = match released {
            Released::Unknown if !is_planted(Plant::HoldsOfConnection) => {
                Message::failed(Code::HOLD_LOST, "")
            }
            _ => Message::Done,
        };
        if let Some(session) = self.serving.sessions.get(id) {
            session.remember(request, answer.clone());
        }
        if let Released::Waited(request) = released {
            let message = Message::failed(Code::HOLD_LOST, "it was released");
            self.answer(id, request, message, out);
        }
        self.hold_all(stand, out);
        answer
    }

    /// Answers a request without payload that had to wait.
    fn answer(&mut self, id: SessionId, request: Request, message: Message, out: &mut Vec<Action>) {
        if let Some((peer, request)) = self.serving.waited(id, request) {
            out.push(Action::Peer(PeerAction::reply(peer, request, message)));
        }
    }

    /// Holds stand that were waited for.
    fn hold_all(&mut self, stand: Vec<(SessionId, Request)>, out: &mut Vec<Action>) {
        for (session, request) in stand {
            self.answer(session, request, Message::Done, out);
        }
    }

    fn reply_all(&mut self, replies: Vec<Reply>, out: &mut Vec<Action>) {
        for (session, request, message) in replies {
            if let Some(peer) = self.serving.sessions.get(session).and_then(|session| session.peer)
            {
                out.push(Action::Peer(PeerAction::reply(peer, request, message)));
            }
        }
    }

    fn drop_peer(&mut self, now: Nanos, peer: Peer, why: &'static str, out: &mut Vec<Action>) {
        self.serving.sessions.lost(now, peer);
        out.push(Action::Peer(PeerAction::Drop { peer, why }));
    }

    /// A session is over, with its views, answers and holds, and for its groups.
    fn end_session(&mut self, id: SessionId, out: &mut Vec<Action>) {
        self.end_grant(id);
        self.serving.sessions.end(id);
        let mut replies = Vec::new();
        self.groups.gone(id, &mut replies);
        self.reply_all(replies, out);
        if !is_planted(Plant::HoldOfTheDead) {
            let stand = self.holds.end(id);
            self.hold_all(stand, out);
        }
    }

    /// Wishes to be woken when the next session or group is late.
    fn wake(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let sessions = self.serving.wakes_at();
        let sums = self.sums.wakes_at().filter(|_| self.failed.is_none());
        let times = [sessions, self.groups.wakes_at(), sums];
        let Some(at) = times.into_iter().flatten().min() else { return };
        if self.woken_at.is_none_or(|stands| stands <= now || stands > at) {
            self.woken_at = Some(at);
            out.push(Action::WakeAt(at));
        }
    }
}

fn release(payload: Option<(Buffer, u64)>, out: &mut Vec<Action>) {
    if let Some((buffer, _)) = payload {
        out.push(Action::Release { buffer });
    }
}

impl Work {
    fn subfile(&self) -> Option<Subfile> {
        match self {
            Work::Write { subfile, .. }
            | Work::Read { subfile, .. }
            | Work::Measure { subfile }
            | Work::Resize { subfile, .. }
            | Work::Sum { subfile, .. }
            | Work::Sync { subfile } => Some(*subfile),
            // One that means no block means no file either.
            Work::Grant { subfile, block, .. } => (!block.is_empty()).then_some(*subfile),
            Work::Discard => None,
        }
    }

    /// What failed, for people.
    fn name(&self) -> &'static str {
        match self {
            Work::Write { .. } => "the device could not write",
            Work::Read { .. } => "the device could not read",
            Work::Measure { .. } => "the device could not tell a length",
            Work::Resize { .. } => "the device could not change a length",
            Work::Sync { .. } => "the device could not sync",
            Work::Grant { .. } => "the device could not tell its room",
            Work::Discard => "the device could not remove a file",
            Work::Sum { .. } => "the device could not keep sums",
        }
    }
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
            Work::Measure { subfile } => Needs::all_of(*subfile, false),
            Work::Sync { subfile } => Needs::nothing_of(*subfile),
            Work::Grant { subfile, .. } => Needs::nothing_of(*subfile),
            Work::Sum { subfile, .. } if is_planted(Plant::SummedWhileWritten) => {
                Needs::nothing_of(*subfile)
            }
            &Work::Sum { subfile, pages: range } => Needs { subfile, range, is_change: false },
            Work::Discard => return None,
        })
    }
}

impl IoServer {
    fn told_by_peer(&mut self, now: Nanos, event: PeerEvent, out: &mut Vec<Action>) {
        match event {
            PeerEvent::Up { peer, session } => {
                out.extend(self.serving.sessions.up(peer, session, true).map(Action::Peer));
            }
            PeerEvent::Lost { peer, ended } => {
                let Some(id) = self.serving.sessions.lost(now, peer) else { return };
                if is_planted(Plant::HoldsOfConnection) {
                    let stand = self.holds.end(id);
                    self.hold_all(stand, out);
                }
                if ended {
                    self.end_session(id, out);
                }
            }
            PeerEvent::Asked { peer, request, message, payload } => {
                self.asked(now, peer, request, message, payload, out);
            }
        }
    }
}

impl Machine for IoServer {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Peer(event) => self.told_by_peer(now, event, out),
            Event::Done { operation, result } => self.done(now, operation, result, out),
            Event::Woke => {
                for id in self.serving.sessions.expired(now, self.serving.settings.session_timeout)
                {
                    self.end_session(id, out);
                }
                let mut replies = Vec::new();
                self.groups.woke(now, &mut replies);
                self.reply_all(replies, out);
                self.sum_due(now);
            }
        }
        while let Some(operation) = self.serving.next() {
            self.act(operation, out);
        }
        self.wake(now, out);
    }
}
