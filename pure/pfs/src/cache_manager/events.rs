//! What a cache manager is told, and what it wants.
//!
//! Its driver does what it wants in that order and at once: bytes that were moved are where they belong
//! before the next action is looked at. A flush is sent from the block itself, as it is when it is sent.

use crate::serving::Operation;
use crate::{Buffer, PartyAction, PartyEvent, PeerAction, PeerEvent};
use iolab_pattern::Nest;
use iolab_vocab::Nanos;
use std::sync::Arc;

/// A block in the driver's memory, as the machine numbers them; never used again for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockNumber(pub u64);

/// Bytes of a view that lie in one block.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The block.
    pub block: BlockNumber,
    /// Which byte of the file its first one is.
    pub base: u64,
    /// The view.
    pub view: Arc<Nest>,
    /// First byte, as the view counts.
    pub from: u64,
    /// The byte after the last one.
    pub to: u64,
}

/// A row of bytes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The block.
    pub block: BlockNumber,
    /// Its first byte.
    pub from: u32,
    /// The byte after the last one.
    pub to: u32,
}

/// What a cache manager is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Something of those who ask it.
    Peer(PeerEvent),
    /// Something of the I/O servers.
    Party(PartyEvent),
    /// The driver is about to end: servers are to have everything soon.
    Ending,
    /// The time has come. Drivers say so once at the start, too.
    Woke,
}

/// What a cache manager wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Something of those who ask it. A reply carries so many bytes of what was gathered for an operation.
    Peer(PeerAction<(Operation, u64)>),
    /// Something of the I/O servers.
    Party(PartyAction<Row>),
    /// Memory for a new block. What is in it means nothing.
    Take {
        /// The block.
        block: BlockNumber,
        /// How many bytes.
        bytes: u32,
    },
    /// The memory of a block is the driver's again.
    Free {
        /// The block.
        block: BlockNumber,
    },
    /// Bytes of a request to their places in a block.
    Scatter {
        /// What the request carries.
        from: Buffer,
        /// The first byte of it that is meant; there are as many as the place has.
        at: u64,
        /// Where they belong.
        to: Place,
    },
    /// Bytes of a block, for the reply to an operation, behind those that were gathered for it before.
    Gather {
        /// The operation.
        operation: Operation,
        /// Which bytes.
        from: Place,
    },
    /// What was gathered for an operation is not needed: there is no reply with it.
    Forget {
        /// The operation.
        operation: Operation,
    },
    /// Bytes that an I/O server has told to those runs of a block; zeros where it has none. The buffer is
    /// the driver's again then.
    Fill {
        /// The block.
        block: BlockNumber,
        /// What was told, from the first byte of the block on.
        from: Option<Buffer>,
        /// How many bytes.
        bytes: u32,
        /// Which bytes of the block are set.
        runs: Vec<(u32, u32)>,
    },
    /// A buffer is the driver's again.
    Release {
        /// Which.
        buffer: Buffer,
    },
    /// [`Event::Woke`] at that time or soon after; earlier wishes stand.
    WakeAt(Nanos),
}
