//! Work: what each operation of a phase does, reading, writing or both.

use iolab_backend::Direction;
use iolab_vocab::{Random, Rank, Seed};

/// What one operation of a phase does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// The same for all.
    One(Direction),
    /// Reads, then writes the same place.
    ReadThenWrite,
    /// Reads with this probability (in 2⁻³²), else writes; the choice is keyed by the seed.
    Mixed { read_share: u32, seed: u64 },
}

impl Work {
    /// Which way an operation goes; `None` when both. Collective operations of a mixed phase must
    /// agree, so all ranks ask for rank 0 then.
    pub(crate) fn way_of(self, rank: Rank, index: u64) -> Option<Direction> {
        match self {
            Work::One(way) => Some(way),
            Work::ReadThenWrite => None,
            Work::Mixed { read_share, seed } => {
                let key = Seed(seed ^ (u64::from(rank.0) << 40) ^ index);
                let draw = Random::new(key).below(1 << 32);
                let is_read = draw < u64::from(read_share);
                Some(if is_read { Direction::Read } else { Direction::Write })
            }
        }
    }
}
