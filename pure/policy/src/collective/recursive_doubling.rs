//! Allreduce by recursive doubling (Thakur, Rabenseifner and Gropp 2005).
//!
//! In round k partners 2^k apart exchange what they have combined so far, so after log2 n rounds
//! everyone has the result: half the rounds of a reduce and a broadcast, for n log2 n messages
//! instead of 2(n - 1). Where n is no power of two, the first ranks fold: each second of them gives
//! its contribution to its neighbour before, and gets the result after.

use super::{Action, Event, Payload, Ranks, Shape};
use crate::machine::Machine;
use iolab_vocab::{Extent, Nanos};

const FOLD_TAG: u32 = 40;
const RESULT_TAG: u32 = 41;
/// Round k has this tag plus k.
const ROUND_TAG: u32 = 42;

/// One rank of an allreduce.
#[derive(Debug)]
pub struct RecursiveDoubling {
    shape: Shape,
    next: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Fold,
    /// Exchanged over this distance.
    Round(u32),
    Result,
}

impl RecursiveDoubling {
    /// The machine for one rank.
    pub fn new(shape: Shape) -> RecursiveDoubling {
        RecursiveDoubling { shape, next: Step::Fold }
    }

    /// The largest power of two of ranks that takes part in the rounds.
    fn round_ranks(&self) -> u32 {
        1 << self.shape.rank_count.ilog2()
    }

    /// Ranks that are too many for that; as many pairs fold.
    fn pair_count(&self) -> u32 {
        self.shape.rank_count - self.round_ranks()
    }

    /// Half of a pair: the even one folds into the odd one above it.
    fn is_paired(&self) -> bool {
        self.shape.rank < 2 * self.pair_count()
    }

    /// Its number among those that take part in the rounds.
    fn number(&self) -> u32 {
        match self.is_paired() {
            true => self.shape.rank / 2,
            false => self.shape.rank - self.pair_count(),
        }
    }

    /// The first rank whose contribution that number stands for.
    fn first_of(&self, number: u32) -> u32 {
        number + number.min(self.pair_count())
    }

    /// The rank of that number.
    fn rank_of(&self, number: u32) -> u32 {
        self.first_of(number) + u32::from(number < self.pair_count())
    }

    /// What the number has combined before the round over this distance.
    fn combined(&self, number: u32, distance: u32) -> Payload {
        let from = number & !(distance - 1);
        let first = self.first_of(from);
        Payload::Combined(Ranks { first, count: self.first_of(from + distance) - first })
    }

    fn fold(&mut self, out: &mut Vec<Action>) {
        let rank = self.shape.rank;
        self.next = Step::Round(1);
        if !self.is_paired() {
            return self.round(1, out);
        }
        if rank.is_multiple_of(2) {
            let what = Payload::Combined(Ranks::one(rank));
            out.push(Action::Send { to: rank + 1, tag: FOLD_TAG, what });
            self.next = Step::Result;
        } else {
            let what = Payload::Combined(Ranks::one(rank - 1));
            out.push(Action::Receive { from: rank - 1, tag: FOLD_TAG, what });
        }
    }

    fn round(&mut self, distance: u32, out: &mut Vec<Action>) {
        if distance == self.round_ranks() {
            return self.result(out);
        }
        let (own, other) = (self.number(), self.number() ^ distance);
        let (partner, tag) = (self.rank_of(other), ROUND_TAG + distance.ilog2());
        let (theirs, what) = (self.combined(other, distance), self.combined(own, distance));
        out.push(Action::Receive { from: partner, tag, what: theirs });
        out.push(Action::Send { to: partner, tag, what });
        self.next = Step::Round(2 * distance);
    }

    fn result(&self, out: &mut Vec<Action>) {
        let rank = self.shape.rank;
        let what = Payload::Vector(Extent::new(0, self.shape.bytes));
        if self.is_paired() {
            out.push(match rank.is_multiple_of(2) {
                true => Action::Receive { from: rank + 1, tag: RESULT_TAG, what },
                false => Action::Send { to: rank - 1, tag: RESULT_TAG, what },
            });
        }
        out.push(Action::Finish);
    }
}

impl Machine for RecursiveDoubling {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, _event: Event, out: &mut Vec<Action>) {
        match self.next {
            Step::Fold => self.fold(out),
            Step::Round(distance) => self.round(distance, out),
            Step::Result => self.result(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_double_their_distance_and_count_up_their_tag() {
        let shape = Shape { rank: 2, rank_count: 8, root: 0, bytes: 64, eager_bytes: 0 };
        let mut machine = RecursiveDoubling::new(shape);
        let mut actions = Vec::new();
        for _ in 0..3 {
            machine.step(Nanos::ZERO, Event::Began, &mut actions);
        }
        let sent = actions.iter().filter_map(|action| match *action {
            Action::Send { to, tag, what: Payload::Combined(ranks) } => {
                Some((to, tag, ranks.first, ranks.count))
            }
            _ => None,
        });
        let wanted = [(3, 42, 2, 1), (0, 43, 2, 2), (6, 44, 0, 4)];
        assert_eq!(sent.collect::<Vec<_>>(), wanted);
    }
}
