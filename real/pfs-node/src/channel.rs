//! One connection: a socket that never waits, the session machine, and payload straight to where it belongs:
//! in a slot of the connection's window if it has one, or through the socket into a buffer.

use crate::buffers::{Buffers, Payload};
use crate::outgoing::{Outgoing, Part, Rows};
use crate::window::{Budget, Stretch, Window};
use iolab_pfs::session::{Arrival, Broken, Frame, Hello, Session, Welcome};
use iolab_pfs::window::Slot;
use iolab_pfs::wire::{self, Mangled};
use iolab_pfs::{Buffer, Message, Request};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use std::collections::BTreeMap;
use std::fmt;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// What is read ahead of payload, and then copied: more than any request without payload has, as a rule.
const AHEAD_BYTES: usize = 4096;
/// Payload that is worth a slot: less comes with its frame in what is read ahead.
const IN_WINDOW_BYTES_MIN: u32 = 2048;

/// What has come.
#[derive(Debug)]
pub(crate) enum Received {
    /// Somebody wants in.
    Hello(Hello),
    /// They let us in.
    Welcome(Welcome),
    /// A request, or a reply, with its payload.
    Message { request: Request, message: Message, payload: Option<(Buffer, u64)> },
}

/// Why a connection is no more.
#[derive(Debug)]
pub(crate) enum Lost {
    /// The other side has closed it.
    Closed,
    /// It says what it must not.
    Broken(Broken),
    /// The system says so.
    Failed(Errno),
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lost::Closed => f.write_str("it was closed"),
            Lost::Broken(broken) => broken.fmt(f),
            Lost::Failed(error) => error.fmt(f),
        }
    }
}

/// A frame whose payload is coming.
#[derive(Debug)]
struct Incoming {
    request: Request,
    message: Message,
    payload: Payload,
    have: usize,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: OwnedFd,
    session: Session,
    out: Outgoing,
    ahead: Box<[u8; AHEAD_BYTES]>,
    /// What of it is not used yet.
    unused: std::ops::Range<usize>,
    /// Whether the socket had no more when it was read last.
    is_drained: bool,
    incoming: Option<Incoming>,
    window: Option<Arc<Window>>,
    /// On the side that asks: the slots of requests without reply.
    taken: BTreeMap<Request, Stretch>,
    /// On the side that serves: where replies to reads may go.
    rooms: BTreeMap<Request, Slot>,
    /// What came beside the bytes, until it is known what for.
    descriptor: Option<OwnedFd>,
}

impl Channel {
    /// A connection that was accepted.
    pub(crate) fn serving(socket: OwnedFd) -> Channel {
        Channel::new(socket, Session::serving(), Vec::new())
    }

    /// A connection that was made; says hello.
    pub(crate) fn asking(socket: OwnedFd, hello: Hello) -> Channel {
        let mut greeting = Vec::new();
        let session = Session::asking(hello, &mut greeting);
        Channel::new(socket, session, greeting)
    }

    fn new(socket: OwnedFd, session: Session, greeting: Vec<u8>) -> Channel {
        let mut out = Outgoing::default();
        out.push(Part::Bytes(greeting));
        let ahead = Box::new([0; AHEAD_BYTES]);
        Channel {
            socket,
            session,
            out,
            ahead,
            unused: 0..0,
            is_drained: false,
            incoming: None,
            window: None,
            taken: BTreeMap::new(),
            rooms: BTreeMap::new(),
            descriptor: None,
        }
    }

    /// Lets the other side in, with a window if there is room for one.
    pub(crate) fn welcome(&mut self, welcome: Welcome, windows: Option<&Arc<Budget>>) {
        let mut bytes = Vec::new();
        self.session.welcome(welcome, &mut bytes);
        let part = match windows.and_then(Window::make) {
            None => Part::Bytes(bytes),
            Some((window, descriptor)) => {
                self.session.grant(window.shape(), &mut bytes);
                self.window = Some(window);
                Part::Beside(bytes, descriptor)
            }
        };
        self.out.push(part);
    }

