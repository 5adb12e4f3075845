//! Who decides what happens next: chance, or every possibility in turn.

use iolab_vocab::{Random, Seed};

/// A source of decisions.
pub(crate) enum Choice {
    /// By a seed.
    Chance(Random),
    /// Along a path of an exhaustive search.
    Path { decisions: Vec<(u64, u64)>, at: usize },
}

impl Choice {
    /// Random decisions.
    pub(crate) fn chance(seed: u64) -> Choice {
        Choice::Chance(Random::new(Seed(seed)))
    }

    /// The first path of an exhaustive search.
    pub(crate) fn first_path() -> Choice {
        Choice::Path { decisions: Vec::new(), at: 0 }
    }

    /// One of `count` possibilities.
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        match self {
            Choice::Chance(random) => random.below(count),
            Choice::Path { decisions, at } => {
                if *at == decisions.len() {
                    decisions.push((0, count));
                }
                *at += 1;
                decisions[*at - 1].0
            }
        }
    }

    /// The next path in depth-first order, as long as there is one.
    pub(crate) fn next_path(self) -> Option<Choice> {
        let Choice::Path { mut decisions, .. } = self else { return None };
        while let Some((decision, count)) = decisions.pop() {
            if decision + 1 < count {
                decisions.push((decision + 1, count));
                return Some(Choice::Path { decisions, at: 0 });
            }
        }
        None
    }
}
