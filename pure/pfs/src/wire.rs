//! Frames: messages as bytes, byte exact in `docs/format/pfs-wire.md`.
//!
//! A frame is a header of 32 bytes, the fields of one message, and perhaps payload, which the driver
//! writes and reads itself. Header and fields have a sum; payload has one where wires may corrupt it.
//!
//! Promises: `decode` of what `encode` gave is the message; bytes that decode are those that `encode`
//! gives; whatever the bytes are, there is a message or a [`Mangled`], and memory is only taken in
//! proportion to bytes that are there. Costs: one pass over the fields for each of sum and fields.

use crate::cache_manager::Counts;
use crate::codec::{Counted, Reader, Sink, Wrong};
use crate::window::Slot;
use crate::{
    Access, Attributes, Connected, Entry, HoldNumber, Message, OpenNumber, OpenWish, Opened,
    Request, ViewNumber,
};
use std::fmt;

/// The version of the protocol that is spoken here.
pub const VERSION: u16 = 1;
/// A header.
pub const HEADER_BYTES: usize = 32;
/// What may follow a header: fields and payload.
pub const BODY_BYTES_MAX: u32 = (1 << 20) + (64 << 10);

/// Answers a request.
pub(crate) const REPLY: u16 = 1;
/// Says that something failed.
pub(crate) const ERROR: u16 = 2;
/// The payload has no sum: on sockets of one host it costs as much as the copy, and guards against nothing.
const UNSUMMED: u16 = 32;
/// The payload is in the connection's window, in the slot that stands behind the fields; for a read, that
/// is where its data may go.
const IN_WINDOW: u16 = 8;

/// The least that an entry of a directory takes.
const ENTRY_BYTES_MIN: usize = 4 + 8 + 1 + 4 + 1 + 1;
/// The least that somebody who is connected takes.
const CONNECTED_BYTES_MIN: usize = 4 + 8;

/// What stands in front of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    body_bytes: u32,
    kind: u16,
    flags: u16,
    /// The request that the frame is, or replies to.
    pub request: Request,
    payload_bytes: u32,
    sum: u32,
    payload_sum: u32,
    credit: u32,
}

