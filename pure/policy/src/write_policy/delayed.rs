//! The block that has waited for longest, once it has done so for long, or when half of the memory is dirty: what is
//! written again soon travels once, a burst goes at the speed of memory, and the servers get it while the program
//! computes.

use super::oldest::Waiting;
use super::{Action, Event, Place};
use crate::machine::Machine;
use iolab_vocab::Nanos;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Delayed {
    waiting: Waiting,
    age: Nanos,
}

impl Delayed {
    /// Data may become so old.
    pub(super) fn new(place: Place) -> Delayed {
        Delayed { waiting: Waiting::default(), age: place.age }
    }
}

impl Machine for Delayed {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Turn { must, dirty_bytes, memory } => {
                let is_half_dirty = dirty_bytes > memory / 2;
                let oldest = self.waiting.oldest();
                let due = oldest
                    .filter(|&(since, _)| must || is_half_dirty || now.since(since) >= self.age);
                out.extend(due.map(|(_, block)| Action::Flush { block }));
            }
            Event::Rested => {
                let due = self.waiting.oldest().map(|(since, _)| since.after(self.age));
                // What is due and could not begin, begins when something else is over.
                out.extend(due.filter(|&at| at > now).map(Action::WakeAt));
            }
            other => self.waiting.told(other),
        }
    }
}
