//! An I/O server: subfiles on one device directory, and the views that clients have stored.
//!
//! Promises: what one request does within one stripe happens at one instant (requests that touch the same
//! stripes, one of them writing, go one after the other, in the order in which they came); a request that
//! changes something is carried out at most once in a life of the server; every request gets one reply on
//! the connection that its session has then. Files whose home it is have their groups here.
//!
//! Costs: O(log n) in sessions, views and operations under way for each request, and a look at each stripe
//! of its portion. Memory: that of [`Settings`] for each session, and a length for each subfile that was
//! used lately.

mod events;
mod groups;
mod subfiles;
mod views;

pub use events::{Action, Event, Operation, Outcome, Subfile};

use crate::message::PAYLOAD_BYTES_MAX;
use crate::plant::{Plant, is_planted};
use crate::sessions::{Session, Sessions};
use crate::{Access, Buffer, Code, Message, Peer, Portion, Request, SessionId};
use groups::{Arrival, Groups, Reply};
use iolab_policy::Machine;
use iolab_vocab::{Direction, Extent, Nanos};
use std::collections::{BTreeMap, VecDeque};
use subfiles::{Claim, Subfiles};
use views::{Part, Views};

/// What a server is built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a session without a connection is kept.
    pub session_timeout: Nanos,
    /// Stored views of a session together, encoded.
    pub view_bytes_max: u64,
    /// Requests of a session under way.
    pub requests_max: u32,
}

impl Settings {
    /// 8 s, 64 MiB, 128 requests.
    pub fn usual() -> Settings {
        Settings {
            session_timeout: Nanos(8_000_000_000),
            view_bytes_max: 64 << 20,
            // Twice what a client has under way: what it asked on a lost connection may still go on,
            // and go on once more, when it has the answer and asks for other things.
            requests_max: 128,
        }
    }
}

/// The I/O server machine.
#[derive(Debug)]
pub struct IoServer {
    settings: Settings,
    sessions: Sessions<Views>,
    groups: Groups,
    subfiles: Subfiles,
    /// What operations of the device are for.
    jobs: BTreeMap<Operation, Job>,
    last_operation: u64,
    /// Those that nothing holds back any more.
    ready: VecDeque<Operation>,
    /// The wish to be woken that stands.
    woken_at: Option<Nanos>,
}

/// A request that waits for the device, or for others to be through with its bytes.
#[derive(Debug)]
struct Job {
    session: SessionId,
    request: Request,
    what: Work,
}

/// What a job does.
#[derive(Debug)]
enum Work {
    Write {
        subfile: Subfile,
        portion: Portion,
        span: Extent,
        buffer: Buffer,
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
    },
    Sync {
        subfile: Subfile,
    },
    Discard,
}

impl IoServer {
    /// A server in a new life: it knows no session.
    pub fn new(settings: Settings) -> IoServer {
        IoServer {
            settings,
            sessions: Sessions::default(),
            groups: Groups::default(),
            subfiles: Subfiles::default(),
            jobs: BTreeMap::new(),
            last_operation: 0,
            ready: VecDeque::new(),
            woken_at: None,
        }
    }

    /// Who waits for an operation of the device, and for which reply.
    pub fn asker(&self, operation: Operation) -> Option<(Peer, Request)> {
        let job = self.jobs.get(&operation)?;
        Some((self.sessions.peer_of(job.session)?, job.request))
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
        let settings = self.settings;
        let Some((id, session)) = self.sessions.of_peer_mut(peer) else {
            return release(payload, out);
        };
        if is_planted(Plant::ExecutedTwice) {
            session.executing.remove(&request);
        } else if let Some(answer) = session.answer(request).cloned() {
            release(payload, out);
            return out.push(Action::Reply { peer, request, message: answer, payload: None });
        }
        if session.executing.contains(&request) {
            return release(payload, out);
        }
        if session.executing.len() >= settings.requests_max as usize {
            release(payload, out);
            return self.drop_peer(now, peer, "more requests under way than allowed", out);
        }
        let work = match message {
            Message::Write(access) => match writes(session, access, payload) {
                Ok(work) => work,
                Err(answer) => {
                    release(payload, out);
                    return out.push(Action::Reply {
                        peer,
                        request,
                        message: answer,
                        payload: None,
                    });
                }
            },
            message => {
                release(payload, out);
                match self.without_payload(now, (id, request), message, out) {
                    Ok(work) => work,
                    Err(None) => return,
                    Err(Some(message)) => {
                        return out.push(Action::Reply { peer, request, message, payload: None });
                    }
                }
            }
        };
        if work.subfile().is_some_and(|subfile| self.subfiles.is_discarded(subfile.inode)) {
            if let Work::Write { buffer, .. } = work {
                out.push(Action::Release { buffer });
            }
            let message = Message::failed(Code::STALE, "the file was removed");
            return out.push(Action::Reply { peer, request, message, payload: None });
        }
        if let Some(session) = self.sessions.get(id) {
            session.executing.insert(request);
        }
        self.begin(Job { session: id, request, what: work });
    }

