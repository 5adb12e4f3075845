//! One connection: framing and handshake, as a machine that is fed bytes.
//!
//! The driver reads from its socket, in whatever chunks, and feeds the machine; what the machine appends
//! to `out` it sends. Payload does not pass through: behind a frame that has some, the driver reads it
//! straight to where it belongs.
//!
//! ```text
//! while !bytes.is_empty() {
//!     match session.feed(&mut bytes, &mut out) {
//!         Ok(Some(Arrival::Hello(hello))) => tell the machine PeerEvent::Up; later session.welcome(…, &mut out),
//!         Ok(Some(Arrival::Frame(frame))) => {
//!             while session.payload_bytes() > 0 { read so many; session.payload(&read)?; }
//!             now the frame is complete: tell the machine;
//!         }
//!         Ok(Some(Arrival::Bye)) => close,
//!         Ok(None) => all bytes were taken,
//!         Err(broken) => send what is in `out`, close,
//!     }
//! }
//! ```
//!
//! Promises: nothing but a greeting arrives before the handshake is over; a server gets only requests, an
//! asker only replies; the frames are the same however the bytes are cut; a request of a kind that is
//! not known here is answered, its payload skipped; whatever else comes ends the connection.
//!
//! Costs: each field byte is copied once and summed once. Memory: in proportion to what has come of one
//! frame, at most 1 MiB + 64 KiB, and 1 KiB before the handshake is over.
//!
//! What it leaves to the driver: who the other is by the kernel; to end a connection whose handshake takes
//! longer than [`HANDSHAKE_TIMEOUT`]; to read no more from a peer that does not take its answers.

pub use crate::greeting::{Greeting, Hello, Role, Welcome};

use crate::greeting::GREETING_BYTES_MAX;
use crate::window::{Slot, Window};
use crate::wire::{self, HEADER_BYTES, Header, Mangled};
use crate::{Code, Message, Request};
use iolab_vocab::Nanos;
use std::fmt;

/// How long drivers wait for the end of a handshake.
pub const HANDSHAKE_TIMEOUT: Nanos = Nanos(2_000_000_000);

/// What a connection keeps between frames: more than fields usually have, much less than they may.
const FIELD_BYTES_KEPT: usize = 4096;

/// What has come on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// At a server: somebody wants in. To be answered by [`Session::welcome`] or [`Session::refuse`].
    Hello(Hello),
    /// At an asker: it may send requests now.
    Welcome(Welcome),
    /// At an asker: the connection has a window from now on, whose memory comes beside the bytes.
    Segment(Window),
    /// A request or a reply.
    Frame(Frame),
    /// The other side ends the connection; nothing more comes.
    Bye,
}

/// A message as it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The request, or that which it replies to.
    pub request: Request,
    /// What it says.
    pub message: Message,
    /// Payload that follows: it is to be taken before anything else is fed.
    pub payload_bytes: u32,
    /// Where its payload is instead, or may go if it is a read: in the window of the connection.
    pub slot: Option<Slot>,
}

/// Why a connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// What came is no message.
    Mangled(Mangled),
    /// It is one, but not now, or not from this side.
    Unexpected(&'static str),
    /// The other side says that it ends it.
    Refused {
        /// Why.
        code: Code,
        /// The offence, for people.
        text: String,
    },
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Mangled(mangled) => mangled.fmt(f),
            Broken::Unexpected(what) => f.write_str(what),
            Broken::Refused { code, text } => write!(f, "refused: {code}: {text}"),
        }
    }
}

impl std::error::Error for Broken {}