    /// Tells the other side why the connection ends.
    pub(crate) fn refuse(&mut self, code: iolab_pfs::Code, text: &str) {
        let mut bytes = Vec::new();
        self.session.refuse(code, text, &mut bytes);
        self.out.push(Part::Bytes(bytes));
    }

    /// Lets go of the window: nobody is there to use it. What is under way keeps it until it is done.
    pub(crate) fn close_window(&mut self) {
        self.window = None;
    }

    /// What of memory payload goes through.
    pub(crate) fn window_bytes(&self) -> u64 {
        self.window.as_ref().map_or(0, |window| window.shape().bytes())
    }

    /// Puts a message on its way, with payload that is in `parts`.
    pub(crate) fn push(
        &mut self,
        request: Request,
        message: &Message,
        parts: Vec<Part>,
        bytes: u32,
    ) {
        let mut head = Vec::with_capacity(128);
        // No sum of payload: on a socket of this host nothing corrupts it that would leave memory intact.
        wire::encode(message, request, bytes, None, &mut head);
        self.out.push(Part::Bytes(head));
        for part in parts {
            self.out.push(part);
        }
    }

    /// A slot of the window for so many bytes; none if they are few, or there is no window or no free slot.
    pub(crate) fn slot_for(&self, bytes: u32) -> Option<Stretch> {
        let window = self.window.as_ref().filter(|_| bytes >= IN_WINDOW_BYTES_MIN)?;
        window.take(bytes)
    }

    /// A slot for what a read of at most so many bytes may bring: one transfer is no more than that.
    pub(crate) fn room_for(&self, bytes: u64) -> Option<Stretch> {
        let slot_bytes = self.window.as_ref()?.shape().slot_bytes();
        self.slot_for(bytes.min(slot_bytes.into()) as u32)
    }

    /// Puts a request on its way whose payload is in a slot, or that of its reply may be.
    pub(crate) fn push_with_slot(&mut self, request: Request, message: &Message, slot: Stretch) {
        self.push_head(request, message, slot.slot());
        self.taken.insert(request, slot);
    }

    /// Where the reply to a read may go, if there is room for so many bytes.
    pub(crate) fn room(&self, request: Request, bytes: u32) -> Option<Stretch> {
        let slot = self.rooms.get(&request).filter(|room| bytes > 0 && bytes <= room.bytes)?;
        self.window.as_ref()?.stretch(Slot { bytes, ..*slot })
    }

    /// Puts a reply on its way.
    pub(crate) fn reply(&mut self, request: Request, message: &Message, payload: Option<Payload>) {
        self.rooms.remove(&request);
        match (payload, &self.window) {
            (Some(Payload::Stretch(stretch)), Some(window)) if stretch.is_in(window) => {
                self.push_head(request, message, stretch.slot());
            }
            (payload, _) => {
                let bytes = payload.as_ref().map_or(0, |payload| payload.bytes().len());
                let parts = payload.map(Part::Payload).into_iter().collect();
                self.push(request, message, parts, bytes as u32);
            }
        }
    }

    fn push_head(&mut self, request: Request, message: &Message, slot: Slot) {
        let mut head = Vec::with_capacity(128);
        wire::encode_with_slot(message, request, slot, &mut head);
        self.out.push(Part::Bytes(head));
    }

    /// What is on its way.
    pub(crate) fn out(&self) -> &Outgoing {
        &self.out
    }

    /// Sends what the socket takes.
    pub(crate) fn send(&mut self, rows: &impl Rows, buffers: &mut Buffers) -> Result<(), Lost> {
        self.out.send(&self.socket, rows, buffers).map_err(Lost::Failed)
    }

    /// Whether bytes were read that are not used yet, of which the socket tells nobody.
    pub(crate) fn has_read_ahead(&self) -> bool {
        !self.unused.is_empty()
    }

