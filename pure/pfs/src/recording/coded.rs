//! How settings, events and actions are written and read: little-endian fields in the order of their
//! declarations, variants by their numbers, messages as they are on the wire.

use crate::codec::{Reader, Sink, Wrong};
use crate::configuration::Durability;
use crate::serving::{ELSEWHERE, TOO_MANY};
use crate::{
    Attributes, Buffer, Code, Division, Entry, Incarnation, Inode, Kind, Layout, Message,
    OpenNumber, OpenWish, Opened, Party, PartyAction, PartyEvent, Peer, PeerAction, PeerEvent,
    Portion, Request, SessionId, cache_manager, client, io_server, metadata, serving, wire,
};
use iolab_pattern::Nest;
use iolab_policy::{placement, replacement, schedule, write_policy};
use iolab_vocab::{Direction, Extent, Nanos};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

/// Views that a recording knows by their places: the last that were met.
const VIEWS_MAX: usize = 64;

/// Where fields go.
#[derive(Debug, Default)]
pub struct Writer {
    pub(super) out: Vec<u8>,
    views: Views,
}

/// Where fields come from.
pub struct Source<'a> {
    pub(super) read: Reader<'a>,
    views: &'a mut Views,
}

/// A view may be large, and every request through it names it: written is each the first time.
#[derive(Debug, Default)]
pub(super) struct Views(VecDeque<Arc<Nest>>);

impl Views {
    fn meet(&mut self, view: Arc<Nest>) {
        self.0.truncate(VIEWS_MAX - 1);
        self.0.push_front(view);
    }
}

impl<'a> Source<'a> {
    pub(super) fn new(bytes: &'a [u8], views: &'a mut Views) -> Source<'a> {
        Source { read: Reader::new(bytes), views }
    }
}

