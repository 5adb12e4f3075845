//! Barrier by dissemination (Hensgen, Finkel and Manber 1988): in round k rank r tells r + 2^k and
//! hears from r - 2^k. After log2 n rounds everyone has heard of everyone.

use super::{Action, Event, Payload, Shape};
use crate::machine::Machine;
use iolab_vocab::Nanos;

/// Round k has this tag plus k, so that a fast rank's next round is not taken for this one.
const TAG: u32 = 16;

/// One rank of a barrier.
#[derive(Debug)]
pub struct DisseminationBarrier {
    shape: Shape,
    round: u32,
}

impl DisseminationBarrier {
    /// The machine for one rank.
    pub fn new(shape: Shape) -> DisseminationBarrier {
        DisseminationBarrier { shape, round: 0 }
    }
}

impl Machine for DisseminationBarrier {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, _event: Event, out: &mut Vec<Action>) {
        let rounds = self.shape.rank_count.next_power_of_two().trailing_zeros();
        if self.round < rounds {
            let (distance, tag) = (1 << self.round, TAG + self.round);
            let (from, to) = (self.shape.below(distance), self.shape.above(distance));
            out.push(Action::Receive { from, tag, what: Payload::Nothing });
            out.push(Action::Send { to, tag, what: Payload::Nothing });
        }
        self.round += 1;
        if self.round >= rounds {
            out.push(Action::Finish);
        }
    }
}