impl Header {
    /// Reads a header. Whether it is intact, is seen together with the fields.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Header, Mangled> {
        let header = Header::fields(bytes).expect("a header has all its bytes");
        if header.body_bytes > BODY_BYTES_MAX || header.payload_bytes > header.body_bytes {
            return Err(Mangled::Length);
        }
        let is_unsummed = header.flags & UNSUMMED != 0;
        let is_in_window = header.flags & IN_WINDOW != 0;
        let is_sensible = match (header.payload_bytes, header.payload_sum) {
            (0, sum) => sum == 0 && !is_unsummed,
            (_, sum) => !is_in_window && (sum == 0 || !is_unsummed),
        };
        match is_sensible && header.flags & !(REPLY | ERROR | IN_WINDOW | UNSUMMED) == 0 {
            true => Ok(header),
            false => Err(Mangled::Flags),
        }
    }

    /// A header as it is before anything is known of the frame but its kind.
    pub(crate) fn bare(kind: u16, flags: u16) -> Header {
        let request = Request(0);
        let (body_bytes, payload_bytes, sum, payload_sum, credit) = (0, 0, 0, 0, 0);
        Header { body_bytes, kind, flags, request, payload_bytes, sum, payload_sum, credit }
    }

    fn fields(bytes: &[u8]) -> Result<Header, Wrong> {
        let mut read = Reader::new(bytes);
        Ok(Header {
            body_bytes: read.u32()?,
            kind: read.u16()?,
            flags: read.u16()?,
            request: Request(read.u64()?),
            payload_bytes: read.u32()?,
            sum: read.u32()?,
            payload_sum: read.u32()?,
            credit: read.u32()?,
        })
    }

    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&self.body_bytes.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.kind.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.flags.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.request.0.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.sum.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.payload_sum.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.credit.to_le_bytes());
        bytes
    }

    /// What the sum of header and fields ought to be.
    fn sum_with(&self, fields: &[u8]) -> u32 {
        let unsummed = Header { sum: 0, ..*self };
        crc32c::crc32c_append(crc32c::crc32c(&unsummed.encode()), fields)
    }

    /// Bytes of the message's fields, with the slot if there is one, which follow the header.
    pub fn field_bytes(&self) -> u32 {
        self.body_bytes - self.payload_bytes
    }

    /// Bytes of the payload, which follows the fields.
    pub fn payload_bytes(&self) -> u32 {
        self.payload_bytes
    }

    /// The sum that the payload must have, if it has one: see [`payload_sum`].
    pub fn payload_sum(&self) -> Option<u32> {
        (self.payload_bytes > 0 && self.flags & UNSUMMED == 0).then_some(self.payload_sum)
    }

    /// Whether it answers a request.
    pub fn is_reply(&self) -> bool {
        self.flags & REPLY != 0
    }

    /// What kind of message follows, by its number.
    pub fn kind(&self) -> u16 {
        self.kind
    }

    pub(crate) fn flags(&self) -> u16 {
        self.flags
    }

    /// Whether header and fields are as they were sent.
    pub(crate) fn check(&self, fields: &[u8]) -> Result<(), Mangled> {
        if fields.len() != self.field_bytes() as usize {
            return Err(Mangled::Length);
        }
        match self.sum == self.sum_with(fields) {
            true => Ok(()),
            false => Err(Mangled::Sum),
        }
    }
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mangled {
    /// It is longer than a frame may be, its payload longer than itself, or there are other bytes.
    Length,
    /// Its flags contradict each other, its kind or the rest of its header.
    Flags,
    /// Something was changed on the way: header or fields.
    Sum,
    /// The payload was changed on the way.
    PayloadSum,
    /// It is intact, but of a kind that is not known here.
    Unknown {
        /// Its number.
        kind: u16,
    },
    /// It has payload, which its kind must not have.
    Payload,
    /// It speaks of a slot that the window does not have, or that is nothing.
    Slot,
    /// It is a greeting in versions that are not spoken here.
    Version {
        /// The oldest.
        min: u16,
        /// The newest.
        max: u16,
    },
    /// Its fields are not those of its kind.
    Fields(&'static str),
}

impl fmt::Display for Mangled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mangled::Length => f.write_str("a frame of an impossible length"),
            Mangled::Flags => f.write_str("a frame with impossible flags"),
            Mangled::Sum => f.write_str("a frame with a wrong sum"),
            Mangled::PayloadSum => f.write_str("payload with a wrong sum"),
            Mangled::Unknown { kind } => write!(f, "a frame of the unknown kind {kind}"),
            Mangled::Payload => f.write_str("payload with a message that has none"),
            Mangled::Slot => f.write_str("payload in a slot that is not in the window"),
            Mangled::Version { min, max } => {
                write!(
                    f,
                    "versions {min} to {max} of the protocol; version {VERSION} is spoken here"
                )
            }
            Mangled::Fields(what) => write!(f, "fields of a message: {what}"),
        }
    }
}

impl std::error::Error for Mangled {}

/// The sum that payload gets where it gets one: CRC-32C.
pub fn payload_sum(payload: &[u8]) -> u32 {
    crc32c::crc32c(payload)
}

/// Appends a frame without its payload, which is to follow: `payload_bytes` of it, with the sum that
/// [`payload_sum`] gives, or without one on sockets of one host.
///
/// The frame must be within [`BODY_BYTES_MAX`], and only writes and data have payload.
pub fn encode(
    message: &Message,
    request: Request,
    payload_bytes: u32,
    payload_sum: Option<u32>,
    out: &mut Vec<u8>,
) {
    assert!(payload_bytes == 0 || has_payload(message), "payload with {message:?}");
    let mut header = Header::bare(kind_of(message), flags_of(message));
    header.request = request;
    header.payload_bytes = payload_bytes;
    match payload_sum {
        _ if payload_bytes == 0 => {}
        Some(sum) => header.payload_sum = sum,
        None => header.flags |= UNSUMMED,
    }
    seal(header, out, |out| put(message, out));
}

