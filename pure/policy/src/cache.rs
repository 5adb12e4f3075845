//! Cache layers of a storage server: in which order, and joined how, requests reach the device.
//!
//! One machine serves one device. The driver (simulator or server process) tells it what has
//! arrived and what the device has completed; the machine answers with transfers to carry out.
//! Payload never passes through: actions name places, the driver moves bytes.
//!
//! A write is offered packet by packet: `WriteOffered` is answered by `Admit` (the driver then
//! reports its pieces by `WriteArrived`) or `Refuse` (the driver keeps the packet and offers it again
//! after a completed write, or on `RetryRefused`). `Completed` only settles the finished operation; the
//! driver then offers what it had to keep, and says `DeviceReady` when the machine may start what
//! comes next. Read bytes occupy memory until `Released`. What drivers and machines may rely on stands
//! in `laws.rs`.
//!
//! **Bytes.** The driver lays admitted bytes over what the device holds, newest on top, until a
//! write that started with them is completed; a write carries the newest bytes of its extent, a
//! read gets the device's under those in memory. So a machine may order and join as it likes and
//! everybody still reads what was written last. In return every admitted byte is written by a
//! transfer that starts after it came, and what is held never exceeds the capacity.
//!
//! A new cache layer is one file and one row in `catalog.rs`.

mod ageing;
mod aggregation;
pub mod catalog;
mod cruel;
mod elevator;
mod extent_index;
mod fifo;
mod in_flight;
mod laws;
mod layer;
mod lru_extents;
mod none;
mod read_cache;
mod reads;
mod server_directed;
mod server_ordered;
mod write_behind;
mod write_delay;
mod writes;

pub use aggregation::aggregation;
pub use catalog::{CacheError, find};
pub use cruel::cruel;
pub use elevator::elevator;
pub use laws::{CacheLaws, checked};
pub use none::no_cache;
pub use read_cache::read_cache;
pub use server_directed::server_directed;
pub use server_ordered::server_ordered;
pub use write_behind::write_behind;
pub use write_delay::Delay;
pub use writes::Tails;

use crate::machine::Machine;
use iolab_vocab::{Direction, Extent, FileId, Nanos};

/// Whose bytes: a number the driver gives to a request and gets back with its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

/// Somebody's wish to have a file on the device: a number the driver gives to no other that is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlushId(pub u32);

/// A transfer under way, as numbered by the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation(pub u32);

/// What the machine is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A piece of a read request is here; at most `access_bytes` long.
    ReadArrived {
        /// Whose.
        tag: Tag,
        /// Of which file.
        file: FileId,
        /// Which bytes.
        extent: Extent,
    },
    /// A write will come; where clients wait for `Invite`, not before it.
    WriteAnnounced {
        /// Whose.
        tag: Tag,
        /// To which file.
        file: FileId,
        /// From its first byte on, as many bytes as will come.
        extent: Extent,
    },
    /// A packet of write data of this size is at the door.
    WriteOffered {
        /// Its size.
        bytes: u64,
    },
    /// A piece of the packet just admitted; at most `access_bytes` long.
    WriteArrived {
        /// Whose.
        tag: Tag,
        /// Of which file.
        file: FileId,
        /// Which bytes.
        extent: Extent,
    },
    /// The device has carried this out.
    Completed {
        /// Which.
        operation: Operation,
    },
    /// The device can take another operation.
    DeviceReady,
    /// Read data of this size has left the server; its memory is free.
    Released {
        /// How much.
        bytes: u64,
    },
    /// Somebody wants the file's data on the device.
    FlushArrived {
        /// `Flushed` names it when nothing of the file is left in memory.
        flush: FlushId,
        /// Which file.
        file: FileId,
    },
    /// The moment of the last `WakeAt` has come.
    Woke,
}

/// What the machine wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The offered packet comes in; its memory is taken.
    Admit,
    /// The offered packet must wait.
    Refuse,
    /// Move these bytes; `Completed` comes back.
    Transfer {
        /// What `Completed` shall name.
        operation: Operation,
        /// Which way.
        direction: Direction,
        /// Of which file.
        file: FileId,
        /// Which bytes.
        extent: Extent,
    },
    /// This part of the request's data is in memory now: just read, or kept.
    Deliver {
        /// Whose.
        tag: Tag,
        /// Which bytes of the file.
        extent: Extent,
    },
    /// These bytes have just been read; hold on to them, and lay over them what is written later.
    Keep {
        /// Of which file.
        file: FileId,
        /// Which bytes.
        extent: Extent,
    },
    /// Let go of bytes that were kept.
    Drop {
        /// Of which file.
        file: FileId,
        /// Which bytes.
        extent: Extent,
    },
    /// No write of the file waits or is under way any more.
    Flushed {
        /// Which flush.
        flush: FlushId,
    },
    /// Let the client send what it has announced.
    Invite {
        /// Whose.
        tag: Tag,
    },
    /// What was refused may be offered again, though no write has been completed.
    RetryRefused,
    /// Send `Woke` at that time.
    WakeAt(Nanos),
}

/// What a cache layer is built from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Memory for data on its way, either direction.
    pub capacity_bytes: u64,
    /// Largest single transfer.
    pub access_bytes: u64,
    /// Transfers the device takes at once.
    pub depth: u32,
    /// Distances below this cost the device little.
    pub near_bytes: u64,
    /// Bytes the device moves in the time of a short positioning.
    pub seek_bytes: u64,
    /// Reads are joined over holes up to this size, where a layer joins by place.
    pub hole_bytes: u64,
    /// Whether writes are held back.
    pub delay: Option<Delay>,
    /// What becomes of older bytes behind a newer write inside them, where a layer cuts writes.
    pub tails: Tails,
    /// How long reads and writes may be passed over, each for the other.
    pub ageing: Option<Nanos>,
}

/// A cache layer.
pub trait Cache: Machine<Event = Event, Action = Action> + Send {
    /// Memory taken at this moment; never above the capacity.
    fn held_bytes(&self) -> u64;

    /// Requests that wait for the device.
    fn queued_count(&self) -> usize;
}

impl<C: Cache + ?Sized> Cache for Box<C> {
    fn held_bytes(&self) -> u64 {
        (**self).held_bytes()
    }

    fn queued_count(&self) -> usize {
        (**self).queued_count()
    }
}

/// A piece of a request, waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Job {
    tag: Tag,
    file: FileId,
    extent: Extent,
}
