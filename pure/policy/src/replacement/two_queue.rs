//! Two queues: blocks that came lately leave in the order in which they came, whoever uses them; one that comes back
//! soon after it has left is worth more, and joins those of which the least recently used leaves. So what is
//! read once goes through a quarter of the memory, and leaves alone what is read again and again (2Q, full
//! version; Johnson and Shasha, VLDB 1994, with their sizes: 25 % and 50 %).
//!
//! Costs: as `lru`, and the names of as many blocks as fill half of the memory.

use super::queue::Queue;
use super::{Action, Block, Event, Place};
use crate::machine::Machine;
use iolab_vocab::Nanos;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct TwoQueue {
    /// Those that came lately, and how many bytes of them are left alone.
    lately: Queue,
    lately_max: u64,
    /// Those that have left it, and of how many bytes they are known.
    left: Queue,
    left_max: u64,
    /// Those that have come back.
    again: Queue,
}

impl TwoQueue {
    /// Of a cache with so much room.
    pub(super) fn new(place: Place) -> TwoQueue {
        let (lately, left, again) = Default::default();
        let (lately_max, left_max) = (place.memory / 4, place.memory / 2);
        TwoQueue { lately, lately_max, left, left_max, again }
    }

    fn came(&mut self, block: Block, bytes: u32) {
        match self.left.remove(block) {
            Some(_) => self.again.push(block, bytes),
            None => self.lately.push(block, bytes),
        }
    }

    fn hold(&mut self, block: Block, held: bool) {
        let _ = self.lately.hold(block, held) || self.again.hold(block, held);
    }

    /// Who leaves: of those that came lately while there are many, else of the others, if any may.
    fn leave(&mut self) -> Option<Block> {
        let is_lately = self.lately.bytes() > self.lately_max || self.again.first().is_none();
        match is_lately.then(|| self.lately.pop()).flatten() {
            None => self.again.pop().map(|(block, _)| block),
            Some((block, bytes)) => {
                self.left.push(block, bytes);
                while self.left.bytes() > self.left_max {
                    self.left.pop();
                }
                Some(block)
            }
        }
    }
}

impl Machine for TwoQueue {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Came { block, bytes } => self.came(block, bytes),
            // Of those that came lately, uses soon after each other are one.
            Event::Used { block } => self.again.used(block),
            Event::Held { block } => self.hold(block, true),
            Event::Freed { block } => self.hold(block, false),
            Event::Gone { block } => {
                let _ = self.lately.remove(block).or_else(|| self.again.remove(block));
            }
            Event::Full => out.extend(self.leave().map(|block| Action::Leave { block })),
        }
    }
}
