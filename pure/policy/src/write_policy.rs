//! Write policies: when a cache brings to its servers what clients have written.
//!
//! The driver says which blocks may be flushed (they have bytes that no server has, and nothing is under way for
//! them), how much of the memory such bytes hold, and whether something must be flushed now, since somebody waits for
//! memory or room, or the cache ends. The machine says which block is flushed next, if any. What a sync waits for
//! is flushed without asking.
//!
//! A row also says what a write's answer promises ([`catalog::Answer`]): that the cache has it, or that servers do.
//!
//! Costs: O(log n) for n blocks, each step.
//!
//! What drivers and machines may rely on stands in `laws.rs`. A new write policy is one file and one row in
//! `catalog.rs`.

pub mod catalog;
mod cruel;
mod delayed;
mod laws;
mod oldest;

pub use catalog::find;
pub use laws::{WritePolicyLaws, checked};

use crate::machine::Machine;
use crate::replacement::Block;
use iolab_vocab::{Nanos, Seed};
use std::fmt;

/// What a write policy is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// How old data may become, where age matters.
    pub age: Nanos,
    /// Decides what is left to chance.
    pub seed: Seed,
}

/// What the machine is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// This block may be flushed.
    Offered {
        /// Which.
        block: Block,
        /// Since when it has bytes that no server has.
        since: Nanos,
        /// Its place among those that have such bytes since then.
        order: u64,
    },
    /// It may not, or need not, for now.
    Withdrawn {
        /// Which.
        block: Block,
    },
    /// One more flush may begin.
    Turn {
        /// Whether one must, if any can.
        must: bool,
        /// Bytes of blocks that have some no server has.
        dirty_bytes: u64,
        /// Bytes of blocks at most.
        memory: u64,
    },
    /// No more flushes begin now: the driver asks when it would be woken.
    Rested,
}

/// What the machine wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// This block is flushed. It counts as offered until it is withdrawn.
    Flush {
        /// Which.
        block: Block,
    },
    /// [`Event::Turn`] then at the latest.
    WakeAt(Nanos),
}

/// The write policy of one cache.
pub trait WritePolicy: Machine<Event = Event, Action = Action> + fmt::Debug + Send {}

impl<M: Machine<Event = Event, Action = Action> + fmt::Debug + Send> WritePolicy for M {}