/// Appends a frame whose payload is in a slot of the connection's window, or may go there if it is a read.
pub fn encode_with_slot(message: &Message, request: Request, slot: Slot, out: &mut Vec<u8>) {
    assert!(may_have_slot(message) && slot.bytes > 0, "a slot with {message:?}");
    let mut header = Header::bare(kind_of(message), flags_of(message) | IN_WINDOW);
    header.request = request;
    seal(header, out, |out| {
        put(message, out);
        out.u64(slot.offset);
        out.u32(slot.bytes);
    });
}

/// Appends a header, completed, and the fields behind it.
pub(crate) fn seal(mut header: Header, out: &mut Vec<u8>, fields: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0; HEADER_BYTES]);
    fields(out);
    let (front, fields) = out[start..].split_at_mut(HEADER_BYTES);
    let body_bytes = fields.len() as u64 + u64::from(header.payload_bytes);
    assert!(body_bytes <= u64::from(BODY_BYTES_MAX), "a frame of {body_bytes} bytes");
    header.body_bytes = body_bytes as u32;
    header.sum = header.sum_with(fields);
    front.copy_from_slice(&header.encode());
}

/// Reads the message of a frame where there are no windows: `fields` is what lies between header and
/// payload.
pub fn decode(header: &Header, fields: &[u8]) -> Result<Message, Mangled> {
    match decode_with_slot(header, fields)? {
        (message, None) => Ok(message),
        (_, Some(_)) => Err(Mangled::Slot),
    }
}

/// Reads the message of a frame, and the slot that it speaks of.
pub fn decode_with_slot(
    header: &Header,
    fields: &[u8],
) -> Result<(Message, Option<Slot>), Mangled> {
    header.check(fields)?;
    let mut read = Reader::new(fields);
    let message = take(header.kind, &mut read).map_err(Mangled::Fields)?;
    let message = message.ok_or(Mangled::Unknown { kind: header.kind })?;
    let slot = (header.flags & IN_WINDOW != 0).then(|| take_slot(&mut read)).transpose();
    let slot = slot.map_err(Mangled::Fields)?;
    read.end().map_err(Mangled::Fields)?;
    if header.flags & !(IN_WINDOW | UNSUMMED) != flags_of(&message) {
        return Err(Mangled::Flags);
    }
    let has_place = match slot {
        Some(_) => may_have_slot(&message),
        None => header.payload_bytes == 0 || has_payload(&message),
    };
    match has_place {
        false => Err(Mangled::Payload),
        true if slot.is_some_and(|slot| slot.bytes == 0) => Err(Mangled::Slot),
        true => Ok((message, slot)),
    }
}

/// Bytes of a message on the wire, without payload.
pub fn message_bytes(message: &Message) -> u64 {
    let mut counted = Counted::default();
    put(message, &mut counted);
    HEADER_BYTES as u64 + counted.0
}

/// Writes a message without a frame: its kind, then its fields.
pub(crate) fn put_bare(message: &Message, out: &mut impl Sink) {
    out.u16(kind_of(message));
    put(message, out);
}

/// Reads what [`put_bare`] has written.
pub(crate) fn take_bare(read: &mut Reader) -> Result<Message, Wrong> {
    let kind = read.u16()?;
    take(kind, read)?.ok_or("there is no such kind of message")
}

/// Whether a message has payload, or is a read, whose answer has some.
fn may_have_slot(message: &Message) -> bool {
    has_payload(message) || matches!(message, Message::Read(_))
}

fn has_payload(message: &Message) -> bool {
    matches!(message, Message::Write(_) | Message::Data { .. })
}

fn flags_of(message: &Message) -> u16 {
    match message {
        Message::Failed { .. } => REPLY | ERROR,
        Message::Pong
        | Message::Done
        | Message::Opened(_)
        | Message::Attributes(_)
        | Message::Entries { .. }
        | Message::Position { .. }
        | Message::Data { .. }
        | Message::End { .. }
        | Message::Verdict { .. }
        | Message::Granted { .. }
        | Message::Connected(_)
        | Message::Damage { .. }
        | Message::Files { .. }
        | Message::Counts(_) => REPLY,
        _ => 0,
    }
}

