//! Blocks leave in the order in which they came, whoever uses them: the member that knows nothing.

use super::queue::Queue;
use super::{Action, Event};
use crate::machine::Machine;
use iolab_vocab::Nanos;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Fifo(Queue);

impl Machine for Fifo {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Full => out.extend(self.0.pop().map(|(block, _)| Action::Leave { block })),
            other => self.0.told(other),
        }
    }
}
