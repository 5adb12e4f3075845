//! Everybody serves the same partner until nothing is left for it: the worst that is allowed. For tests
//! and comparisons only.

use super::{Action, Event};
use crate::machine::Machine;
use iolab_vocab::Nanos;
use std::collections::BTreeSet;

/// Always the offered partner with the lowest number.
#[derive(Clone, Debug, Default)]
pub struct Cruel {
    offered: BTreeSet<u32>,
}

impl Machine for Cruel {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Offered { partner } => {
                self.offered.insert(partner);
            }
            Event::Turn => {
                out.extend(self.offered.pop_first().map(|partner| Action::Begin { partner }))
            }
        }
    }
}
