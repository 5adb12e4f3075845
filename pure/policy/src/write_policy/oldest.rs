//! The block that has waited for longest: at once, or only when it must be.
//!
//! `on-sync` is the member that never decides: what no sync or close asks for stays in memory while there is some,
//! also what a process has left that ended without closing. `through` keeps as little as can be: a block waits only
//! while others are under way.

use super::{Action, Event};
use crate::machine::Machine;
use crate::replacement::Block;
use iolab_vocab::Nanos;
use std::collections::BTreeMap;

/// Those that may be flushed, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    by_age: BTreeMap<(Nanos, u64), Block>,
    ages: BTreeMap<Block, (Nanos, u64)>,
}

impl Waiting {
    /// What all members do alike: blocks are offered and withdrawn.
    pub(super) fn told(&mut self, event: Event) {
        match event {
            Event::Offered { block, since, order } => {
                self.by_age.insert((since, order), block);
                self.ages.insert(block, (since, order));
            }
            Event::Withdrawn { block } => {
                self.ages.remove(&block).map(|age| self.by_age.remove(&age));
            }
            Event::Turn { .. } | Event::Rested => {}
        }
    }

    /// The oldest, and since when it waits.
    pub(super) fn oldest(&self) -> Option<(Nanos, Block)> {
        self.by_age.first_key_value().map(|(&(since, _), &block)| (since, block))
    }

    /// That of this number, of all in the order of blocks.
    pub(super) fn nth(&self, at: u64) -> Option<Block> {
        self.ages.keys().nth(at as usize).copied()
    }

    pub(super) fn len(&self) -> u64 {
        self.ages.len() as u64
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Oldest {
    waiting: Waiting,
    at_once: bool,
}

impl Oldest {
    /// Whatever may be flushed is.
    pub(super) fn at_once() -> Oldest {
        Oldest { waiting: Waiting::default(), at_once: true }
    }

    /// Nothing is unless it must be.
    pub(super) fn when_it_must() -> Oldest {
        Oldest { waiting: Waiting::default(), at_once: false }
    }
}

impl Machine for Oldest {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Turn { must, .. } if must || self.at_once => {
                out.extend(self.waiting.oldest().map(|(_, block)| Action::Flush { block }));
            }
            other => self.waiting.told(other),
        }
    }
}