fn kind_of(message: &Message) -> u16 {
    match message {
        Message::Ping => 6,
        Message::Pong => 7,
        Message::Done => 12,
        Message::Failed { .. } => 13,
        Message::Open { .. } => 32,
        Message::Opened(_) => 33,
        Message::Close { .. } => 34,
        Message::Look { .. } => 35,
        Message::Attributes(_) => 36,
        Message::MakeDirectory { .. } => 37,
        Message::Remove { .. } => 38,
        Message::Rename { .. } => 39,
        Message::List { .. } => 40,
        Message::Entries { .. } => 41,
        Message::Advance { .. } => 42,
        Message::Position { .. } => 43,
        Message::SetView { .. } => 64,
        Message::DropView { .. } => 65,
        Message::Write(_) => 66,
        Message::Read(_) => 67,
        Message::Data { .. } => 68,
        Message::Measure { .. } => 69,
        Message::End { .. } => 70,
        Message::Resize { .. } => 71,
        Message::Sync { .. } => 72,
        Message::Discard { .. } => 73,
        Message::Arrive { .. } => 74,
        Message::Verdict { .. } => 75,
        Message::Hold { .. } => 76,
        Message::Release { .. } => 77,
        Message::Resume { .. } => 96,
        Message::Grant { .. } => 99,
        Message::Granted { .. } => 100,
        Message::Status => 120,
        Message::Connected(_) => 124,
        Message::Count => 121,
        Message::Counts(_) => 125,
        Message::Damage { .. } => 126,
        Message::Files { .. } => 127,
    }
}

/// Writes the fields of a message, in the order in which it declares them.
fn put(message: &Message, out: &mut impl Sink) {
    match message {
        Message::Ping | Message::Pong | Message::Done | Message::Status | Message::Count => {}
        Message::Failed { code, text } => {
            out.code(*code);
            out.bytes(text.as_bytes());
        }
        Message::Open { path, wish } => {
            out.bytes(path);
            put_wish(wish, out);
        }
        Message::Opened(opened) => {
            out.u64(opened.open.0);
            out.inode(opened.inode);
            out.layout(opened.layout);
            out.bool(opened.created);
        }
        Message::Close { open } => out.u64(open.0),
        Message::Advance { open, setting, from, by } => {
            out.u64(open.0);
            [setting, from, by].into_iter().for_each(|number| out.u64(*number));
        }
        Message::Position { units } => out.u64(*units),
        Message::Look { path } => out.bytes(path),
        Message::Attributes(attributes) => put_attributes(attributes, out),
        Message::MakeDirectory { path, mode } => {
            out.bytes(path);
            out.u32(*mode);
        }
        Message::Remove { path, kind } => {
            out.bytes(path);
            out.kind(*kind);
        }
        Message::Rename { from, to } => {
            out.bytes(from);
            out.bytes(to);
        }
        Message::List { path, after } => {
            out.bytes(path);
            out.bytes(after);
        }
        Message::Entries { entries, more } => {
            out.count(entries.len());
            for entry in entries {
                out.bytes(&entry.name);
                put_attributes(&entry.attributes, out);
            }
            out.bool(*more);
        }
        Message::SetView { view, inode, layout, offset, total, part } => {
            out.u32(view.0);
            out.inode(*inode);
            out.layout(*layout);
            out.u32(*offset);
            out.u32(*total);
            out.bytes(part);
        }
        Message::DropView { view } => out.u32(view.0),
        Message::Write(access) | Message::Read(access) => put_access(access, out),
        Message::Data { end } => out.u64(*end),
        Message::Measure { inode, subfile }
        | Message::Sync { inode, subfile }
        | Message::Resume { inode, subfile } => {
            out.inode(*inode);
            out.u32(*subfile);
        }
        Message::End { bytes } => out.u64(*bytes),
        Message::Resize { inode, subfile, bytes, extends } => {
            out.inode(*inode);
            out.u32(*subfile);
            out.u64(*bytes);
            out.bool(*extends);
        }
        Message::Discard { inode } => out.inode(*inode),
        Message::Arrive { group, size, rank, sequence, result, previous, last } => {
            out.u64(group.0);
            out.u32(*size);
            out.u32(*rank);
            out.u64(*sequence);
            out.code(*result);
            out.code(*previous);
            out.bool(*last);
        }
        Message::Verdict { result, rank } => {
            out.code(*result);
            out.u32(*rank);
        }
        Message::Hold { hold, inode, subfile, from, to, excludes } => {
            out.u64(hold.0);
            out.inode(*inode);
            out.u32(*subfile);
            out.u64(*from);
            out.u64(*to);
            out.bool(*excludes);
        }
        Message::Release { hold, inode, subfile } => {
            out.u64(hold.0);
            out.inode(*inode);
            out.u32(*subfile);
        }
        Message::Grant { inode, subfile, from, to, taken, bytes, more } => {
            out.inode(*inode);
            out.u32(*subfile);
            [from, to, taken, bytes, more].into_iter().for_each(|number| out.u64(*number));
        }
        Message::Granted { bytes, missing, unit, refusal } => {
            [bytes, missing, unit].into_iter().for_each(|number| out.u64(*number));
            out.code(*refusal);
        }
        Message::Connected(all) => {
            out.count(all.len());
            for connected in all {
                out.bytes(connected.name.as_bytes());
                out.u64(connected.window_bytes);
            }
        }
        Message::Counts(counts) => {
            let Counts { memory, used_bytes, reads, misses, fetches, .. } = *counts;
            let Counts { flushes, unsaved_bytes, granted_bytes, .. } = *counts;
            [memory, used_bytes, reads, misses, fetches, flushes, unsaved_bytes, granted_bytes]
                .into_iter()
                .for_each(|count| out.u64(count));
        }
        Message::Damage { pages } => out.u64(*pages),
        Message::Files { count } => out.u64(*count),
    }
}

