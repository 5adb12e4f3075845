//! Who uses which bytes, in the order in which they came.
//!
//! Whoever comes waits for those before it that use the same bytes, if it or they change them; nobody is
//! overtaken by somebody it would have to wait for. Costs: a look at all who are here, for each that comes,
//! and at all who wait for each of them when one goes.

use crate::plant::{Plant, is_planted};
use iolab_vocab::Extent;
use std::collections::VecDeque;

/// Which bytes somebody uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim<T> {
    pub(crate) whose: T,
    pub(crate) range: Extent,
    pub(crate) is_change: bool,
}

impl<T> Claim<T> {
    fn conflicts(&self, other: &Claim<T>) -> bool {
        !is_planted(Plant::TransfersOverlap)
            && (self.is_change || other.is_change)
            && !self.range.intersection(other.range).is_empty()
    }
}

/// Those who use the bytes of one subfile, and those who wait for them.
#[derive(Debug)]
pub(crate) struct Claims<T> {
    running: Vec<Claim<T>>,
    waiting: VecDeque<Claim<T>>,
}

impl<T> Default for Claims<T> {
    fn default() -> Claims<T> {
        Claims { running: Vec::new(), waiting: VecDeque::new() }
    }
}

impl<T: Copy + PartialEq> Claims<T> {
    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    /// Somebody comes. Tells whether it may begin.
    pub(crate) fn enter(&mut self, claim: Claim<T>) -> bool {
        let before = self.running.iter().chain(&self.waiting);
        let may_begin = !before.into_iter().any(|other| claim.conflicts(other));
        match may_begin {
            true => self.running.push(claim),
            false => self.waiting.push_back(claim),
        }
        may_begin
    }

    /// Somebody goes, through with its bytes or tired of waiting. Gives those that may begin now, in the
    /// order in which they came.
    pub(crate) fn leave(&mut self, whose: T) -> Vec<T> {
        self.running.retain(|claim| claim.whose != whose);
        let mut begun = Vec::new();
        let mut still = VecDeque::with_capacity(self.waiting.len());
        for claim in std::mem::take(&mut self.waiting) {
            if claim.whose == whose {
                continue;
            }
            let before = self.running.iter().chain(&still);
            if before.into_iter().any(|other| claim.conflicts(other)) {
                still.push_back(claim);
            } else {
                begun.push(claim.whose);
                self.running.push(claim);
            }
        }
        self.waiting = still;
        begun
    }
}
