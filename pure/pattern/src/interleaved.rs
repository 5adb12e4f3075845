//! Interleaved blocks: iteration i, rank r accesses block i·ranks + r, n blocks per operation.
//!
//! The test files of PIOsimHD: the same bytes of the file with 1, 100 or all blocks in one
//! (non-contiguous) operation, which is what separates the four levels of MPI-IO access
//! (Thakur et al. 1998).
//!
//! ```text
//! file  |0|1|2|3|0|1|2|3|0|1|2|3|…      one operation: n boxes of one rank
//! ```

use crate::{Access, Contract, Parameter, Pattern, Row, Settings, Strided};
use iolab_vocab::{Rank, Refusal};

pub(crate) const ROW: Row = Row {
    name: "interleaved",
    title: "interleaved blocks",
    summary: "block i·ranks + r in iteration i; n blocks per operation",
    parameters: &[
        Parameter { name: "block", default: "4k", meaning: "bytes of a block" },
        Parameter { name: "blocks", default: "100", meaning: "blocks per rank" },
        Parameter { name: "batch", default: "1", meaning: "blocks per operation; 0 = all" },
    ],
    size: "block",
    count: "blocks",
    small: "block=2,blocks=6,batch=3",
    build,
};

struct Interleaved {
    ranks: u64,
    block: u64,
    blocks: u64,
    batch: u64,
}

fn build(settings: &Settings) -> Result<Box<dyn Pattern>, Refusal> {
    let (block, blocks) = (settings.bytes("block")?, settings.count("blocks")?);
    settings.volume(&[block, blocks, settings.ranks])?;
    let batch = match settings.number("batch")? {
        0 => blocks,
        batch => batch.min(blocks),
    };
    Ok(Box::new(Interleaved { ranks: settings.ranks, block, blocks, batch }))
}

impl Interleaved {
    fn blocks_from(&self, rank: Rank, first: u64, count: u64) -> Strided {
        let start = (first * self.ranks + u64::from(rank.0)) * self.block;
        Strided::contiguous(start, self.block).repeated(count, self.ranks * self.block)
    }
}

impl Pattern for Interleaved {
    fn operations(&self, _rank: Rank) -> u64 {
        self.blocks.div_ceil(self.batch)
    }

    fn place(&self, rank: Rank, index: u64, access: &mut Access) {
        let first = index * self.batch;
        access.set(self.blocks_from(rank, first, self.batch.min(self.blocks - first)));
    }

    fn file_bytes(&self) -> u64 {
        self.block * self.blocks * self.ranks
    }

    fn memory_bytes(&self) -> u64 {
        self.block * self.batch
    }

    fn contract(&self) -> Contract {
        Contract::ExactlyOnce
    }

    fn whole(&self, rank: Rank) -> Option<Strided> {
        Some(self.blocks_from(rank, 0, self.blocks))
    }
}
