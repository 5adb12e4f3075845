//! Random blocks, as a permutation: every block of the file once, in a keyed random order.
//!
//! The order is a Feistel network over the next power of four, walked until it lands inside
//! (Black and Rogaway 2002), so block n of a billion is found in constant time and memory.
//!
//! ```text
//! file  |2|0|3|1|0|2|1|1|3|0|…       rank of each block
//! ```

use crate::{Access, Contract, Parameter, Pattern, Row, Settings};
use iolab_vocab::{Random, Rank, Refusal, Seed};

pub(crate) const ROW: Row = Row {
    name: "random-blocks",
    title: "random blocks (permutation)",
    summary: "every block of the file once, in a keyed random order",
    parameters: &[
        Parameter { name: "block", default: "4k", meaning: "bytes per operation" },
        Parameter { name: "count", default: "256", meaning: "operations per rank" },
    ],
    size: "block",
    count: "count",
    small: "block=2,count=6",
    build,
};

const ROUNDS: usize = 4;

struct Permuted {
    ranks: u64,
    block: u64,
    count: u64,
    /// Bits of each half of the Feistel network.
    half: u32,
    keys: [u64; ROUNDS],
}

fn build(settings: &Settings) -> Result<Box<dyn Pattern>, Refusal> {
    let (block, count) = (settings.bytes("block")?, settings.count("count")?);
    settings.volume(&[block, count, settings.ranks])?;
    let bits = u64::BITS - (count * settings.ranks - 1).leading_zeros();
    let mut random = Random::new(settings.seed);
    let keys = std::array::from_fn(|_| random.bits());
    let half = bits.div_ceil(2).max(1);
    Ok(Box::new(Permuted { ranks: settings.ranks, block, count, half, keys }))
}

impl Permuted {
    fn scramble(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half) - 1;
        let (mut left, mut right) = (value >> self.half, value & mask);
        for key in self.keys {
            let mixed = Random::new(Seed(right ^ key)).bits() & mask;
            (left, right) = (right, left ^ mixed);
        }
        (left << self.half) | right
    }

    /// Where block `index` of the sequence lies in the file.
    fn position(&self, index: u64) -> u64 {
        let blocks = self.count * self.ranks;
        let mut position = self.scramble(index);
        while position >= blocks {
            position = self.scramble(position);
        }
        position
    }
}

impl Pattern for Permuted {
    fn operations(&self, _rank: Rank) -> u64 {
        self.count
    }

    fn place(&self, rank: Rank, index: u64, access: &mut Access) {
        let position = self.position(index * self.ranks + u64::from(rank.0));
        access.set_contiguous(position * self.block, self.block);
    }

    fn file_bytes(&self) -> u64 {
        self.block * self.count * self.ranks
    }

    fn memory_bytes(&self) -> u64 {
        self.block
    }

    fn contract(&self) -> Contract {
        Contract::ExactlyOnce
    }
}
