//! What every server of requests does, whatever it serves them from: it knows sessions with their stored
//! views, carries out what changes something at most once, and lets requests for the same bytes go one after
//! the other. `W` is what the server does for a request.
//!
//! Promises: a request that is repeated while it is carried out is not begun again, one that was carried out
//! gets the same answer; who comes to a stripe waits for those before it that use it, if it or they change
//! it. Costs: O(log n) in sessions, views and requests under way, and a look at those of the same subfile.
//! Memory: that of [`Settings`] for each session.

mod claims;
mod subfiles;
mod views;

use crate::plant::{Plant, is_planted};
use crate::sessions::Sessions;
use crate::{
    Access, Buffer, Code, Division, Inode, Layout, Message, Peer, Portion, Request, SessionId,
};
use iolab_vocab::{Extent, Nanos};
use std::collections::{BTreeMap, VecDeque};

pub(crate) use claims::{Claim, Claims};
pub(crate) use subfiles::Subfiles;
pub(crate) use views::Views;

use crate::message::PAYLOAD_BYTES_MAX;
use views::Part;

/// Why a connection is dropped: its session came back over another one.
pub(crate) const ELSEWHERE: &str = "its session has another connection";
/// Why a connection is dropped: its peer does not keep to [`Settings::requests_max`].
pub(crate) const TOO_MANY: &str = "more requests under way than allowed";

/// A request under way, as the machine numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation(pub u64);

/// A part of a file on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subfile {
    /// The file.
    pub inode: Inode,
    /// Which part of it.
    pub index: u32,
}

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

/// What a server does for a request.
pub(crate) trait Work {
    /// Which bytes of which subfile it uses, whole stripes of them, and whether it changes them.
    fn needs(&self) -> Option<Needs>;
}

/// What somebody waits for, or makes others wait for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    pub(crate) subfile: Subfile,
    pub(crate) range: Extent,
    pub(crate) is_change: bool,
}

impl Needs {
    /// The whole stripes that a span of a subfile touches.
    pub(crate) fn stripes(
        subfile: Subfile,
        division: Division,
        span: Extent,
        is_change: bool,
    ) -> Needs {
        let unit = division.unit_bytes();
        let from = span.offset / unit * unit;
        let range = Extent::new(from, span.end().div_ceil(unit).saturating_mul(unit) - from);
        Needs { subfile, range, is_change }
    }

    /// All of a subfile.
    pub(crate) fn all_of(subfile: Subfile, is_change: bool) -> Needs {
        Needs { subfile, range: Extent::new(0, u64::MAX), is_change }
    }

    /// Nothing of a subfile; but while somebody is there, the file is in use.
    pub(crate) fn nothing_of(subfile: Subfile) -> Needs {
        Needs { subfile, range: Extent::new(0, 0), is_change: false }
    }
}

/// What becomes of a request that has come.
#[derive(Debug)]
pub(crate) enum Admission {
    /// Nobody waits for it, or it is under way.
    Ignored,
    /// It was carried out before, with this answer.
    Repeated(Message),
    /// The session has more under way than it may.
    TooMany,
    /// It is to be carried out for this session.
    Taken(SessionId),
}

/// A request that is carried out.
#[derive(Debug)]
struct Job<W> {
    /// Nobody's if the server does it by itself.
    session: Option<SessionId>,
    request: Request,
    /// Where others may wait for it.
    subfile: Option<Subfile>,
    work: W,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Serving<W> {
    pub(crate) settings: Settings,
    pub(crate) sessions: Sessions<Views>,
    pub(crate) subfiles: Subfiles,
    jobs: BTreeMap<Operation, Job<W>>,
    last_operation: u64,
    /// Those that nothing holds back any more.
    ready: VecDeque<Operation>,
}

impl<W: Work> Serving<W> {
    /// A server in a new life: it knows no session.
    pub(crate) fn new(settings: Settings) -> Serving<W> {
        Serving {
            settings,
            sessions: Sessions::default(),
            subfiles: Subfiles::default(),
            jobs: BTreeMap::new(),
            last_operation: 0,
            ready: VecDeque::new(),
        }
    }

