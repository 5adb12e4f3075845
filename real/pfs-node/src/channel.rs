//! One connection: a socket that never waits, the session machine, and payload straight to where it belongs:
//! in a slot of the connection's window if it has one, or through the socket into a buffer.

use crate::buffers::{Buffers, Payload};
use crate::incoming::{Incoming, Nothing};
use crate::outgoing::{Outgoing, Part, Rows};
use crate::window::{Budget, Stretch, Window};
use iolab_pfs::session::{Arrival, Broken, Frame, Hello, Session, Welcome};
use iolab_pfs::window::Slot;
use iolab_pfs::wire::{self, Mangled};
use iolab_pfs::{Buffer, Message, Request};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

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
struct Unfinished {
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
    incoming: Incoming,
    unfinished: Option<Unfinished>,
    window: Option<Arc<Window>>,
    /// On the side that asks: the slots of requests without reply.
    taken: BTreeMap<Request, Stretch>,
    /// On the side that serves: where replies to reads may go.
    rooms: BTreeMap<Request, Slot>,
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
        if !greeting.is_empty() {
            out.push(Part::Bytes(greeting));
        }
        Channel {
            socket,
            session,
            out,
            incoming: Incoming::default(),
            unfinished: None,
            window: None,
            taken: BTreeMap::new(),
            rooms: BTreeMap::new(),
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
        !self.incoming.unused().is_empty()
    }

    /// What has come next; nothing if it is not there yet.
    pub(crate) fn receive(&mut self, buffers: &mut Buffers) -> Result<Option<Received>, Lost> {
        loop {
            if self.unfinished.is_some() {
                return self.receive_payload(buffers);
            }
            if self.has_read_ahead() {
                match self.feed(buffers)? {
                    Some(received) => return Ok(Some(received)),
                    None => continue,
                }
            }
            // A descriptor comes with a window, and there is one at most.
            if there(self.incoming.read(&self.socket, self.window.is_none()))?.is_none() {
                return Ok(None);
            }
        }
    }

    /// Gives the session what was read ahead, until something has arrived.
    fn feed(&mut self, buffers: &mut Buffers) -> Result<Option<Received>, Lost> {
        let mut bytes = self.incoming.unused();
        let mut answer = Vec::new();
        let arrived = self.session.feed(&mut bytes, &mut answer);
        let left = bytes.len();
        self.incoming.leave(left);
        if !answer.is_empty() {
            self.out.push(Part::Bytes(answer));
        }
        match arrived.map_err(Lost::Broken)? {
            None => Ok(None),
            Some(Arrival::Bye) => Err(Lost::Closed),
            Some(Arrival::Hello(hello)) => Ok(Some(Received::Hello(hello))),
            Some(Arrival::Welcome(welcome)) => Ok(Some(Received::Welcome(welcome))),
            Some(Arrival::Segment(shape)) => {
                let descriptor = self.incoming.descriptor();
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
                self.unfinished = Some(Unfinished { request, message, payload, have: 0 });
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
        let frame = self.unfinished.as_mut().expect("payload is coming");
        let want = frame.payload.bytes().len();
        while frame.have < want {
            let to = &mut frame.payload.bytes_mut()[frame.have..];
            let Some(bytes) = there(self.incoming.take(&self.socket, to))? else {
                return Ok(None);
            };
            self.session.payload(&to[..bytes]).map_err(Lost::Broken)?;
            frame.have += bytes;
        }
        let Unfinished { request, message, payload, .. } =
            self.unfinished.take().expect("payload has come");
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

/// What has come, if it has; nothing if it is not there yet.
fn there<T>(came: Result<T, Nothing>) -> Result<Option<T>, Lost> {
    match came {
        Ok(came) => Ok(Some(came)),
        Err(Nothing::Yet) => Ok(None),
        Err(Nothing::Closed) => Err(Lost::Closed),
        Err(Nothing::Failed(error)) => Err(Lost::Failed(error)),
    }
}

#[cfg(test)]
mod tests;