impl From<Mangled> for Broken {
    fn from(mangled: Mangled) -> Broken {
        Broken::Mangled(mangled)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Asks,
    Serves,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// A server waits for the other's hello, an asker for its answer.
    Greeting,
    /// A server has got a hello, and has not answered it.
    Greeted,
    Open,
    Over,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Session {
    side: Side,
    phase: Phase,
    /// The header so far, while it is not complete.
    front: Vec<u8>,
    header: Option<Header>,
    /// The fields so far of a frame whose header is complete.
    fields: Vec<u8>,
    payload: Payload,
    window: Option<Window>,
}

/// Payload on its way.
#[derive(Debug, Default)]
struct Payload {
    left_bytes: u32,
    /// Nobody wants it.
    is_skipped: bool,
    /// The sum so far, and what it is to become.
    sums: Option<(u32, u32)>,
}

impl Session {
    /// The side that made the connection; `hello` is appended to `out`.
    pub fn asking(hello: Hello, out: &mut Vec<u8>) -> Session {
        Greeting::Hello(hello).encode(out);
        Session::new(Side::Asks)
    }

    /// The side that was connected to.
    pub fn serving() -> Session {
        Session::new(Side::Serves)
    }

    fn new(side: Side) -> Session {
        Session {
            side,
            phase: Phase::Greeting,
            front: Vec::with_capacity(HEADER_BYTES),
            header: None,
            fields: Vec::new(),
            payload: Payload::default(),
            window: None,
        }
    }

    /// Answers a hello: the connection may be used.
    pub fn welcome(&mut self, welcome: Welcome, out: &mut Vec<u8>) {
        assert_eq!(self.phase, Phase::Greeted, "a welcome answers a hello");
        self.phase = Phase::Open;
        Greeting::Welcome(welcome).encode(out);
    }

    /// Gives the connection a window; its memory is to be sent with the first byte of what this appends.
    pub fn grant(&mut self, window: Window, out: &mut Vec<u8>) {
        let is_first = self.side == Side::Serves && self.phase == Phase::Open;
        assert!(is_first && self.window.is_none(), "a server gives one window to whom it welcomed");
        self.window = Some(window);
        Greeting::Segment(window).encode(out);
    }

    /// Tells the other side, if it is the one that asks, why the connection ends; nothing more is taken.
    pub fn refuse(&mut self, code: Code, text: &str, out: &mut Vec<u8>) {
        self.phase = Phase::Over;
        if self.side == Side::Serves {
            Greeting::Refused { code, text: text.to_owned() }.encode(out);
        }
    }

    /// Tells the other side that the connection ends; nothing more is taken.
    pub fn bye(&mut self, out: &mut Vec<u8>) {
        self.phase = Phase::Over;
        Greeting::Bye.encode(out);
    }

    /// Whether the handshake is over and messages may be sent.
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// How many bytes are wanted before there can be anything new: whoever reads no more than that
    /// never reads payload by accident. 0 while payload is to be taken, and at the end.
    pub fn wants(&self) -> usize {
        match (&self.header, self.phase) {
            (_, Phase::Over) => 0,
            _ if self.payload.left_bytes > 0 && !self.payload.is_skipped => 0,
            _ if self.payload.left_bytes > 0 => self.payload.left_bytes as usize,
            (None, _) => HEADER_BYTES - self.front.len(),
            (Some(header), _) => header.field_bytes() as usize - self.fields.len(),
        }
    }

    /// Takes bytes from the front of `bytes` until something arrives or none are left. What is to be
    /// sent is appended to `out`, whatever the result. After an error nothing more is taken.
    pub fn feed(
        &mut self,
        bytes: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Arrival>, Broken> {
        assert_eq!(self.payload_bytes(), 0, "payload is taken before anything else");
        let found = self.advance(bytes, out);
        if let Err(broken) = &found {
            self.refuse(broken.code(), &broken.to_string(), out);
        }
        if self.phase == Phase::Over {
            *bytes = &[];
        }
        found
    }

    fn advance(&mut self, bytes: &mut &[u8], out: &mut Vec<u8>) -> Result<Option<Arrival>, Broken> {
        while self.phase != Phase::Over {
            self.skip(bytes);
            let Some(header) = self.header(bytes)? else { return Ok(None) };
            let missing = header.field_bytes() as usize - self.fields.len();
            self.fields.extend_from_slice(taken(bytes, missing));
            if self.fields.len() < header.field_bytes() as usize {
                return Ok(None);
            }
            let arrival = self.arrive(&header, out)?;
            self.header = None;
            self.front.clear();
            self.fields.clear();
            self.fields.shrink_to(FIELD_BYTES_KEPT);
            if arrival.is_some() {
                return Ok(arrival);
            }
        }
        Ok(None)
    }

    /// Drops payload that nobody wants.
    fn skip(&mut self, bytes: &mut &[u8]) {
        let skipped = taken(bytes, self.payload.left_bytes as usize).len();
        self.payload.left_bytes -= skipped as u32;
    }

    /// The header of the frame that is coming, once it is there.
    fn header(&mut self, bytes: &mut &[u8]) -> Result<Option<Header>, Broken> {
        if self.header.is_none() {
            self.front.extend_from_slice(taken(bytes, HEADER_BYTES - self.front.len()));
            let Some(front) = self.front.first_chunk() else { return Ok(None) };
            let header = Header::decode(front)?;
            self.check(&header)?;
            self.header = Some(header);
        }
        Ok(self.header)
    }

    /// Whether such a frame may come now; its header may still turn out to be changed.
    fn check(&self, header: &Header) -> Result<(), Broken> {
        let is_greeting = Greeting::has_kind(header.kind());
        if self.phase != Phase::Open && !is_greeting {
            return Err(Broken::Unexpected("a message before the handshake was over"));
        }
        if is_greeting && header.field_bytes() > GREETING_BYTES_MAX {
            return Err(Broken::Mangled(Mangled::Length));
        }
        match is_greeting && header.payload_bytes() > 0 {
            true => Err(Broken::Mangled(Mangled::Payload)),
            false => Ok(()),
        }
    }

    /// A frame has come up to its payload; `None` if it was dealt with here.
    fn arrive(&mut self, header: &Header, out: &mut Vec<u8>) -> Result<Option<Arrival>, Broken> {
        if Greeting::has_kind(header.kind()) {
            return self.greet(Greeting::decode(header, &self.fields)?).map(Some);
        }
        let message = wire::decode_with_slot(header, &self.fields);
        let is_unknown = matches!(message, Err(Mangled::Unknown { .. }));
        if header.is_reply() != (self.side == Side::Asks) && (is_unknown || message.is_ok()) {
            return Err(Broken::Unexpected(match self.side {
                Side::Asks => "a request from a server",
                Side::Serves => "a reply from somebody who asks",
            }));
        }
        let is_skipped = is_unknown && self.side == Side::Serves;
        if is_skipped {
            unsupported(header, out);
        }
        let sums = header.payload_sum().map(|wanted| (0, wanted));
        let payload_bytes = header.payload_bytes();
        let message = if is_skipped { None } else { Some(message?) };
        if let Some((_, Some(slot))) = message
            && !self.window.is_some_and(|window| window.holds(slot))
        {
            return Err(Broken::Mangled(Mangled::Slot));
        }
        self.payload = Payload { left_bytes: payload_bytes, is_skipped, sums };
        let request = header.request;
        let frame = |(message, slot)| Frame { request, message, payload_bytes, slot };
        Ok(message.map(|message| Arrival::Frame(frame(message))))
    }

    fn greet(&mut self, greeting: Greeting) -> Result<Arrival, Broken> {
        match (greeting, self.side, self.phase) {
            (Greeting::Hello(hello), Side::Serves, Phase::Greeting) => {
                self.phase = Phase::Greeted;
                Ok(Arrival::Hello(hello))
            }
            (Greeting::Welcome(welcome), Side::Asks, Phase::Greeting) => {
                self.phase = Phase::Open;
                Ok(Arrival::Welcome(welcome))
            }
            (Greeting::Segment(window), Side::Asks, Phase::Open) if self.window.is_none() => {
                self.window = Some(window);
                Ok(Arrival::Segment(window))
            }
            (Greeting::Refused { code, text }, Side::Asks, _) => {
                Err(Broken::Refused { code, text })
            }
            (Greeting::Bye, _, _) => {
                self.phase = Phase::Over;
                Ok(Arrival::Bye)
            }
            _ => Err(Broken::Unexpected("a greeting that has no place here")),
        }
    }

    /// How many bytes of payload the driver is still to take, of the frame that arrived last.
    pub fn payload_bytes(&self) -> u32 {
        if self.payload.is_skipped { 0 } else { self.payload.left_bytes }
    }

    /// Payload was taken: these bytes, not more than [`Session::payload_bytes`]. With the last of them an
    /// error tells that they are not those that were sent; then the frame must not be used.
    pub fn payload(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let left = (self.payload_bytes() as usize).checked_sub(bytes.len());
        self.payload.left_bytes = left.expect("no more payload than there is") as u32;
        let Some((sum, wanted)) = &mut self.payload.sums else { return Ok(()) };
        *sum = crc32c::crc32c_append(*sum, bytes);
        if self.payload.left_bytes > 0 || sum == wanted {
            return Ok(());
        }
        self.phase = Phase::Over;
        Err(Broken::Mangled(Mangled::PayloadSum))
    }
}

impl Broken {
    /// What the other side is told.
    fn code(&self) -> Code {
        match self {
            Broken::Mangled(Mangled::Version { .. }) => Code::UNSUPPORTED,
            _ => Code::BAD_MESSAGE,
        }
    }
}

/// Answers a request of an unknown kind.
fn unsupported(header: &Header, out: &mut Vec<u8>) {
    let text = format!("request of kind {}", header.kind());
    wire::encode(&Message::Failed { code: Code::UNSUPPORTED, text }, header.request, 0, None, out);
}

/// Takes up to so many bytes from the front.
fn taken<'a>(bytes: &mut &'a [u8], most: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(most.min(bytes.len()));
    *bytes = rest;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Inode, Layout, ViewNumber};

    fn open_server() -> Session {
        Session { phase: Phase::Open, ..Session::new(Side::Serves) }
    }

    /// A frame with so many bytes of fields.
    fn large(part_bytes: usize) -> Vec<u8> {
        let (view, inode, layout) = (ViewNumber(1), Inode(2), Layout::usual(3));
        let part = vec![5; part_bytes];
        let message = Message::SetView { view, inode, layout, offset: 0, total: 9, part };
        let mut frame = vec![];
        wire::encode(&message, Request(1), 0, None, &mut frame);
        frame
    }

    #[test]
    fn memory_is_taken_for_bytes_that_came_and_given_back() {
        let mut session = open_server();
        let frame = large(1 << 20);
        let (claim, rest) = frame.split_at(HEADER_BYTES + 10);
        assert_eq!(session.feed(&mut &claim[..], &mut vec![]), Ok(None));
        assert!(session.fields.capacity() < 100, "{}", session.fields.capacity());
        let arrival = session.feed(&mut &rest[..], &mut vec![]);
        assert!(matches!(arrival, Ok(Some(Arrival::Frame(_)))), "{arrival:?}");
        assert!(session.fields.capacity() <= FIELD_BYTES_KEPT);
    }

    #[test]
    fn the_largest_frame_is_taken() {
        let frame = large(wire::BODY_BYTES_MAX as usize - (large(0).len() - HEADER_BYTES));
        assert_eq!(frame.len(), wire::BODY_BYTES_MAX as usize + HEADER_BYTES);
        let arrival = open_server().feed(&mut &frame[..], &mut vec![]);
        assert!(matches!(arrival, Ok(Some(Arrival::Frame(_)))));
    }
}