    /// A request has come.
    pub(crate) fn admit(&mut self, peer: Peer, request: Request) -> Admission {
        let Some((id, session)) = self.sessions.of_peer_mut(peer) else {
            return Admission::Ignored;
        };
        if is_planted(Plant::ExecutedTwice) {
            session.executing.remove(&request);
        } else if let Some(answer) = session.answer(request) {
            return Admission::Repeated(answer.clone());
        }
        if session.executing.contains(&request) {
            return Admission::Ignored;
        }
        match session.executing.len() >= self.settings.requests_max as usize {
            true => Admission::TooMany,
            false => Admission::Taken(id),
        }
    }

    /// What a message about stored views comes to; the message itself, if it is about something else.
    pub(crate) fn views(&mut self, id: SessionId, message: Message) -> Result<Message, Message> {
        let bytes_max = self.settings.view_bytes_max;
        let Some(session) = self.sessions.get(id) else { return Err(message) };
        match message {
            Message::SetView { view, inode, layout, offset, total, part } => {
                let part = Part { view, inode, layout, offset, total, bytes: part };
                Ok(match session.own.take_part(part, bytes_max) {
                    Ok(()) => Message::Done,
                    Err(why) => Message::failed(Code::NO_MEMORY, why),
                })
            }
            Message::DropView { view } => {
                session.own.forget(view);
                Ok(Message::Done)
            }
            message => Err(message),
        }
    }

    /// The portion that an access of a session means, where files are divided as `divide` makes of their
    /// layouts, which come with it; or what the session is told.
    pub(crate) fn portion(
        &mut self,
        id: SessionId,
        access: Access,
        divide: impl Fn(Layout) -> Division,
    ) -> Result<(Subfile, Portion, Layout), Message> {
        let Access { view: number, subfile, from, to } = access;
        let view = self.sessions.get(id).and_then(|session| session.own.get(number));
        let Some(view) = view else {
            return Err(Message::failed(Code::UNKNOWN_VIEW, "the view is not stored"));
        };
        let (own, division) = (view.layout, divide(view.layout));
        if subfile >= division.parts() || from > to {
            return Err(Message::failed(Code::INVALID, "no such portion of the file"));
        }
        let portion = Portion { view: view.nest.clone(), division, subfile, from, to };
        Ok((Subfile { inode: view.inode, index: subfile }, portion, own))
    }

    /// Begins a job, or lets it wait for those that use the same bytes. One that needs nothing begins at
    /// once, without being given by [`Serving::next`].
    pub(crate) fn begin(&mut self, id: SessionId, request: Request, work: W) -> Operation {
        self.waits(id, request);
        self.begin_for(Some(id), request, work)
    }

    /// The same for what nobody has asked for.
    pub(crate) fn begin_own(&mut self, work: W) -> Operation {
        self.begin_for(None, Request(0), work)
    }

    fn begin_for(&mut self, session: Option<SessionId>, request: Request, work: W) -> Operation {
        self.last_operation += 1;
        let operation = Operation(self.last_operation);
        let needs = work.needs();
        let subfile = needs.map(|needs| needs.subfile);
        self.jobs.insert(operation, Job { session, request, subfile, work });
        if let Some(Needs { subfile, range, is_change }) = needs
            && self.subfiles.enter(subfile, Claim { whose: operation, range, is_change })
        {
            self.ready.push_back(operation);
        }
        operation
    }

    /// A request waits for something else than bytes.
    pub(crate) fn waits(&mut self, id: SessionId, request: Request) {
        if let Some(session) = self.sessions.get(id) {
            session.executing.insert(request);
        }
    }

