//! Allgather around a ring: n - 1 rounds, in each of which every rank passes on to its upper
//! neighbour the block it got last from its lower one.
//!
//! As many messages as the direct way, but each link carries one block at a time and the blocks
//! never meet at a receiver; good for large blocks, bad for small ones, which pay n - 1 latencies.

use super::{Action, Collective, Event, HEADER_BYTES, Shape};

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

impl Collective for RingAllgather {
    fn step(&mut self, _event: Event, out: &mut Vec<Action>) {
        self.round += 1;
        if self.round < self.shape.rank_count {
            let bytes = self.shape.bytes + HEADER_BYTES;
            out.push(Action::Receive { from: self.shape.below(1), tag: TAG });
            out.push(Action::Send { to: self.shape.above(1), tag: TAG, bytes });
        }
        if self.round + 1 >= self.shape.rank_count {
            out.push(Action::Finish);
        }
    }
}