/// What has a place in a recording. What was taken is what was put.
pub trait Coded: Sized {
    /// Writes it.
    fn put(&self, to: &mut Writer);
    /// Reads one.
    fn take(from: &mut Source<'_>) -> Result<Self, &'static str>;
}

/// Values that the codec of messages knows.
macro_rules! fields {
    ($($type:ty: $field:ident;)*) => {$(
        impl Coded for $type {
            fn put(&self, to: &mut Writer) {
                to.out.$field(*self);
            }

            fn take(from: &mut Source<'_>) -> Result<Self, Wrong> {
                from.read.$field()
            }
        }
    )*};
}

fields! {
    u8: u8;
    u32: u32;
    u64: u64;
    u128: u128;
    bool: bool;
    Inode: inode;
    Code: code;
    Kind: kind;
    Layout: layout;
}

/// Numbers with a name, and structures.
macro_rules! structures {
    ($($type:path { $($field:tt),* })*) => {$(
        impl Coded for $type {
            fn put(&self, to: &mut Writer) {
                $(self.$field.put(to);)*
            }

            fn take(from: &mut Source<'_>) -> Result<Self, Wrong> {
                Ok(Self { $($field: Coded::take(from)?),* })
            }
        }
    )*};
}

structures! {
    Nanos { 0 }
    Buffer { 0 }
    Incarnation { 0 }
    OpenNumber { 0 }
    Peer { 0 }
    Request { 0 }
    SessionId { 0 }
    client::CallNumber { 0 }
    client::FileNumber { 0 }
    serving::Operation { 0 }
    cache_manager::BlockNumber { 0 }
    Opened { open, inode, layout, created }
    Entry { name, attributes }
    Portion { view, division, subfile, from, to }
    placement::Place { managers, servers, subfiles, start }
    Division { layout, placed }
    serving::Subfile { inode, index }
    serving::Settings { session_timeout, view_bytes_max, requests_max }
    io_server::Settings { serving, limit, summing }
    io_server::Summing { page_bytes, settle }
    Extent { offset, length }
    client::Settings {
        servers, caches, placement, write_policy, transfer_bytes, depth, schedule, failure_timeout,
        durability
    }
    client::Failure { code, text }
    client::Gather { call, portion, origin, bytes }
    cache_manager::Settings {
        index, caches, servers, memory, block_bytes, placement, replacement, write_policy, age, failure_timeout, grant_bytes, serving
    }
    cache_manager::Place { block, base, view, from, to }
    cache_manager::Row { block, from, to }
    metadata::Settings { servers, caches, layout, session_timeout, inodes_max, files_quota, journal_bytes }
}

/// Choices, by the number of the variant.
macro_rules! choices {
    ($($type:path {$(
        $number:literal = $variant:ident $({ $($field:ident),* })? $(($item:ident))?,
    )*})*) => {$(
        choices! { $type, [] {$(
            $number = $variant $({ $($field),* })? $(($item))?,
        )*}}
    )*};
    ($type:ty, [$($payload:ident)?] {$(
        $number:literal = $variant:ident $({ $($field:ident),* })? $(($item:ident))?,
    )*}) => {
        impl$(<$payload: Coded>)? Coded for $type {
            fn put(&self, to: &mut Writer) {
                match self {$(
                    Self::$variant $({ $($field),* })? $(($item))? => {
                        to.out.u8($number);
                        $($($field.put(to);)*)?
                        $($item.put(to);)?
                    }
                )*}
            }

            fn take(from: &mut Source<'_>) -> Result<Self, Wrong> {
                match from.read.u8()? {
                    $($number => {
                        $($(let $field = Coded::take(from)?;)*)?
                        $(let $item = Coded::take(from)?;)?
                        Ok(Self::$variant $({ $($field),* })? $(($item))?)
                    })*
                    _ => Err(concat!("there is no such ", stringify!($type))),
                }
            }
        }
    };
}

choices! {
    Direction {
        1 = Read,
        2 = Write,
    }
    io_server::Limit {
        1 = Capacity(bytes),
        2 = Quota(bytes),
    }
    Party {
        1 = Metadata,
        2 = Server(index),
        3 = Cache(index),
    }
    client::Call {
        1 = Open { path, wish },
        2 = Adopt { opened, rank, size },
        3 = Access { file, direction, view, from, to, collective },
        4 = Agree { file, result },
        5 = SetAtomic { file, atomic },
        6 = Advance { file, setting, from, by },
        7 = Size { file },
        8 = Resize { file, bytes },
        9 = Sync { file },
        10 = Close { file },
        11 = Look { path },
        12 = MakeDirectory { path, mode },
        13 = Remove { path, kind },
        14 = Rename { from, to },
        15 = List { path, after },
    }
    client::Done {
        1 = Nothing,
        2 = Opened(opened),
        3 = Adopted(file),
        4 = Bytes(bytes),
        5 = Position(position),
        6 = Size(bytes),
        7 = Attributes { attributes, bytes },
        8 = Entries { entries, more },
    }
    PeerEvent {
        1 = Up { peer, session },
        2 = Lost { peer, ended },
        3 = Asked { peer, request, message, payload },
    }
    PartyEvent {
        1 = Connected { to, incarnation, known },
        2 = Disconnected { from },
        3 = Runs { party },
        4 = Replied { from, request, message, payload },
    }
    client::Event {
        1 = Called { call, what },
        2 = Party(event),
        3 = Moved { call },
        4 = Woke,
    }
    client::Action {
        1 = Party(action),
        2 = Move { call, from, portion, origin },
        3 = Zero { call, portion, origin },
        4 = Release { buffer },
        5 = Answer { call, outcome },
        6 = WakeAt(time),
    }
    io_server::Outcome {
        1 = Nothing,
        2 = Bytes(buffer),
        3 = Length(bytes),
        4 = Room { free, used, missing, unit },
        5 = Unsummed { buffer, from, to },
        6 = Damaged { from, to },
    }
    io_server::Event {
        1 = Peer(event),
        2 = Done { operation, result },
        3 = Woke,
    }
    io_server::Action {
        1 = Peer(action),
        2 = Transfer { operation, direction, subfile, portion, from },
        3 = Measure { operation, subfile },
        4 = Resize { operation, subfile, bytes, extends },
        5 = Sync { operation, subfile },
        6 = Discard { operation, inode },
        7 = Release { buffer },
        8 = WakeAt(time),
        9 = Room { operation, subfile, extents },
        10 = Strike { operation, subfile, extents, is_whole },
        11 = Sum { operation, subfile, pages },
    }
    cache_manager::Event {
        1 = Peer(event),
        2 = Party(event),
        3 = Ending,
        4 = Woke,
    }
    cache_manager::Action {
        1 = Peer(action),
        2 = Party(action),
        3 = Take { block, bytes },
        4 = Free { block },
        5 = Scatter { from, at, to },
        6 = Gather { operation, from },
        7 = Forget { operation },
        8 = Fill { block, from, bytes, runs },
        9 = Release { buffer },
        10 = WakeAt(time),
    }
    Durability {
        1 = Process,
        2 = Device,
        3 = None,
    }
    metadata::Event {
        1 = Peer(event),
        2 = Party(event),
        3 = Appended { upto },
        4 = Woke,
        5 = Failed,
        6 = Checkpointed { is_durable },
    }
    metadata::Action {
        1 = Peer(action),
        2 = Party(action),
        3 = Release { buffer },
        4 = Append { sequence, record },
        5 = WakeAt(time),
        6 = Checkpoint { first, records },
        7 = Supersede { upto, records },
    }
}

choices! { PeerAction<P>, [P] {
    1 = Welcome { peer, known },
    2 = Reply { peer, request, message, payload },
    3 = Drop { peer, why },
}}

choices! { PartyAction<P>, [P] {
    1 = Connect { to },
    2 = Disconnect { from },
    3 = Ask { to, request, message, payload },
}}

/// Payload of those who send none.
impl Coded for Infallible {
    fn put(&self, _: &mut Writer) {
        match *self {}
    }

