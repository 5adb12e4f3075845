//! Random strided: strips of random length, ordered round robin, so the stride varies too.
//!
//! The frames of a media encoder: rank r writes frame `round · ranks + r`, and no two frames have
//! the same length. The length of (rank, round) is uniform between `low` and `high`. To reach
//! any position without summing up all rounds before it, rounds come in pairs: what the first
//! takes above `low`, the second takes below `high`, so that two rounds of a rank always have
//! `low + high` bytes together. Within a round the ranks before one are summed up (O(ranks)).
//!
//! ```text
//! file  |000|11111|2|3333|00000|111|2222222|3333|…
//! ```

use crate::{Access, Contract, Parameter, Pattern, Row, Settings};
use iolab_vocab::{Random, Rank, Refusal, Seed};

pub(crate) const ROW: Row = Row {
    name: "random-strided",
    title: "random strided",
    summary: "strips of random length between two bounds, ordered round robin",
    parameters: &[
        Parameter {
            name: "low",
            default: "",
            meaning: "shortest strip; empty: a quarter of `high`",
        },
        Parameter { name: "high", default: "64k", meaning: "longest strip" },
        Parameter { name: "rounds", default: "16", meaning: "strips per rank" },
    ],
    size: "high",
    count: "rounds",
    small: "low=1,high=7,rounds=4",
    build,
};

struct RandomStrided {
    ranks: u64,
    low: u64,
    high: u64,
    rounds: u64,
    seed: u64,
}

fn build(settings: &Settings) -> Result<Box<dyn Pattern>, Refusal> {
    let high = settings.bytes("high")?;
    let low = settings.bytes_or("low", (high / 4).max(1))?;
    if low > high {
        return Err(settings.wrong("low", "is above `high`"));
    }
    let rounds = settings.count("rounds")?;
    settings.volume(&[high, rounds, settings.ranks, 2])?;
    let seed = settings.seed.0;
    Ok(Box::new(RandomStrided { ranks: settings.ranks, low, high, rounds, seed }))
}

impl RandomStrided {
    fn strip(&self, rank: u64, round: u64) -> u64 {
        let key = self.seed ^ (round / 2).wrapping_mul(self.ranks).wrapping_add(rank);
        let extra = Random::new(Seed(key.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
            .below(self.high - self.low + 1);
        if round.is_multiple_of(2) { self.low + extra } else { self.high - extra }
    }

    fn round_start(&self, round: u64) -> u64 {
        let pairs = round / 2 * self.ranks * (self.low + self.high);
        if round.is_multiple_of(2) {
            pairs
        } else {
            pairs + self.round_bytes(round - 1, self.ranks)
        }
    }

    /// What the first `ranks` ranks take in a round.
    fn round_bytes(&self, round: u64, ranks: u64) -> u64 {
        (0..ranks).map(|rank| self.strip(rank, round)).sum()
    }
}

impl Pattern for RandomStrided {
    fn operations(&self, _rank: Rank) -> u64 {
        self.rounds
    }

    fn place(&self, rank: Rank, index: u64, access: &mut Access) {
        let rank = u64::from(rank.0);
        let start = self.round_start(index) + self.round_bytes(index, rank);
        access.set_contiguous(start, self.strip(rank, index));
    }

    fn file_bytes(&self) -> u64 {
        self.round_start(self.rounds)
    }

    fn memory_bytes(&self) -> u64 {
        self.high
    }

    fn contract(&self) -> Contract {
        Contract::ExactlyOnce
    }
}
