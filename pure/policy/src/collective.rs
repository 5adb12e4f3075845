//! Collective operations: who sends what to whom, in which rounds.
//!
//! One machine per rank and call. The driver tells it that it began and that its last round is
//! completed (what it sent has left, what it awaited is here, its accesses are done); it answers with
//! the next round. Payload never passes through: actions name ranks, [`Payload`] and places in files.
//! What drivers and machines may rely on stands in `laws.rs`.
//!
//! A new algorithm is one file and one row in `catalog.rs`.

mod access;
mod allgather;
mod alltoall;
mod binomial;
pub mod catalog;
mod chain;
mod cruel;
mod direct;
mod dissemination;
mod double_buffered;
mod gather;
mod informed;
mod laws;
mod payload;
mod recursive_doubling;
mod reduce;
mod ring;
mod tree;
mod two_phase;

pub use access::{Access, Wanted};
pub use allgather::Allgather;
pub use alltoall::{Alltoall, PairwiseAlltoall};
pub use binomial::Broadcast;
pub use catalog::{CollectiveKind, CollectiveSelection};
pub use chain::Chain;
pub use cruel::Cruel;
pub use direct::DirectAccess;
pub use dissemination::DisseminationBarrier;
pub use double_buffered::DoubleBuffered;
pub use gather::{Gather, Scatter};
pub use informed::{Costs, informed};
pub use laws::{CollectiveLaws, checked, checked_file};
pub use payload::{Payload, Ranks, Sizes};
pub use recursive_doubling::RecursiveDoubling;
pub use reduce::Reduce;
pub use ring::RingAllgather;
pub use two_phase::{Deal, TwoPhase};

use crate::machine::Machine;
use iolab_vocab::Extent;
use std::sync::Arc;

/// Ranks and sizes of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// This process, within the communicator.
    pub rank: u32,
    /// Processes in the communicator.
    pub rank_count: u32,
    /// The process the call is about, where there is one.
    pub root: u32,
    /// Payload per process.
    pub bytes: u64,
    /// Larger messages are not sent unasked, where an algorithm makes that difference.
    pub eager_bytes: u64,
}

impl Shape {
    /// All ranks but this one, in order.
    fn others(self) -> impl Iterator<Item = u32> {
        (0..self.rank_count).filter(move |other| *other != self.rank)
    }

    /// The rank so many places up, around the end.
    fn above(self, distance: u32) -> u32 {
        (self.rank + distance) % self.rank_count
    }

    /// The rank so many places down, around the beginning.
    fn below(self, distance: u32) -> u32 {
        (self.rank + self.rank_count - distance % self.rank_count) % self.rank_count
    }
}

/// One rank's part in a collective read or write.
#[derive(Clone, Debug)]
pub struct FileCall {
    /// What all ranks want.
    pub access: Arc<Access>,
    /// This process.
    pub rank: u32,
    /// Memory of each rank for other ranks' data; above 0.
    pub buffer_bytes: u64,
    /// What accesses and messages cost, where that is known.
    pub costs: Option<Costs>,
}

/// What the machine is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The call began.
    Began,
    /// What the last round sent has left, what it awaited has come, its accesses are done.
    RoundCompleted,
}

/// What the machine wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a message.
    Send {
        /// To that rank of the communicator.
        to: u32,
        /// Matched by the receiver.
        tag: u32,
        /// What it carries.
        what: Payload,
    },
    /// Await a message.
    Receive {
        /// From that rank of the communicator.
        from: u32,
        /// As the sender named it.
        tag: u32,
        /// What it carries.
        what: Payload,
    },
    /// Read these extents from the file, as part of this round.
    ReadFile(Vec<Extent>),
    /// Write these extents to the file; the round is completed when the servers have them.
    WriteFile(Vec<Extent>),
    /// Write them beside the round's messages: announcement and data go out together.
    PostWrite(Vec<Extent>),
    /// When this round is completed, the call is over for this rank. The last of its actions.
    Finish,
}

/// One rank of one collective call. A round without transfers is followed by the next at once.
pub trait Collective: Machine<Event = Event, Action = Action> + Send {}

impl<M: Machine<Event = Event, Action = Action> + Send + ?Sized> Collective for M {}

/// Bytes that a collective adds to its payload.
pub const HEADER_BYTES: u64 = 20;

/// Memory of each rank for other ranks' data, where nobody says otherwise.
pub const BUFFER_BYTES: u64 = 8 << 20;
