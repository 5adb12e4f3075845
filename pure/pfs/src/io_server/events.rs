//! What an I/O server is told, and what it wants.

use crate::serving::{Operation, Subfile};
use crate::{Buffer, Code, Inode, PeerAction, PeerEvent, Portion};
use iolab_vocab::{Direction, Extent, Nanos};

/// What a server is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Something of those who ask it.
    Peer(PeerEvent),
    /// The device has done it, or failed.
    Done {
        /// What.
        operation: Operation,
        /// What came of it.
        result: Result<Outcome, Code>,
    },
    /// The time has come. Drivers say so once at the start, too.
    Woke,
}

/// What the device came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Nothing,
    /// These bytes were read: those of the portion.
    Bytes(Buffer),
    /// The same; some of the pages from a byte of the subfile to another have no sum.
    Unsummed {
        /// The bytes of the portion.
        buffer: Buffer,
        /// First byte of the first page without a sum.
        from: u64,
        /// The byte behind the last one.
        to: u64,
    },
    /// A page does not have its sum: what lies there is not what was written. Nothing was done.
    Damaged {
        /// First byte of the subfile that is meant.
        from: u64,
        /// The byte behind the last one.
        to: u64,
    },
    /// A subfile is so long.
    Length(u64),
    /// How much space there is.
    Room {
        /// Bytes that the device still has for the server.
        free: u64,
        /// Bytes of the device that the server's subfiles have.
        used: u64,
        /// How many bytes it would take to write these extents.
        missing: u64,
        /// In which units the device gives space.
        unit: u64,
    },
}

/// What a server wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Something of those who ask it. A reply carries so many bytes of a buffer, from its first one on.
    Peer(PeerAction<(Buffer, u64)>),
    /// Bytes between a buffer and a subfile; what is read is held against the sums that its pages have. Answered by
    /// [`Event::Done`].
    Transfer {
        /// As which.
        operation: Operation,
        /// Which way.
        direction: Direction,
        /// Where.
        subfile: Subfile,
        /// Which bytes of it.
        portion: Portion,
        /// What is written; the driver's again then. Of a read, [`Outcome::Bytes`] has them.
        from: Option<Buffer>,
    },
    /// How long a subfile is; one that is not there has no bytes. Answered by [`Event::Done`].
    Measure {
        /// As which.
        operation: Operation,
        /// Which.
        subfile: Subfile,
    },
    /// Another length for a subfile. Answered by [`Event::Done`].
    Resize {
        /// As which.
        operation: Operation,
        /// Which.
        subfile: Subfile,
        /// At most, or exactly.
        bytes: u64,
        /// Whether it becomes longer if it is shorter.
        extends: bool,
    },
    /// What was written to a subfile is to be as durable as the class says. Answered by [`Event::Done`].
    Sync {
        /// As which.
        operation: Operation,
        /// Which.
        subfile: Subfile,
    },
    /// The sums of the pages that these extents touch are to be struck out, as durably as the class says; of
    /// pages that keep some of their bytes, once they were held against their sums. Answered by [`Event::Done`].
    Strike {
        /// As which.
        operation: Operation,
        /// Which.
        subfile: Subfile,
        /// What is about to be changed: ascending, apart from each other.
        extents: Vec<Extent>,
        /// Whether all bytes of these are.
        is_whole: bool,
    },
    /// Pages of a subfile that have no sum get one, once they are as durable as the class says. Nobody changes
    /// them meanwhile. Answered by [`Event::Done`].
    Sum {
        /// As which.
        operation: Operation,
        /// Which.
        subfile: Subfile,
        /// Whole pages; the subfile may end before.
        pages: Extent,
    },
    /// How much space there is, and how much of some extents of a subfile has none yet. Answered by
    /// [`Event::Done`].
    Room {
        /// As which.
        operation: Operation,
        /// Which.
        subfile: Subfile,
        /// Which bytes of it: ascending, apart from each other.
        extents: Vec<Extent>,
    },
    /// All subfiles of a file go. Answered by [`Event::Done`].
    Discard {
        /// As which.
        operation: Operation,
        /// Which.
        inode: Inode,
    },
    /// A buffer is the driver's again.
    Release {
        /// Which.
        buffer: Buffer,
    },
    /// [`Event::Woke`] at that time or soon after; earlier wishes stand.
    WakeAt(Nanos),
}
