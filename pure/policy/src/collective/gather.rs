//! Gather and scatter, the direct way: everyone to the root, or the root to everyone, in one round.
//!
//! n - 1 messages, all through the root's link; so it is what a root can take that limits it.

use super::{Action, Event, Payload, Ranks, Shape};
use crate::machine::Machine;
use iolab_vocab::{Extent, Nanos};

const GATHER_TAG: u32 = 3;
const SCATTER_TAG: u32 = 4;

/// One rank of a gather.
#[derive(Debug)]
pub struct Gather(Shape);

/// One rank of a scatter. Where every block is the same vector this is the flat broadcast, and a
/// gather whose root combines what comes is the flat reduce.
#[derive(Debug)]
pub struct Scatter {
    shape: Shape,
    is_broadcast: bool,
}

impl Gather {
    /// The machine for one rank.
    pub fn new(shape: Shape) -> Gather {
        Gather(shape)
    }
}

impl Scatter {
    /// The machine for one rank.
    pub fn new(shape: Shape) -> Scatter {
        Scatter { shape, is_broadcast: false }
    }

    /// The machine for one rank of a flat broadcast.
    pub fn broadcast(shape: Shape) -> Scatter {
        Scatter { shape, is_broadcast: true }
    }

    fn for_rank(&self, rank: u32) -> Payload {
        match self.is_broadcast {
            true => Payload::Vector(Extent::new(0, self.shape.bytes)),
            false => Payload::Blocks(Ranks::one(rank)),
        }
    }
}

impl Machine for Gather {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, _event: Event, out: &mut Vec<Action>) {
        let Shape { rank, root, .. } = self.0;
        let block_of = |rank| Payload::Blocks(Ranks::one(rank));
        match rank == root {
            true => {
                let receive =
                    |from| Action::Receive { from, tag: GATHER_TAG, what: block_of(from) };
                out.extend(self.0.others().map(receive));
            }
            false => out.push(Action::Send { to: root, tag: GATHER_TAG, what: block_of(rank) }),
        }
        out.push(Action::Finish);
    }
}

impl Machine for Scatter {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, _event: Event, out: &mut Vec<Action>) {
        let Shape { rank, root, .. } = self.shape;
        match rank == root {
            true => {
                let send = |to| Action::Send { to, tag: SCATTER_TAG, what: self.for_rank(to) };
                out.extend(self.shape.others().map(send));
            }
            false => {
                let what = self.for_rank(rank);
                out.push(Action::Receive { from: root, tag: SCATTER_TAG, what });
            }
        }
        out.push(Action::Finish);
    }
}
