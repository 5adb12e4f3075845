//! One connection: a socket that never waits, the session machine, and payload straight into buffers.

use crate::buffers::Buffers;
use crate::outgoing::{Outgoing, Part, Rows};
use iolab_pfs::session::{Arrival, Broken, Frame, Hello, Session, Welcome};
use iolab_pfs::{Buffer, Message, Request, wire};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use std::fmt;

/// What is read ahead of payload, and then copied: more than any request without payload has, as a rule.
const AHEAD_BYTES: usize = 4096;

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
    buffer: Vec<u8>,
    have: usize,
    want: usize,
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
    incoming: Option<Incoming>,
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
        Channel { socket, session, out, ahead, unused: 0..0, incoming: None }
    }

    /// Lets the other side in.
    pub(crate) fn welcome(&mut self, welcome: Welcome) {
        let mut bytes = Vec::new();
        self.session.welcome(welcome, &mut bytes);
        self.out.push(Part::Bytes(bytes));
    }

    /// Tells the other side why the connection ends.
    pub(crate) fn refuse(&mut self, code: iolab_pfs::Code, text: &str) {
        let mut bytes = Vec::new();
        self.session.refuse(code, text, &mut bytes);
        self.out.push(Part::Bytes(bytes));
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
            match receive_some(&self.socket, &mut self.ahead[..])? {
                None => return Ok(None),
                Some(bytes) => self.unused = 0..bytes,
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
            Some(Arrival::Frame(Frame { request, message, payload_bytes: 0 })) => {
                Ok(Some(Received::Message { request, message, payload: None }))
            }
            Some(Arrival::Frame(Frame { request, message, payload_bytes })) => {
                let want = payload_bytes as usize;
                let buffer = buffers.take(want);
                self.incoming = Some(Incoming { request, message, buffer, have: 0, want });
                Ok(None)
            }
        }
    }

    fn receive_payload(&mut self, buffers: &mut Buffers) -> Result<Option<Received>, Lost> {
        let incoming = self.incoming.as_mut().expect("payload is coming");
        while incoming.have < incoming.want {
            let to = &mut incoming.buffer[incoming.have..incoming.want];
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
        let Incoming { request, message, buffer, want, .. } =
            self.incoming.take().expect("payload has come");
        let payload = Some((buffers.number(buffer, want), want as u64));
        Ok(Some(Received::Message { request, message, payload }))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
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