    /// What has come next; nothing if it is not there yet.
    pub(crate) fn receive(&mut self, buffers: &mut Buffers) -> Result<Option<Received>, Lost> {
        loop {
            if self.incoming.is_some() {
                return self.receive_payload(buffers);
            }
            if !self.unused.is_empty() {
                match self.feed(buffers)? {
                    Some(received) => return Ok(Some(received)),
                    None => continue,
                }
            }
            // Asking the socket once more for nothing is a system call; whoever waits for it is told.
            if std::mem::take(&mut self.is_drained) {
                return Ok(None);
            }
            let came = match self.window {
                None => receive_beside(&self.socket, &mut self.ahead[..], &mut self.descriptor)?,
                Some(_) => receive_some(&self.socket, &mut self.ahead[..])?,
            };
            match came {
                None => return Ok(None),
                Some(bytes) => {
                    self.unused = 0..bytes;
                    self.is_drained = bytes < AHEAD_BYTES;
                }
            }
        }
    }

    /// Gives the session what was read ahead, until something has arrived.
    fn feed(&mut self, buffers: &mut Buffers) -> Result<Option<Received>, Lost> {
        let mut bytes = &self.ahead[self.unused.clone()];
        let mut answer = Vec::new();
        let arrived = self.session.feed(&mut bytes, &mut answer);
        self.unused.start = self.unused.end - bytes.len();
        if !answer.is_empty() {
            self.out.push(Part::Bytes(answer));
        }
        match arrived.map_err(Lost::Broken)? {
            None => Ok(None),
            Some(Arrival::Bye) => Err(Lost::Closed),
            Some(Arrival::Hello(hello)) => Ok(Some(Received::Hello(hello))),
            Some(Arrival::Welcome(welcome)) => Ok(Some(Received::Welcome(welcome))),
            Some(Arrival::Segment(shape)) => {
                let descriptor = self.descriptor.take();
                self.window = descriptor.and_then(|file| Window::receive(&file, shape));
                Ok(None)
            }
            Some(Arrival::Frame(frame)) => self.arrive(frame, buffers),
        }
    }

    /// A frame has come up to its payload.
    fn arrive(&mut self, frame: Frame, buffers: &mut Buffers) -> Result<Option<Received>, Lost> {
        let Frame { request, message, payload_bytes, slot } = frame;
        // Whatever the reply is, the request does not need its slot any more.
        let taken = self.taken.remove(&request);
        let payload = match (slot, &message) {
            (None, _) if payload_bytes > 0 => {
                let payload = buffers.take(payload_bytes as usize);
                self.incoming = Some(Incoming { request, message, payload, have: 0 });
                return Ok(None);
            }
            (None, _) => None,
            (Some(room), Message::Read(_)) => {
                self.rooms.insert(request, room);
                None
            }
            (Some(slot), Message::Data { .. }) => Some(front_of(taken, slot)?),
            (Some(slot), _) => {
                let window = self.window.as_ref().and_then(|window| window.stretch(slot));
                Some(window.ok_or(Lost::Failed(Errno::NOMEM))?)
            }
        };
        let payload = payload.map(|stretch| {
            let bytes = stretch.slot().bytes.into();
            (buffers.number(Payload::Stretch(stretch)), bytes)
        });
        Ok(Some(Received::Message { request, message, payload }))
    }

