//! Allgather around a ring: n - 1 rounds, in each of which every rank passes on to its upper
//! neighbour the block it got last from its lower one.
//!
//! As many messages as the direct way, but each link carries one block at a time and the blocks
//! never meet at a receiver; good for large blocks, bad for small ones, which pay n - 1 latencies.

use super::{Action, Event, Payload, Ranks, Shape};
use crate::machine::Machine;
use iolab_vocab::Nanos;

const TAG: u32 = 6;

/// One rank of an allgather.
#[derive(Debug)]
pub struct RingAllgather {
    shape: Shape,
    round: u32,
}

impl RingAllgather {
    /// The machine for one rank.
    pub fn new(shape: Shape) -> RingAllgather {
        RingAllgather { shape, round: 0 }
    }
}

impl Machine for RingAllgather {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, _event: Event, out: &mut Vec<Action>) {
        self.round += 1;
        if self.round < self.shape.rank_count {
            let (from, to) = (self.shape.below(1), self.shape.above(1));
            let block_of = |rank| Payload::Blocks(Ranks::one(rank));
            let newest = self.shape.below(self.round - 1);
            let next = self.shape.below(self.round);
            out.push(Action::Receive { from, tag: TAG, what: block_of(next) });
            out.push(Action::Send { to, tag: TAG, what: block_of(newest) });
        }
        if self.round + 1 >= self.shape.rank_count {
            out.push(Action::Finish);
        }
    }
}
