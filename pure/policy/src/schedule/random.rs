//! Partners at random, each process in another order.

use super::{Action, Event, Place};
use crate::machine::Machine;
use iolab_vocab::{Nanos, Random, Seed};

/// Any of the partners that are offered, all alike.
#[derive(Clone, Debug)]
pub struct AtRandom {
    random: Random,
    offered: Vec<u32>,
}

impl AtRandom {
    /// What it draws depends on the seed and on the process's number.
    pub fn new(place: Place) -> AtRandom {
        let mut seeds = Random::new(place.seed);
        let random = Random::new(Seed(seeds.bits() ^ u64::from(place.own)));
        AtRandom { random, offered: Vec::new() }
    }
}

impl Machine for AtRandom {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Offered { partner } => self.offered.push(partner),
            Event::Turn if self.offered.is_empty() => {}
            Event::Turn => {
                let at = self.random.below(self.offered.len() as u64) as usize;
                out.push(Action::Begin { partner: self.offered.swap_remove(at) });
            }
        }
    }
}