    fn receive_payload(&mut self, buffers: &mut Buffers) -> Result<Option<Received>, Lost> {
        let incoming = self.incoming.as_mut().expect("payload is coming");
        let want = incoming.payload.bytes().len();
        while incoming.have < want {
            let to = &mut incoming.payload.bytes_mut()[incoming.have..];
            let bytes = if self.unused.is_empty() {
                match receive_some(&self.socket, to)? {
                    None => return Ok(None),
                    Some(bytes) => bytes,
                }
            } else {
                let bytes = to.len().min(self.unused.len());
                to[..bytes].copy_from_slice(&self.ahead[self.unused.start..][..bytes]);
                self.unused.start += bytes;
                bytes
            };
            self.session.payload(&to[..bytes]).map_err(Lost::Broken)?;
            incoming.have += bytes;
        }
        let Incoming { request, message, payload, .. } =
            self.incoming.take().expect("payload has come");
        let payload = Some((buffers.number(payload), want as u64));
        Ok(Some(Received::Message { request, message, payload }))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What a reply has brought to the front of the slot of its request.
fn front_of(taken: Option<Stretch>, slot: Slot) -> Result<Stretch, Lost> {
    let front = taken.filter(|taken| taken.slot().offset == slot.offset);
    let front = front.and_then(|taken| taken.front(slot.bytes));
    front.ok_or(Lost::Broken(Broken::Mangled(Mangled::Slot)))
}

/// Reads what is there, and takes a descriptor that comes with it; nothing if there is nothing yet.
fn receive_beside(
    socket: &OwnedFd,
    to: &mut [u8],
    descriptor: &mut Option<OwnedFd>,
) -> Result<Option<usize>, Lost> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    loop {
        match rustix::net::recvmsg(socket, &mut [IoSliceMut::new(to)], &mut beside, flags) {
            Ok(came) => {
                for message in beside.drain() {
                    if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                        *descriptor = descriptors.last();
                    }
                }
                return if came.bytes == 0 { Err(Lost::Closed) } else { Ok(Some(came.bytes)) };
            }
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(error) => return Err(Lost::Failed(error)),
        }
    }
}

