//! The binomial tree over the ranks of a communicator, as broadcast and reduce walk it.

use super::{Ranks, Shape};

/// One rank's place in the tree; ranks are counted from the root.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree {
    root: u32,
    rank_count: u32,
    relative: u32,
}

impl Tree {
    pub(super) fn of(shape: Shape) -> Tree {
        let Shape { rank, rank_count, root, .. } = shape;
        Tree { root, rank_count, relative: (rank + rank_count - root) % rank_count }
    }

    fn absolute(self, relative: u32) -> u32 {
        (relative + self.root) % self.rank_count
    }

    /// The rank with the lowest one-bit cleared; the root has none.
    pub(super) fn parent(self) -> Option<u32> {
        (self.relative > 0).then(|| self.absolute(self.relative & (self.relative - 1)))
    }

    /// The rank plus each power of two below its lowest one-bit, highest first.
    pub(super) fn children(self) -> impl Iterator<Item = u32> {
        let powers = match self.relative {
            0 => self.rank_count.next_power_of_two().trailing_zeros(),
            _ => self.relative.trailing_zeros(),
        };
        let child = move |power: u32| self.relative + (1 << power);
        let exists = move |child: &u32| *child < self.rank_count;
        (0..powers).rev().map(child).filter(exists).map(move |child| self.absolute(child))
    }

    /// A rank with all that stand below it: as many as its lowest one-bit says, as far as there are.
    pub(super) fn below(self, rank: u32) -> Ranks {
        let relative = (rank + self.rank_count - self.root) % self.rank_count;
        let left = self.rank_count - relative;
        let count = if relative == 0 { left } else { left.min(relative & relative.wrapping_neg()) };
        Ranks { first: rank, count }
    }
}
