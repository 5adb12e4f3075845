//! Replacement: which block leaves a full cache.
//!
//! The driver says which blocks came, which were used, and which must stay for now (they have bytes that nobody
//! else has, or somebody waits for them); when it needs room it asks for one that may leave. Blocks are told by
//! what they are of, so that a member may know one again that comes back.
//!
//! Costs: O(log n) for n blocks, each step; some 100 bytes for each block.
//!
//! What drivers and machines may rely on stands in `laws.rs`. A new replacement is one file and one row in
//! `catalog.rs`.

pub mod catalog;
mod clock;
mod cruel;
mod fifo;
mod laws;
mod lru;
mod queue;
mod two_queue;

pub use catalog::find;
pub use laws::{ReplacementLaws, checked};

use crate::machine::Machine;
use std::fmt;

/// Which block: the number of its file, and where it begins there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    /// The number of the file.
    pub file: u64,
    /// Its first byte in the file.
    pub offset: u64,
}

/// What a replacement is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Bytes of blocks at most.
    pub memory: u64,
}

/// What the machine is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// This block is there now, and may leave.
    Came {
        /// Which.
        block: Block,
        /// How many bytes it has.
        bytes: u32,
    },
    /// Somebody reads or writes it.
    Used {
        /// Which.
        block: Block,
    },
    /// It must stay for now.
    Held {
        /// Which.
        block: Block,
    },
    /// It may leave again.
    Freed {
        /// Which.
        block: Block,
    },
    /// It is no more, as its file is not: it will not come back.
    Gone {
        /// Which.
        block: Block,
    },
    /// There is no room for another one.
    Full,
}

/// What the machine wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// This block leaves.
    Leave {
        /// Which.
        block: Block,
    },
}

/// The replacement of one cache.
pub trait Replacement: Machine<Event = Event, Action = Action> + fmt::Debug + Send {}

impl<M: Machine<Event = Event, Action = Action> + fmt::Debug + Send> Replacement for M {}
