//! One machine after another: a command made of others, as allreduce of reduce and broadcast.

use super::{Action, Collective, Event};
use crate::machine::Machine;
use iolab_vocab::Nanos;

/// Works off its parts in order; a part's end is the next one's beginning.
pub struct Chain {
    parts: Vec<Box<dyn Collective>>,
    current: usize,
    begins: bool,
}

impl Chain {
    /// The parts in order; at least one.
    pub fn new(parts: Vec<Box<dyn Collective>>) -> Chain {
        assert!(!parts.is_empty(), "a chain of nothing has no end");
        Chain { parts, current: 0, begins: true }
    }
}

impl Machine for Chain {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, _event: Event, out: &mut Vec<Action>) {
        let event = if self.begins { Event::Began } else { Event::RoundCompleted };
        self.parts[self.current].step(now, event, out);
        self.begins = out.last() == Some(&Action::Finish);
        if self.begins && self.current + 1 < self.parts.len() {
            out.pop();
            self.current += 1;
        }
    }
}
