//! Draws of a seed.

use iolab_vocab::{Random, Seed};

/// A generator with the draws that the explorer makes.
#[derive(Clone, Debug)]
pub(crate) struct Dice(Random);

impl Dice {
    /// The draws of a seed for one purpose: other purposes do not shift them.
    pub(crate) fn new(seed: u64, purpose: u64) -> Dice {
        let mut mixed = Random::new(Seed(seed ^ purpose.wrapping_mul(0xD6E8_FEB8_6659_FD93)));
        Dice(Random::new(Seed(mixed.bits())))
    }

    /// 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// A number in `[from, to]`.
    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.0.below(to - from + 1)
    }

    /// A number below `limit`; 0 if there is none.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit.max(1))
    }

    /// True in one of `of` cases; never for 0.
    pub(crate) fn one_in(&mut self, of: u64) -> bool {
        of > 0 && self.0.below(of) == 0
    }

    /// One of them.
    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.0.below(of.len() as u64) as usize]
    }

    /// A number in `[from, to]` whose magnitude is as likely as any other.
    pub(crate) fn magnitude(&mut self, from: u64, to: u64) -> u64 {
        let (low, high) = (from.max(1).ilog2(), to.max(1).ilog2());
        let scale = 1u64 << self.between(u64::from(low), u64::from(high));
        (scale + self.below(scale)).clamp(from, to)
    }
}
