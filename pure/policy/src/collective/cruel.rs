//! The cruel member: another machine's rounds, one transfer at a time, in shuffled order.
//!
//! Sends come before receives, for a receive may wait for what the own send sets off; apart from
//! that every order is taken. What survives this does not lean on a round going out as one.

use super::{Action, Collective, Event};
use crate::machine::Machine;
use iolab_vocab::{Nanos, Random, Seed};

/// One rank of a call that goes as badly as allowed.
pub struct Cruel {
    inner: Box<dyn Collective>,
    random: Random,
    left: Vec<Action>,
    event: Event,
}

impl Cruel {
    /// Wraps one rank's machine.
    pub fn new(inner: Box<dyn Collective>, rank: u32) -> Cruel {
        let random = Random::new(Seed(u64::from(rank)));
        Cruel { inner, random, left: Vec::new(), event: Event::Began }
    }

    /// To be taken from the end: sends last, each kind shuffled, and before all the end itself.
    fn shuffle(&mut self) {
        for index in (1..self.left.len()).rev() {
            self.left.swap(index, self.random.below(index as u64 + 1) as usize);
        }
        self.left.sort_by_key(|action| match action {
            Action::Finish => 0,
            Action::Send { .. } => 2,
            _ => 1,
        });
    }
}

impl Machine for Cruel {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, _event: Event, out: &mut Vec<Action>) {
        if self.left.is_empty() {
            self.inner.step(now, self.event, &mut self.left);
            self.event = Event::RoundCompleted;
            self.shuffle();
        }
        out.extend(self.left.pop());
    }
}