    fn take(_: &mut Source<'_>) -> Result<Self, Wrong> {
        Err("there is payload where none is sent")
    }
}

impl Coded for Message {
    fn put(&self, to: &mut Writer) {
        wire::put_bare(self, &mut to.out);
    }

    fn take(from: &mut Source<'_>) -> Result<Self, Wrong> {
        wire::take_bare(&mut from.read)
    }
}

impl Coded for OpenWish {
    fn put(&self, to: &mut Writer) {
        wire::put_wish(self, &mut to.out);
    }

    fn take(from: &mut Source<'_>) -> Result<Self, Wrong> {
        wire::take_wish(&mut from.read)
    }
}

impl Coded for Attributes {
    fn put(&self, to: &mut Writer) {
        wire::put_attributes(self, &mut to.out);
    }

    fn take(from: &mut Source<'_>) -> Result<Self, Wrong> {
        wire::take_attributes(&mut from.read)
    }
}

impl Coded for String {
    fn put(&self, to: &mut Writer) {
        to.out.bytes(self.as_bytes());
    }

    fn take(from: &mut Source<'_>) -> Result<Self, Wrong> {
        Ok(from.read.text()?.to_owned())
    }
}

/// Why a connection is dropped.
impl Coded for &'static str {
    fn put(&self, to: &mut Writer) {
        to.out.bytes(self.as_bytes());
    }

    fn take(from: &mut Source<'_>) -> Result<Self, Wrong> {
        let text = from.read.text()?;
        let known = [ELSEWHERE, TOO_MANY].into_iter().find(|why| *why == text);
        known.ok_or("connections are not dropped for that")
    }
}

/// Members of families, by their names.
macro_rules! members {
    ($($family:ident)*) => {$(
        impl Coded for &'static $family::catalog::Row {
            fn put(&self, to: &mut Writer) {
                to.out.bytes(self.name.as_bytes());
            }

            fn take(from: &mut Source<'_>) -> Result<Self, Wrong> {
                let found = $family::find(from.read.text()?);
                found.map_err(|_| concat!("there is no such ", stringify!($family)))
            }
        }
    )*};
}

members! { placement replacement schedule write_policy }

impl Coded for Arc<Nest> {
    fn put(&self, to: &mut Writer) {
        let is_it = |known: &Arc<Nest>| Arc::ptr_eq(known, self) || known == self;
        if let Some(place) = to.views.0.iter().position(is_it) {
            return to.out.u8(place as u8 + 1);
        }
        let mut encoded = Vec::new();
        self.encode(&mut encoded);
        to.out.u8(0);
        to.out.bytes(&encoded);
        to.views.meet(self.clone());
    }

    fn take(from: &mut Source<'_>) -> Result<Self, Wrong> {
        if let Some(place) = from.read.u8()?.checked_sub(1) {
            let known = from.views.0.get(usize::from(place));
            return known.cloned().ok_or("a view was not met before");
        }
        let nest = Nest::decode(from.read.bytes()?).map_err(|_| "a view is mangled")?;
        let view = Arc::new(nest);
        from.views.meet(view.clone());
        Ok(view)
    }
}

impl<T: Coded> Coded for Option<T> {
    fn put(&self, to: &mut Writer) {
        to.out.bool(self.is_some());
        self.iter().for_each(|value| value.put(to));
    }

    fn take(from: &mut Source<'_>) -> Result<Self, Wrong> {
        from.read.bool()?.then(|| T::take(from)).transpose()
    }
}

impl<T: Coded, E: Coded> Coded for Result<T, E> {
    fn put(&self, to: &mut Writer) {
        to.out.bool(self.is_ok());
        match self {
            Ok(value) => value.put(to),
            Err(error) => error.put(to),
        }
    }

    fn take(from: &mut Source<'_>) -> Result<Self, Wrong> {
        Ok(match from.read.bool()? {
            true => Ok(T::take(from)?),
            false => Err(E::take(from)?),
        })
    }
}

impl<A: Coded, B: Coded> Coded for (A, B) {
    fn put(&self, to: &mut Writer) {
        self.0.put(to);
        self.1.put(to);
    }

    fn take(from: &mut Source<'_>) -> Result<Self, Wrong> {
        Ok((A::take(from)?, B::take(from)?))
    }
}

impl<T: Coded> Coded for Vec<T> {
    fn put(&self, to: &mut Writer) {
        to.out.count(self.len());
        self.iter().for_each(|item| item.put(to));
    }

    fn take(from: &mut Source<'_>) -> Result<Self, Wrong> {
        // Every item takes a byte at least.
        let count = from.read.count(1)?;
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(T::take(from)?);
        }
        Ok(items)
    }
}
