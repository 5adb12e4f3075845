//! Partners in turn, round after round.

use super::{Action, Event, Place};
use crate::machine::Machine;
use iolab_vocab::Nanos;
use std::collections::BTreeSet;

/// The j-th transfer goes to partner (first + j) mod n; partners that are not offered are skipped.
#[derive(Clone, Debug)]
pub struct Rounds {
    next: u32,
    offered: BTreeSet<u32>,
}

impl Rounds {
    /// Each begins with the partner of its own number, so that no two meet while all go at one pace: the
    /// schedule of Clusterfile.
    pub fn rotated(place: Place) -> Rounds {
        Rounds { next: place.own % place.partners, offered: BTreeSet::new() }
    }

    /// All begin with partner 0: the published counter-example.
    pub fn in_order() -> Rounds {
        Rounds { next: 0, offered: BTreeSet::new() }
    }
}

impl Machine for Rounds {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Offered { partner } => {
                self.offered.insert(partner);
            }
            Event::Turn => {
                let found = self.offered.range(self.next..).next().or(self.offered.first());
                let Some(&partner) = found else { return };
                self.offered.remove(&partner);
                self.next = partner + 1;
                out.push(Action::Begin { partner });
            }
        }
    }
}