    /// What a request without payload is; or its answer, if there is one at once.
    fn without_payload(
        &mut self,
        now: Nanos,
        (id, request): (SessionId, Request),
        message: Message,
        out: &mut Vec<Action>,
    ) -> Result<Work, Option<Message>> {
        let settings = self.settings;
        let session = self.sessions.get(id).ok_or(None)?;
        match message {
            Message::Ping => Err(Some(Message::Pong)),
            Message::SetView { view, inode, layout, offset, total, part } => {
                let part = Part { view, inode, layout, offset, total, bytes: part };
                Err(Some(match session.own.take_part(part, &settings) {
                    Ok(()) => Message::Done,
                    Err(why) => Message::failed(Code::NO_MEMORY, why),
                }))
            }
            Message::DropView { view } => {
                session.own.forget(view);
                Err(Some(Message::Done))
            }
            Message::Read(access) => reads(session, access).map_err(Some),
            Message::Measure { inode, subfile } => {
                let subfile = Subfile { inode, index: subfile };
                match self.subfiles.length(subfile) {
                    Some(bytes) => Err(Some(Message::End { bytes })),
                    None => Ok(Work::Measure { subfile }),
                }
            }
            Message::Resize { inode, subfile, bytes, extends } => {
                Ok(Work::Resize { subfile: Subfile { inode, index: subfile }, bytes, extends })
            }
            Message::Sync { inode, subfile } => {
                Ok(Work::Sync { subfile: Subfile { inode, index: subfile } })
            }
            Message::Discard { inode } => match self.subfiles.is_used(inode) {
                true => {
                    Err(Some(Message::failed(Code::BUSY, "requests on the file are under way")))
                }
                false => {
                    self.subfiles.discard(inode);
                    self.last_operation += 1;
                    let operation = Operation(self.last_operation);
                    self.jobs.insert(operation, Job { session: id, request, what: Work::Discard });
                    session.executing.insert(request);
                    out.push(Action::Discard { operation, inode });
                    Err(None)
                }
            },
            Message::Arrive { group, size, rank, sequence, result, previous, last } => {
                let arrival = Arrival { group, size, rank, sequence, result, previous, last };
                let mut replies = Vec::new();
                let wait = settings.session_timeout;
                self.groups.arrive(now, wait, (id, request), arrival, &mut replies);
                self.reply_all(replies, out);
                Err(None)
            }
            _ => Err(Some(Message::failed(Code::UNSUPPORTED, "an I/O server does not do that"))),
        }
    }

    /// Begins a job, or lets it wait for those that use the same bytes.
    fn begin(&mut self, job: Job) {
        self.last_operation += 1;
        let operation = Operation(self.last_operation);
        let (subfile, range, is_change) = job.what.needs();
        self.jobs.insert(operation, job);
        if self.subfiles.enter(subfile, Claim { operation, range, is_change }) {
            self.ready.push_back(operation);
        }
    }

