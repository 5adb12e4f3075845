//! Alltoall: every rank has a block of its own for every other.
//!
//! Direct sends all n - 1 blocks at once, so every receiver's link is fought for. Pairwise takes
//! n - 1 rounds; in round k rank r sends to r + k and receives from r - k, so every link carries
//! one block at a time (Thakur, Rabenseifner and Gropp 2005).

use super::{Action, Event, Payload, Ranks, Shape};
use crate::machine::Machine;
use iolab_vocab::Nanos;

const TAG: u32 = 5;

/// One rank of an alltoall, all blocks at once; also of one whose blocks differ in length.
#[derive(Debug)]
pub struct Alltoall(Shape);

/// One rank of an alltoall, one partner after the other.
#[derive(Debug)]
pub struct PairwiseAlltoall {
    shape: Shape,
    round: u32,
}

impl Alltoall {
    /// The machine for one rank.
    pub fn new(shape: Shape) -> Alltoall {
        Alltoall(shape)
    }
}

/// The block of `from` for this rank comes, and this rank's for `to` goes.
fn exchange(shape: Shape, from: u32, to: u32) -> [Action; 2] {
    let block_for = |rank| Payload::Blocks(Ranks::one(rank));
    [
        Action::Receive { from, tag: TAG, what: block_for(shape.rank) },
        Action::Send { to, tag: TAG, what: block_for(to) },
    ]
}

impl PairwiseAlltoall {
    /// The machine for one rank.
    pub fn new(shape: Shape) -> PairwiseAlltoall {
        PairwiseAlltoall { shape, round: 0 }
    }
}

impl Machine for Alltoall {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, _event: Event, out: &mut Vec<Action>) {
        for other in self.0.others() {
            out.extend(exchange(self.0, other, other));
        }
        out.push(Action::Finish);
    }
}

impl Machine for PairwiseAlltoall {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, _event: Event, out: &mut Vec<Action>) {
        self.round += 1;
        if self.round < self.shape.rank_count {
            let (to, from) = (self.shape.above(self.round), self.shape.below(self.round));
            out.extend(exchange(self.shape, from, to));
        }
        if self.round + 1 >= self.shape.rank_count {
            out.push(Action::Finish);
        }
    }
}
