//! Second chance: a hand goes round the blocks in the order in which they came; one that was used since it last
//! came by stays for another round (Corbató, A paging experiment with the Multics system, 1968). Nearly as good as `lru`, and a use is
//! a bit instead of a move.

use super::queue::Queue;
use super::{Action, Block, Event};
use crate::machine::Machine;
use iolab_vocab::Nanos;
use std::collections::BTreeSet;

/// The hand stands before the first of the queue; who gets another round goes to its end.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    round: Queue,
    /// Used since the hand came by.
    used: BTreeSet<Block>,
}

impl Machine for Clock {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Used { block } => drop(self.used.insert(block)),
            Event::Gone { block } => {
                self.used.remove(&block);
                self.round.told(event);
            }
            // Each pass takes a mark away, so there are no more of them than uses.
            Event::Full => {
                while let Some(block) = self.round.first() {
                    if self.used.remove(&block) {
                        self.round.used(block);
                        continue;
                    }
                    self.round.remove(block);
                    return out.push(Action::Leave { block });
                }
            }
            other => self.round.told(other),
        }
    }
}
