//! Allgather, the direct way: everyone sends to everyone.

use super::{Action, Event, Payload, Ranks, Shape};
use crate::machine::Machine;
use iolab_vocab::Nanos;

/// One rank of an allgather.
#[derive(Debug)]
pub struct Allgather {
    shape: Shape,
}

impl Allgather {
    /// The machine for one rank.
    pub fn new(shape: Shape) -> Allgather {
        Allgather { shape }
    }
}

impl Machine for Allgather {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, _event: Event, out: &mut Vec<Action>) {
        let block_of = |rank| Payload::Blocks(Ranks::one(rank));
        for other in self.shape.others() {
            out.push(Action::Receive { from: other, tag: 0, what: block_of(other) });
            out.push(Action::Send { to: other, tag: 0, what: block_of(self.shape.rank) });
        }
        out.push(Action::Finish);
    }
}