pub(crate) fn put_wish(wish: &OpenWish, out: &mut impl Sink) {
    out.bool(wish.reads);
    out.bool(wish.writes);
    out.bool(wish.creates);
    out.bool(wish.exclusive);
    out.u32(wish.mode);
    out.layout_if_any(wish.layout);
}

pub(crate) fn put_attributes(attributes: &Attributes, out: &mut impl Sink) {
    out.inode(attributes.inode);
    out.kind(attributes.kind);
    out.u32(attributes.mode);
    out.layout_if_any(attributes.layout);
    out.bool(attributes.is_open);
}

fn put_access(access: &Access, out: &mut impl Sink) {
    out.u32(access.view.0);
    out.u32(access.subfile);
    out.u64(access.from);
    out.u64(access.to);
}

/// Reads the fields of a message of that kind; `None` if there is no such kind. Values of a struct are
/// evaluated in the order in which they are written here, which is that of [`put`].
fn take(kind: u16, read: &mut Reader) -> Result<Option<Message>, Wrong> {
    let message = match kind {
        6 => Message::Ping,
        7 => Message::Pong,
        12 => Message::Done,
        13 => Message::Failed { code: read.code()?, text: read.text()?.to_owned() },
        32 => Message::Open { path: read.bytes()?.to_vec(), wish: take_wish(read)? },
        33 => Message::Opened(Opened {
            open: OpenNumber(read.u64()?),
            inode: read.inode()?,
            layout: read.layout()?,
            created: read.bool()?,
        }),
        34 => Message::Close { open: OpenNumber(read.u64()?) },
        35 => Message::Look { path: read.bytes()?.to_vec() },
        36 => Message::Attributes(take_attributes(read)?),
        37 => Message::MakeDirectory { path: read.bytes()?.to_vec(), mode: read.u32()? },
        38 => Message::Remove { path: read.bytes()?.to_vec(), kind: read.kind()? },
        39 => Message::Rename { from: read.bytes()?.to_vec(), to: read.bytes()?.to_vec() },
        40 => Message::List { path: read.bytes()?.to_vec(), after: read.bytes()?.to_vec() },
        41 => Message::Entries { entries: take_entries(read)?, more: read.bool()? },
        42 => Message::Advance {
            open: OpenNumber(read.u64()?),
            setting: read.u64()?,
            from: read.u64()?,
            by: read.u64()?,
        },
        43 => Message::Position { units: read.u64()? },
        64 => Message::SetView {
            view: ViewNumber(read.u32()?),
            inode: read.inode()?,
            layout: read.layout()?,
            offset: read.u32()?,
            total: read.u32()?,
            part: read.bytes()?.to_vec(),
        },
        65 => Message::DropView { view: ViewNumber(read.u32()?) },
        66 => Message::Write(take_access(read)?),
        67 => Message::Read(take_access(read)?),
        68 => Message::Data { end: read.u64()? },
        69 => Message::Measure { inode: read.inode()?, subfile: read.u32()? },
        70 => Message::End { bytes: read.u64()? },
        71 => Message::Resize {
            inode: read.inode()?,
            subfile: read.u32()?,
            bytes: read.u64()?,
            extends: read.bool()?,
        },
        72 => Message::Sync { inode: read.inode()?, subfile: read.u32()? },
        73 => Message::Discard { inode: read.inode()? },
        74 => Message::Arrive {
            group: OpenNumber(read.u64()?),
            size: read.u32()?,
            rank: read.u32()?,
            sequence: read.u64()?,
            result: read.code()?,
            previous: read.code()?,
            last: read.bool()?,
        },
        75 => Message::Verdict { result: read.code()?, rank: read.u32()? },
        76 => Message::Hold {
            hold: HoldNumber(read.u64()?),
            inode: read.inode()?,
            subfile: read.u32()?,
            from: read.u64()?,
            to: read.u64()?,
            excludes: read.bool()?,
        },
        77 => Message::Release {
            hold: HoldNumber(read.u64()?),
            inode: read.inode()?,
            subfile: read.u32()?,
        },
        96 => Message::Resume { inode: read.inode()?, subfile: read.u32()? },
        99 => Message::Grant {
            inode: read.inode()?,
            subfile: read.u32()?,
            from: read.u64()?,
            to: read.u64()?,
            taken: read.u64()?,
            bytes: read.u64()?,
            more: read.u64()?,
        },
        100 => Message::Granted {
            bytes: read.u64()?,
            missing: read.u64()?,
            unit: read.u64()?,
            refusal: read.code()?,
        },
        120 => Message::Status,
        121 => Message::Count,
        124 => Message::Connected(take_connected(read)?),
        125 => Message::Counts(Counts {
            memory: read.u64()?,
            used_bytes: read.u64()?,
            reads: read.u64()?,
            misses: read.u64()?,
            fetches: read.u64()?,
            flushes: read.u64()?,
            unsaved_bytes: read.u64()?,
            granted_bytes: read.u64()?,
        }),
        126 => Message::Damage { pages: read.u64()? },
        127 => Message::Files { count: read.u64()? },
        _ => return Ok(None),
    };
    Ok(Some(message))
}

