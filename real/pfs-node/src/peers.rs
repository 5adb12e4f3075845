//! Those who are connected to a server: accepted, authenticated by the kernel, heard and answered.
//!
//! Bounds: 64 connections that have not said hello, for 2 s each; then nobody else is accepted. Who does not
//! take its answers is not heard until it does. A process that ends is told apart from one that only
//! closes its connection.

use crate::buffers::{Buffers, Payload};
use crate::channel::{Channel, Lost, Received};
use crate::outgoing::NoRows;
use crate::window::{Budget, Stretch};
use iolab_pfs::session::{HANDSHAKE_TIMEOUT, Hello, Role, Welcome};
use iolab_pfs::{Code, Connected, Message, Peer, PeerAction, PeerEvent, Request};
use iolab_vocab::Nanos;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::PidfdFlags;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// Connections at most that have not said hello.
const UNPROVEN_MAX: usize = 64;
/// Bytes of answers that wait for a peer; beyond, it is not heard.
const ANSWERS_MAX: usize = 4 << 20;
/// Messages of a peer before it is the next one's turn.
const TURN: usize = 16;
/// Connections of which one answer tells: with the longest names, a quarter of a frame.
const CONNECTED_MAX: usize = 1024;
/// How long a peer that has closed its connection may take to end before it counts as living.
const FAREWELL: Nanos = Nanos(100_000_000);
/// How long nobody is accepted after an error, as when there are no descriptors left.
const PAUSE: Nanos = Nanos(100_000_000);
/// How many connections wait to be accepted.
const BACKLOG: i32 = 1024;

/// Sockets that a server waits for; each has a number.
pub(crate) type Epoll = Rc<OwnedFd>;

/// The number of the socket where connections come in.
pub(crate) const DOOR: u64 = u64::MAX;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Has not said hello.
    Unproven,
    /// Its machine knows it.
    Known,
    /// It has closed the connection; perhaps its process is about to end.
    Leaving,
}

struct Connection {
    channel: Channel,
    /// Its process.
    process: Option<OwnedFd>,
    state: State,
    /// What it says it is.
    hello: Option<Hello>,
    /// What epoll tells of it.
    interest: EventFlags,
}

impl Connection {
    /// Whether it sends payload.
    fn is_client(&self) -> bool {
        let is_client = self.hello.as_ref().is_some_and(|hello| hello.role == Role::Client);
        is_client && self.state == State::Known
    }
}

/// All connections of a server.
pub(crate) struct Peers {
    epoll: Epoll,
    door: OwnedFd,
    /// What they are greeted with.
    welcome: Welcome,
    /// Of what clients get windows, where payload comes.
    windows: Option<Arc<Budget>>,
    /// Nobody is accepted before that time.
    closed_until: Option<Nanos>,
    is_open: bool,
    connections: BTreeMap<u32, Connection>,
    last: u32,
    unproven: usize,
    /// When something is to be done about a connection.
    deadlines: BTreeSet<(Nanos, u32)>,
    /// Those with answers that were not tried to be sent.
    unsent: BTreeSet<u32>,
}

/// A socket where connections come in.
pub(crate) fn listen(address: &SocketAddrUnix) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let door = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&door, address)?;
    rustix::net::listen(&door, BACKLOG)?;
    Ok(door)
}

/// Numbers in epoll of a connection and of its process.
fn numbers(peer: u32) -> (u64, u64) {
    (u64::from(peer) * 2, u64::from(peer) * 2 + 1)
}

impl Peers {
    /// Nobody yet, at this door; they are greeted so, and clients get windows of that budget.
    pub(crate) fn at(
        door: OwnedFd,
        epoll: Epoll,
        welcome: Welcome,
        windows: Option<Arc<Budget>>,
    ) -> Result<Peers, Errno> {
        epoll::add(&*epoll, &door, EventData::new_u64(DOOR), EventFlags::IN)?;
        Ok(Peers {
            epoll,
            door,
            welcome,
            windows,
            closed_until: None,
            is_open: true,
            connections: BTreeMap::new(),
            last: 0,
            unproven: 0,
            deadlines: BTreeSet::new(),
            unsent: BTreeSet::new(),
        })
    }

