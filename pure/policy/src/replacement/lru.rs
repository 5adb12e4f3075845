//! The block that has not been used for longest leaves.

use super::queue::Queue;
use super::{Action, Event};
use crate::machine::Machine;
use iolab_vocab::Nanos;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Lru(Queue);

impl Machine for Lru {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Used { block } => self.0.used(block),
            Event::Full => out.extend(self.0.pop().map(|(block, _)| Action::Leave { block })),
            other => self.0.told(other),
        }
    }
}