pub(crate) fn take_wish(read: &mut Reader) -> Result<OpenWish, Wrong> {
    Ok(OpenWish {
        reads: read.bool()?,
        writes: read.bool()?,
        creates: read.bool()?,
        exclusive: read.bool()?,
        mode: read.u32()?,
        layout: read.layout_if_any()?,
    })
}

pub(crate) fn take_attributes(read: &mut Reader) -> Result<Attributes, Wrong> {
    Ok(Attributes {
        inode: read.inode()?,
        kind: read.kind()?,
        mode: read.u32()?,
        layout: read.layout_if_any()?,
        is_open: read.bool()?,
    })
}

fn take_entries(read: &mut Reader) -> Result<Vec<Entry>, Wrong> {
    let count = read.count(ENTRY_BYTES_MIN)?;
    (0..count)
        .map(|_| Ok(Entry { name: read.bytes()?.to_vec(), attributes: take_attributes(read)? }))
        .collect()
}

fn take_connected(read: &mut Reader) -> Result<Vec<Connected>, Wrong> {
    let count = read.count(CONNECTED_BYTES_MIN)?;
    let connected = |_| Ok(Connected { name: read.text()?.to_owned(), window_bytes: read.u64()? });
    (0..count).map(connected).collect()
}

fn take_slot(read: &mut Reader) -> Result<Slot, Wrong> {
    Ok(Slot { offset: read.u64()?, bytes: read.u32()? })
}

fn take_access(read: &mut Reader) -> Result<Access, Wrong> {
    Ok(Access {
        view: ViewNumber(read.u32()?),
        subfile: read.u32()?,
        from: read.u64()?,
        to: read.u64()?,
    })
}
