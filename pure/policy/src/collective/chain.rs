//! One machine after another: a command made of others, as allreduce of reduce and broadcast.

use super::{Action, Collective, Event};

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

impl Collective for Chain {
    fn step(&mut self, _event: Event, out: &mut Vec<Action>) {
        let event = if self.begins { Event::Began } else { Event::Settled };
        self.parts[self.current].step(event, out);
        self.begins = out.last() == Some(&Action::Finish);
        if self.begins && self.current + 1 < self.parts.len() {
            out.pop();
            self.current += 1;
        }
    }
}
