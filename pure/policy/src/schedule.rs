//! Parallel schedules: whom a process serves next that has transfers for several partners.
//!
//! Many processes with transfers for the same partners decide at the same time, each for itself: no party
//! waits for another's step, nobody decides for all. The driver says to which partners a transfer may begin
//! (it has work for them, and their window is open), and asks for one of them whenever it may begin one;
//! a partner that was chosen is not chosen again before it is offered again. After Clusterfile (Isaila,
//! Malpohl, Olaru, Szeder, Tichy, ICS 2004), whose schedule is the member `rotate`.
//!
//! Costs: O(log n) for n partners, each step; 4 bytes for each that is offered.
//!
//! What drivers and machines may rely on stands in `laws.rs`. A new schedule is one file and one row in
//! `catalog.rs`.

pub mod catalog;
mod cruel;
mod laws;
mod length;
mod random;
mod rounds;

pub use catalog::find;
pub use cruel::Cruel;
pub use laws::{ScheduleLaws, checked};
pub use length::steps;
pub use random::AtRandom;
pub use rounds::Rounds;

use crate::machine::Machine;
use iolab_vocab::Seed;
use std::fmt;

/// What a schedule is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The process's own number among those that serve the same partners.
    pub own: u32,
    /// How many partners there are, at least one.
    pub partners: u32,
    /// Decides what is left to chance.
    pub seed: Seed,
}

/// What the machine is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A transfer to this partner may begin.
    Offered {
        /// Its number.
        partner: u32,
    },
    /// One transfer may begin now.
    Turn,
}

/// What the machine wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A transfer to this partner begins.
    Begin {
        /// Its number.
        partner: u32,
    },
}

/// A schedule of one process for one access.
pub trait Schedule: Machine<Event = Event, Action = Action> + fmt::Debug + Send {}

impl<M: Machine<Event = Event, Action = Action> + fmt::Debug + Send> Schedule for M {}