    /// Asks the device for what a job needs next.
    fn act(&mut self, operation: Operation, out: &mut Vec<Action>) {
        let Some(job) = self.jobs.get_mut(&operation) else { return };
        match &mut job.what {
            Work::Write { subfile, portion, buffer, .. } => out.push(Action::Transfer {
                operation,
                direction: Direction::Write,
                subfile: *subfile,
                portion: portion.clone(),
                from: Some(*buffer),
            }),
            Work::Read { subfile, .. } | Work::Measure { subfile } => {
                let subfile = *subfile;
                match self.subfiles.length(subfile) {
                    Some(length) => self.measured(operation, length, out),
                    None => out.push(Action::Measure { operation, subfile }),
                }
            }
            &mut Work::Resize { subfile, bytes, extends } => {
                out.push(Action::Resize { operation, subfile, bytes, extends });
            }
            &mut Work::Sync { subfile } => out.push(Action::Sync { operation, subfile }),
            Work::Discard => {}
        }
    }

    /// It is known how long a subfile is that a job asked for.
    fn measured(&mut self, operation: Operation, length: u64, out: &mut Vec<Action>) {
        let Some(job) = self.jobs.get_mut(&operation) else { return };
        let Work::Read { subfile, portion, end, bytes } = &mut job.what else {
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
    fn done(&mut self, operation: Operation, result: Result<Outcome, Code>, out: &mut Vec<Action>) {
        let Some(job) = self.jobs.get(&operation) else {
            if let Ok(Outcome::Bytes(buffer)) = result {
                out.push(Action::Release { buffer });
            }
            return;
        };
        let (message, payload) = match (result, &job.what) {
            (Err(code), what) => {
                if let Some(subfile) = what.subfile() {
                    self.subfiles.doubt(subfile);
                }
                (Message::failed(code, what.name()), None)
            }
            (
                Ok(Outcome::Length(length)),
                Work::Read { subfile, .. } | Work::Measure { subfile },
            ) => {
                let length = self.subfiles.measured(*subfile, length);
                return self.measured(operation, length, out);
            }
            (Ok(Outcome::Bytes(buffer)), &Work::Read { end, bytes, .. }) => {
                (Message::Data { end }, Some((buffer, bytes)))
            }
            (Ok(_), Work::Write { subfile, span, .. }) => {
                self.subfiles.reaches(*subfile, span.end());
                (Message::Done, None)
            }
            (Ok(_), &Work::Resize { subfile, bytes, extends }) => {
                self.subfiles.resized(subfile, bytes, extends);
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
        let Some(job) = self.jobs.remove(&operation) else { return };
        let is_change = matches!(job.what, Work::Write { .. } | Work::Resize { .. });
        match self.sessions.get(job.session) {
            None => release(payload, out),
            Some(session) => {
                session.executing.remove(&job.request);
                if is_change {
                    session.remember(job.request, message.clone());
                }
                match session.peer {
                    None => release(payload, out),
                    Some(peer) => {
                        out.push(Action::Reply { peer, request: job.request, message, payload });
                    }
                }
            }
        }
        if let Some(subfile) = job.what.subfile() {
            self.ready.extend(self.subfiles.leave(subfile, operation));
        }
    }

    fn reply_all(&mut self, replies: Vec<Reply>, out: &mut Vec<Action>) {
        for (session, request, message) in replies {
            if let Some(peer) = self.sessions.get(session).and_then(|session| session.peer) {
                out.push(Action::Reply { peer, request, message, payload: None });
            }
        }
    }

    fn drop_peer(&mut self, now: Nanos, peer: Peer, why: &'static str, out: &mut Vec<Action>) {
        self.sessions.lost(now, peer);
        out.push(Action::Drop { peer, why });
    }

    /// A session is over, with its views and answers, and for its groups.
    fn end_session(&mut self, id: SessionId, out: &mut Vec<Action>) {
        self.sessions.end(id);
        let mut replies = Vec::new();
        self.groups.gone(id, &mut replies);
        self.reply_all(replies, out);
    }

    /// Wishes to be woken when the next session or group is late.
    fn wake(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let sessions = self.sessions.lost_first().map(|at| at.after(self.settings.session_timeout));
        let Some(at) = [sessions, self.groups.wakes_at()].into_iter().flatten().min() else {
            return;
        };
        if self.woken_at.is_none_or(|stands| stands <= now || stands > at) {
            self.woken_at = Some(at);
            out.push(Action::WakeAt(at));
        }
    }
}

/// What a write of a session is, or why it is none.
fn writes(
    session: &Session<Views>,
    access: Access,
    payload: Option<(Buffer, u64)>,
) -> Result<Work, Message> {
    let (subfile, portion) = portion_of(session, access)?;
    let wrong = || Message::failed(Code::INVALID, "a write whose payload is not its portion");
    let (buffer, bytes) = payload.ok_or_else(wrong)?;
    // Only now is it known that the pieces come to an end soon.
    let is_whole = portion.bytes_within(bytes) == Some(bytes);
    match is_whole.then(|| portion.span()).flatten() {
        Some(span) => Ok(Work::Write { subfile, portion, span, buffer }),
        None => Err(wrong()),
    }
}

/// What a read of a session is, or its answer, if there is nothing to do.
fn reads(session: &Session<Views>, access: Access) -> Result<Work, Message> {
    let (subfile, portion) = portion_of(session, access)?;
    match portion.bytes_within(PAYLOAD_BYTES_MAX) {
        Some(0) => Err(Message::Data { end: portion.to }),
        Some(_) => Ok(Work::Read { subfile, end: portion.from, portion, bytes: 0 }),
        None => Err(Message::failed(Code::INVALID, "a read of more than a message holds")),
    }
}

fn portion_of(session: &Session<Views>, access: Access) -> Result<(Subfile, Portion), Message> {
    let Access { view, subfile, from, to } = access;
    let Some(view) = session.own.get(view) else {
        return Err(Message::failed(Code::UNKNOWN_VIEW, "the view is not stored"));
    };
    if subfile >= view.layout.subfiles() || from > to {
        return Err(Message::failed(Code::INVALID, "no such portion of the file"));
    }
    let portion = Portion { view: view.nest.clone(), layout: view.layout, subfile, from, to };
    Ok((Subfile { inode: view.inode, index: subfile }, portion))
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
            | Work::Sync { subfile } => Some(*subfile),
            Work::Discard => None,
        }
    }

    /// Which bytes of which subfile it uses, whole stripes of them, and whether it changes them.
    fn needs(&self) -> (Subfile, Extent, bool) {
        let nothing = Extent::new(0, 0);
        match self {
            Work::Write { subfile, portion, span, .. } => (*subfile, stripes(portion, *span), true),
            Work::Read { subfile, portion, .. } => {
                let span = portion.span().unwrap_or(nothing);
                (*subfile, stripes(portion, span), false)
            }
            Work::Resize { subfile, .. } => (*subfile, Extent::new(0, u64::MAX), true),
            Work::Measure { subfile } => (*subfile, Extent::new(0, u64::MAX), false),
            Work::Sync { subfile } => (*subfile, nothing, false),
            Work::Discard => unreachable!("it waits for nobody"),
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
            Work::Discard => "the device could not remove a file",
        }
    }
}

/// The whole stripes of a subfile that a span of it touches.
fn stripes(portion: &Portion, span: Extent) -> Extent {
    let unit = portion.layout.unit_bytes();
    let from = span.offset / unit * unit;
    Extent::new(from, span.end().div_ceil(unit).saturating_mul(unit) - from)
}

impl Machine for IoServer {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::PeerUp { peer, session } => {
                let (known, before) = self.sessions.up(peer, session);
                if let Some(peer) = before {
                    out.push(Action::Drop { peer, why: "its session has another connection" });
                }
                out.push(Action::Welcome { peer, known });
            }
            Event::PeerLost { peer, ended } => {
                if let Some(id) = self.sessions.lost(now, peer)
                    && ended
                {
                    self.end_session(id, out);
                }
            }
            Event::Asked { peer, request, message, payload } => {
                self.asked(now, peer, request, message, payload, out);
            }
            Event::Done { operation, result } => self.done(operation, result, out),
            Event::Woke => {
                for id in self.sessions.expired(now, self.settings.session_timeout) {
                    self.end_session(id, out);
                }
                let mut replies = Vec::new();
                self.groups.woke(now, &mut replies);
                self.reply_all(replies, out);
            }
        }
        while let Some(operation) = self.ready.pop_front() {
            self.act(operation, out);
        }
        self.wake(now, out);
    }
}