    /// When something is to be done next.
    pub(crate) fn next_deadline(&self) -> Option<Nanos> {
        let first = self.deadlines.first().map(|(time, _)| *time);
        first.into_iter().chain(self.closed_until).min()
    }

    /// A socket of this number is ready.
    pub(crate) fn ready(
        &mut self,
        now: Nanos,
        number: u64,
        flags: EventFlags,
        buffers: &mut Buffers,
        heard: &mut Vec<PeerEvent>,
    ) {
        if number == DOOR {
            return self.accept(now);
        }
        let peer = (number / 2) as u32;
        if !self.connections.contains_key(&peer) {
            return;
        }
        if number % 2 == 1 {
            // What it has said before it ended is not waited for: nobody is there to be answered.
            return self.lose(peer, true, heard);
        }
        if flags.contains(EventFlags::OUT) {
            self.unsent.insert(peer);
        }
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            self.hear(now, peer, buffers, heard);
        }
    }

    /// Does what is due.
    pub(crate) fn tick(&mut self, now: Nanos, heard: &mut Vec<PeerEvent>) {
        if self.closed_until.is_some_and(|time| time <= now) {
            self.closed_until = None;
            self.open_or_close();
        }
        while let Some(&(time, peer)) = self.deadlines.first()
            && time <= now
        {
            self.deadlines.pop_first();
            match self.connections.get(&peer).map(|connection| connection.state) {
                Some(State::Unproven | State::Leaving) => self.lose(peer, false, heard),
                Some(State::Known) | None => {}
            }
        }
    }

    fn accept(&mut self, now: Nanos) {
        while self.unproven < UNPROVEN_MAX {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match rustix::net::accept_with(&self.door, flags) {
                Ok(socket) => self.admit(now, socket),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(_) => {
                    self.closed_until = Some(Nanos(now.0 + PAUSE.0));
                    break;
                }
            }
        }
        self.open_or_close();
    }

    /// Whether the door is looked at.
    fn open_or_close(&mut self) {
        let open = self.unproven < UNPROVEN_MAX && self.closed_until.is_none();
        if open != self.is_open {
            let flags = if open { EventFlags::IN } else { EventFlags::empty() };
            let _ = epoll::modify(&*self.epoll, &self.door, EventData::new_u64(DOOR), flags);
            self.is_open = open;
        }
    }

    /// A new connection; of somebody else than who owns the instance, it is closed.
    fn admit(&mut self, now: Nanos, socket: OwnedFd) {
        let Ok(who) = rustix::net::sockopt::socket_peercred(&socket) else { return };
        let mut channel = Channel::serving(socket);
        if who.uid != rustix::process::geteuid() {
            channel.refuse(Code::ACCESS, "this file system is another user's");
            let _ = channel.send(&NoRows, &mut Buffers::default());
            return;
        }
        self.last += 1;
        let (number, of_process) = numbers(self.last);
        let interest = EventFlags::IN;
        if epoll::add(&*self.epoll, &channel, EventData::new_u64(number), interest).is_err() {
            return;
        }
        // A process of another name space has no number here; it is then known by its connection only.
        let process = rustix::process::pidfd_open(who.pid, PidfdFlags::empty()).ok();
        if let Some(process) = &process {
            let data = EventData::new_u64(of_process);
            let _ = epoll::add(&*self.epoll, process, data, EventFlags::IN);
        }
        let state = State::Unproven;
        let connection = Connection { channel, process, state, hello: None, interest };
        self.connections.insert(self.last, connection);
        self.unproven += 1;
        self.deadlines.insert((Nanos(now.0 + HANDSHAKE_TIMEOUT.0), self.last));
    }

    fn hear(&mut self, now: Nanos, peer: u32, buffers: &mut Buffers, heard: &mut Vec<PeerEvent>) {
        let mut count = 0;
        loop {
            let Some(connection) = self.connections.get_mut(&peer) else { return };
            let channel = &mut connection.channel;
            let is_full = channel.out().left() > ANSWERS_MAX;
            if is_full || (count >= TURN && !channel.has_read_ahead()) {
                break;
            }
            count += 1;
            match channel.receive(buffers) {
                Ok(None) => break,
                Ok(Some(received)) => self.received(peer, received, heard),
                Err(lost) => return self.leave(now, peer, &lost, buffers, heard),
            }
        }
        self.unsent.insert(peer);
    }

    fn received(&mut self, peer: u32, received: Received, heard: &mut Vec<PeerEvent>) {
        let connection = self.connections.get_mut(&peer).expect("it was just heard");
        match received {
            Received::Hello(hello) => {
                connection.state = State::Known;
                let session = hello.session;
                connection.hello = Some(hello);
                self.unproven -= 1;
                heard.push(PeerEvent::Up { peer: Peer(peer), session });
                self.open_or_close();
            }
            Received::Message { request, message: Message::Status, .. } => {
                let all = self.clients();
                self.reply(Peer(peer), request, &Message::Connected(all), None);
            }
            Received::Message { request, message, payload } => {
                heard.push(PeerEvent::Asked { peer: Peer(peer), request, message, payload });
            }
            Received::Welcome(_) => {
                unreachable!("the session lets only hello and requests through")
            }
        }
    }

    /// The clients that are connected, as many as a frame holds.
    fn clients(&self) -> Vec<Connected> {
        let clients = self.connections.values().filter(|connection| connection.is_client());
        let connected = clients.filter_map(|connection| {
            let name = connection.hello.as_ref()?.name.clone();
            Some(Connected { name, window_bytes: connection.channel.window_bytes() })
        });
        connected.take(CONNECTED_MAX).collect()
    }

    /// A connection was closed, or is to be.
    fn leave(
        &mut self,
        now: Nanos,
        peer: u32,
        lost: &Lost,
        buffers: &mut Buffers,
        heard: &mut Vec<PeerEvent>,
    ) {
        let connection = self.connections.get_mut(&peer).expect("it was just heard");
        if let Lost::Broken(_) = lost {
            // The session has told it why.
            let _ = connection.channel.send(&NoRows, buffers);
            return self.lose(peer, false, heard);
        }
        let has_ended = connection.process.as_ref().is_some_and(has_ended);
        if has_ended || connection.process.is_none() || connection.state != State::Known {
            return self.lose(peer, has_ended, heard);
        }
        // A process closes its files shortly before it has ended.
        connection.state = State::Leaving;
        connection.channel.close_window();
        let _ = epoll::delete(&*self.epoll, &connection.channel);
        self.deadlines.insert((Nanos(now.0 + FAREWELL.0), peer));
    }

    /// Forgets a connection.
    fn lose(&mut self, peer: u32, ended: bool, heard: &mut Vec<PeerEvent>) {
        if self.forget(Peer(peer)) != Some(State::Unproven) {
            heard.push(PeerEvent::Lost { peer: Peer(peer), ended });
        }
    }

    fn forget(&mut self, peer: Peer) -> Option<State> {
        let connection = self.connections.remove(&peer.0)?;
        // Closing takes both descriptors out of epoll: nobody else has them.
        if connection.state == State::Unproven {
            self.unproven -= 1;
            self.open_or_close();
        }
        self.unsent.remove(&peer.0);
        Some(connection.state)
    }

    /// Does what the machine wants of a peer.
    pub(crate) fn perform<P>(
        &mut self,
        action: PeerAction<P>,
        buffers: &mut Buffers,
        payload_of: impl FnOnce(P, &mut Buffers) -> Payload,
    ) {
        match action {
            PeerAction::Welcome { peer, known } => self.let_in(peer, known),
            PeerAction::Reply { peer, request, message, payload } => {
                let payload = payload.map(|payload| payload_of(payload, buffers));
                self.reply(peer, request, &message, payload);
            }
            PeerAction::Drop { peer, why } => self.drop(peer, why, buffers),
        }
    }

    fn let_in(&mut self, peer: Peer, known: bool) {
        let (windows, welcome) = (self.windows.clone(), Welcome { known, ..self.welcome });
        if let Some(connection) = self.live(peer) {
            let windows = windows.filter(|_| connection.is_client());
            connection.channel.welcome(welcome, windows.as_ref());
            self.unsent.insert(peer.0);
        }
    }

    /// A reply on its way. One to somebody who is gone goes nowhere.
    fn reply(&mut self, peer: Peer, request: Request, message: &Message, payload: Option<Payload>) {
        if let Some(connection) = self.live(peer) {
            connection.channel.reply(request, message, payload);
            self.unsent.insert(peer.0);
        }
    }

    /// Where in its window a peer wants so many bytes that it reads.
    pub(crate) fn room(&mut self, peer: Peer, request: Request, bytes: u32) -> Option<Stretch> {
        self.live(peer)?.channel.room(request, bytes)
    }

    fn live(&mut self, peer: Peer) -> Option<&mut Connection> {
        self.connections.get_mut(&peer.0).filter(|connection| connection.state == State::Known)
    }

    /// Ends a connection whose peer does what it must not.
    fn drop(&mut self, peer: Peer, why: &str, buffers: &mut Buffers) {
        if let Some(connection) = self.live(peer) {
            connection.channel.refuse(Code::BAD_MESSAGE, why);
            let _ = connection.channel.send(&NoRows, buffers);
        }
        self.forget(peer);
    }

    /// Sends what waits, as far as it is taken; hears those again who were not heard for that.
    pub(crate) fn send(&mut self, now: Nanos, buffers: &mut Buffers, heard: &mut Vec<PeerEvent>) {
        while let Some(peer) = self.unsent.pop_first() {
            let Some(connection) = self.connections.get_mut(&peer) else { continue };
            if connection.state == State::Leaving {
                continue;
            }
            let was_full = connection.channel.out().left() > ANSWERS_MAX;
            if let Err(lost) = connection.channel.send(&NoRows, buffers) {
                self.leave(now, peer, &lost, buffers, heard);
                continue;
            }
            let left = connection.channel.out().left();
            let reads = if left > ANSWERS_MAX { EventFlags::empty() } else { EventFlags::IN };
            let interest = reads | if left > 0 { EventFlags::OUT } else { EventFlags::empty() };
            if interest != connection.interest {
                connection.interest = interest;
                let data = EventData::new_u64(numbers(peer).0);
                let _ = epoll::modify(&*self.epoll, &connection.channel, data, interest);
            }
            if was_full && left <= ANSWERS_MAX && connection.channel.has_read_ahead() {
                self.hear(now, peer, buffers, heard);
            }
        }
    }
}

/// Whether a process has ended.
fn has_ended(process: &OwnedFd) -> bool {
    let mut ends = [PollFd::new(process, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut ends, Some(&at_once)).is_ok_and(|count| count > 0)
}

/// A new set of sockets.
pub(crate) fn epoll() -> Result<Epoll, Errno> {
    epoll::create(epoll::CreateFlags::CLOEXEC).map(Rc::new)
}

/// Adds one that is ready when it can be read.
pub(crate) fn watch(epoll: &Epoll, what: impl AsFd, number: u64) -> Result<(), Errno> {
    epoll::add(&**epoll, what, EventData::new_u64(number), EventFlags::IN)
}
