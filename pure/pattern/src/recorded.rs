//! From a trace: the accesses of a recorded run, rank by rank, as a pattern.
//!
//! The only member that stores its operations, as a recorded run has no formula. It is built from
//! extents, not from the catalogue, because its parameter is a file and this crate opens none.

use crate::{Access, Contract, Pattern};
use iolab_vocab::{Extent, Rank};
use std::sync::Arc;

/// The accesses of a recorded run. Copies share them.
#[derive(Clone)]
pub struct Recorded {
    ranks: Arc<[Vec<Extent>]>,
    file_bytes: u64,
    memory_bytes: u64,
}

impl Recorded {
    /// The pattern of these accesses: one list per rank, in order of time.
    pub fn new(ranks: Vec<Vec<Extent>>) -> Recorded {
        let all = || ranks.iter().flatten();
        let file_bytes = all().map(|extent| extent.end()).max().unwrap_or(0);
        let memory_bytes = all().map(|extent| extent.length).max().unwrap_or(0);
        Recorded { ranks: ranks.into(), file_bytes, memory_bytes }
    }

    fn of(&self, rank: Rank) -> &[Extent] {
        self.ranks.get(rank.0 as usize).map_or(&[], Vec::as_slice)
    }
}

impl Pattern for Recorded {
    fn operations(&self, rank: Rank) -> u64 {
        self.of(rank).len() as u64
    }

    fn place(&self, rank: Rank, index: u64, access: &mut Access) {
        let extent = self.of(rank)[index as usize];
        access.set_contiguous(extent.offset, extent.length);
    }

    fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    fn contract(&self) -> Contract {
        Contract::Any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_run_is_replayed_in_its_own_order() {
        let pattern = Recorded::new(vec![vec![Extent::new(8, 4), Extent::new(0, 8)], vec![]]);
        let mut access = Access::new();
        pattern.place(Rank(0), 1, &mut access);
        assert_eq!(access.contiguous(), Some(Extent::new(0, 8)));
        assert_eq!((pattern.operations(Rank(1)), pattern.operations(Rank(7))), (0, 0));
        assert_eq!((pattern.file_bytes(), pattern.memory_bytes()), (12, 8));
    }
}