    /// A request waits no more. Gives whom its answer goes to, if somebody is there.
    pub(crate) fn waited(&mut self, id: SessionId, request: Request) -> Option<(Peer, Request)> {
        let session = self.sessions.get(id)?;
        session.executing.remove(&request);
        Some((session.peer?, request))
    }

    /// The next job that nothing holds back any more.
    pub(crate) fn next(&mut self) -> Option<Operation> {
        self.ready.pop_front()
    }

    /// Who waits for a job, and for which reply.
    pub(crate) fn asker(&self, operation: Operation) -> Option<(Peer, Request)> {
        let job = self.jobs.get(&operation)?;
        Some((self.sessions.peer_of(job.session?)?, job.request))
    }

    /// What is done for the requests of a session.
    pub(crate) fn jobs_of(&self, id: SessionId) -> impl Iterator<Item = (Operation, &W)> {
        let own = self.jobs.iter().filter(move |(_, job)| job.session == Some(id));
        own.map(|(&operation, job)| (operation, &job.work))
    }

    /// What is done for a request.
    pub(crate) fn job(&mut self, operation: Operation) -> Option<&mut W> {
        self.jobs.get_mut(&operation).map(|job| &mut job.work)
    }

    /// The same, with what is known of subfiles.
    pub(crate) fn job_and_subfiles(&mut self, operation: Operation) -> Option<(&W, &mut Subfiles)> {
        Some((&self.jobs.get(&operation)?.work, &mut self.subfiles))
    }

    /// The session of a job, if it has not ended.
    pub(crate) fn session_of(&mut self, operation: Operation) -> Option<SessionId> {
        let id = self.jobs.get(&operation)?.session?;
        self.sessions.get(id).map(|_| id)
    }

    /// A request is carried out, though its job may go on. Gives whom the answer goes to, if somebody is
    /// there; that to one that changed something is remembered.
    pub(crate) fn answer(
        &mut self,
        operation: Operation,
        answer: &Message,
        is_change: bool,
    ) -> Option<(Peer, Request)> {
        let job = self.jobs.get(&operation)?;
        let (request, session) = (job.request, self.sessions.get(job.session?)?);
        session.executing.remove(&request);
        if is_change {
            session.remember(request, answer.clone());
        }
        session.peer.map(|peer| (peer, request))
    }

    /// A job is over: those that waited for it may begin. Gives what it was.
    pub(crate) fn leave(&mut self, operation: Operation) -> Option<W> {
        let Job { subfile, work, .. } = self.jobs.remove(&operation)?;
        if let Some(subfile) = subfile {
            self.ready.extend(self.subfiles.leave(subfile, operation));
        }
        Some(work)
    }

    /// When the session is over that has been without a connection for longest.
    pub(crate) fn wakes_at(&self) -> Option<Nanos> {
        self.sessions.lost_first().map(|at| at.after(self.settings.session_timeout))
    }
}

/// The buffer of a write whose payload is its portion, and the span of that.
pub(crate) fn payload_of(
    portion: &Portion,
    payload: Option<(Buffer, u64)>,
) -> Result<(Buffer, Extent), Message> {
    let wrong = || Message::failed(Code::INVALID, "a write whose payload is not its portion");
    let (buffer, bytes) = payload.ok_or_else(wrong)?;
    // Only now is it known that the pieces come to an end soon.
    let is_whole = portion.bytes_within(bytes) == Some(bytes);
    let span = is_whole.then(|| portion.span()).flatten().ok_or_else(wrong)?;
    Ok((buffer, span))
}

/// Whether a portion is one that may be read; its answer, if there is nothing to do.
pub(crate) fn check_read(portion: &Portion) -> Result<(), Message> {
    match portion.bytes_within(PAYLOAD_BYTES_MAX) {
        Some(0) => Err(Message::Data { end: portion.to }),
        Some(_) => Ok(()),
        None => Err(Message::failed(Code::INVALID, "a read of more than a message holds")),
    }
}
