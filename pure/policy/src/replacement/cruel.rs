//! The block that was used last leaves, which is the one that is wanted next wherever programs go on where they
//! were: the worst that is allowed. For tests and comparisons only.

use super::queue::Queue;
use super::{Action, Event};
use crate::machine::Machine;
use iolab_vocab::Nanos;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Cruel(Queue);

impl Machine for Cruel {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Used { block } => self.0.used(block),
            Event::Full => {
                let last = self.0.last();
                out.extend(last.map(|block| Action::Leave { block }));
                last.map(|block| self.0.remove(block));
            }
            other => self.0.told(other),
        }
    }
}
