//! Any block at any time: flushes in an order that no program would choose, some at once, some late. Whoever relies
//! on the order in which data reaches servers is found out. For tests and comparisons only.

use super::oldest::Waiting;
use super::{Action, Event, Place};
use crate::machine::Machine;
use iolab_vocab::{Nanos, Random};

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Cruel {
    waiting: Waiting,
    age: Nanos,
    random: Random,
    /// When it flushes next.
    at: Nanos,
}

impl Cruel {
    /// Data becomes so old at most, about; what it draws depends on the seed.
    pub(super) fn new(place: Place) -> Cruel {
        let (waiting, random) = (Waiting::default(), Random::new(place.seed));
        Cruel { waiting, age: place.age, random, at: Nanos::ZERO }
    }
}

impl Machine for Cruel {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Turn { must, .. } if (must || now >= self.at) && self.waiting.len() > 0 => {
                let any = self.random.below(self.waiting.len());
                out.extend(self.waiting.nth(any).map(|block| Action::Flush { block }));
                // One in two follows at once.
                let pause = self.random.below(2) * self.random.below(self.age.0 / 8 + 1);
                self.at = now.after(Nanos(pause));
            }
            Event::Rested if self.waiting.len() > 0 && self.at > now => {
                out.push(Action::WakeAt(self.at));
            }
            other => self.waiting.told(other),
        }
    }
}