/// Reads what is there; nothing if there is nothing yet.
fn receive_some(socket: &OwnedFd, to: &mut [u8]) -> Result<Option<usize>, Lost> {
    loop {
        match rustix::net::recv(socket, &mut *to, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(Lost::Closed),
            Ok((bytes, _)) => return Ok(Some(bytes)),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(error) => return Err(Lost::Failed(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outgoing::NoRows;
    use iolab_pfs::session::Role;
    use iolab_pfs::{Access, Incarnation, Party, SessionId, ViewNumber};
    use rustix::net::{AddressFamily, SocketFlags, SocketType};

    const ACCESS: Access = Access { view: ViewNumber(0), subfile: 0, from: 0, to: 1 << 30 };

    /// Somebody who asks, and a server that gives them a window of that budget, after the handshake.
    fn connected(bytes: u64, buffers: &mut Buffers) -> (Channel, Channel) {
        let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
        let ends = rustix::net::socketpair(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        let name = "a test".to_owned();
        let hello = Hello { session: SessionId(1), role: Role::Client, name };
        let (mut asker, mut server) = (Channel::asking(ends.0, hello), Channel::serving(ends.1));
        asker.send(&NoRows, buffers).unwrap();
        assert!(matches!(server.receive(buffers), Ok(Some(Received::Hello(_)))));
        assert!(matches!(server.receive(buffers), Ok(None)));
        let (incarnation, party) = (Incarnation(1), Party::Server(0));
        let welcome = Welcome { incarnation, known: false, party, servers: 1 };
        server.welcome(welcome, Some(&Budget::of(Some(bytes))));
        server.send(&NoRows, buffers).unwrap();
        assert!(matches!(asker.receive(buffers), Ok(Some(Received::Welcome(_)))));
        assert!(matches!(asker.receive(buffers), Ok(None)));
        (asker, server)
    }

    fn sent(from: &mut Channel, to: &mut Channel, buffers: &mut Buffers) -> Result<Payload, Lost> {
        from.send(&NoRows, buffers).unwrap();
        let received = to.receive(buffers)?.expect("all of it is there");
        assert!(matches!(to.receive(buffers), Ok(None)));
        match received {
            Received::Message { payload: Some((buffer, _)), .. } => Ok(buffers.claim(buffer)),
            Received::Message { payload: None, .. } => Ok(Payload::Buffer(Vec::new(), 0)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn payload_of_writes_and_replies_goes_through_the_window_and_slots_are_used_again() {
        let (buffers, data) = (&mut Buffers::default(), Message::Data { end: 0 });
        let (mut asker, mut server) = connected(64 << 20, buffers);
        for round in 0..3u8 {
            let (write, read) = (Request(u64::from(round) * 2), Request(u64::from(round) * 2 + 1));
            let mut slot = asker.slot_for(200_000).unwrap();
            assert_eq!(slot.slot().offset, 0);
            slot.bytes_mut().fill(round);
            asker.push_with_slot(write, &Message::Write(ACCESS), slot);
            let payload = sent(&mut asker, &mut server, buffers).unwrap();
            assert!(payload.bytes() == [round; 200_000]);
            server.reply(write, &Message::Done, None);
            sent(&mut server, &mut asker, buffers).unwrap();

            let room = asker.room_for(ACCESS.to).unwrap();
            assert_eq!(room.slot(), Slot { offset: 0, bytes: 256 << 10 });
            asker.push_with_slot(read, &Message::Read(ACCESS), room);
            sent(&mut asker, &mut server, buffers).unwrap();
            assert!(server.room(read, (256 << 10) + 1).is_none());
            assert!(server.room(Request(99), 1).is_none());
            let mut to = server.room(read, 70_000).unwrap();
            to.bytes_mut().fill(round + 100);
            server.reply(read, &data, Some(Payload::Stretch(to)));
            assert!(server.rooms.is_empty());
            let payload = sent(&mut server, &mut asker, buffers).unwrap();
            assert!(payload.bytes() == [round + 100; 70_000]);
            assert!(matches!(payload, Payload::Stretch(_)));
        }
    }

    #[test]
    fn a_reply_anywhere_but_in_the_front_of_its_slot_is_the_end_of_the_connection() {
        let wrong = |asks: bool, slot: Slot| {
            let buffers = &mut Buffers::default();
            let (mut asker, mut server) = connected(64 << 20, buffers);
            if asks {
                let room = asker.room_for(10_000).unwrap();
                asker.push_with_slot(Request(1), &Message::Read(ACCESS), room);
            }
            server.push_head(Request(1), &Message::Data { end: 0 }, slot);
            sent(&mut server, &mut asker, buffers).map(drop)
        };
        assert!(wrong(true, Slot { offset: 0, bytes: 10_000 }).is_ok());
        for (asks, offset, bytes) in
            [(false, 0, 10), (true, 1, 10), (true, 0, 10_001), (true, 256 << 10, 10)]
        {
            let lost = wrong(asks, Slot { offset, bytes });
            assert!(matches!(lost, Err(Lost::Broken(_))), "{offset} {bytes}: {lost:?}");
        }
    }

    #[test]
    fn a_reply_from_the_window_of_a_lost_connection_comes_through_the_socket() {
        let buffers = &mut Buffers::default();
        let (_, before) = connected(64 << 20, buffers);
        let (mut asker, mut server) = connected(64 << 20, buffers);
        let slot = Slot { offset: 4096, bytes: 5000 };
        let mut stretch = before.window.as_ref().unwrap().stretch(slot).unwrap();
        stretch.bytes_mut().fill(3);
        drop(before);
        server.reply(Request(1), &Message::Data { end: 0 }, Some(Payload::Stretch(stretch)));
        let payload = sent(&mut server, &mut asker, buffers).unwrap();
        assert!(payload.bytes() == [3; 5000] && matches!(payload, Payload::Buffer(..)));
    }

    #[test]
    fn who_gets_no_window_has_no_slots_and_little_payload_needs_none() {
        let buffers = &mut Buffers::default();
        let (asker, server) = connected(0, buffers);
        assert!(asker.slot_for(1 << 20).is_none() && server.room(Request(1), 1).is_none());
        let (asker, _server) = connected(64 << 20, buffers);
        assert!(asker.slot_for(IN_WINDOW_BYTES_MIN - 1).is_none() && asker.room_for(8).is_none());
        let all: Vec<_> = std::iter::from_fn(|| asker.slot_for(256 << 10)).collect();
        assert_eq!(all.len(), 16);
    }
}
