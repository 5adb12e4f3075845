//! Individual access: every rank reads or writes its own blocks, interleaved with the others'.
//!
//! Iteration i of rank r touches offset (i * ranks + r) * block. A call holds one block, several
//! or all of a rank; the last call of several is full even when that leaves the file, which makes
//! a write longer than the file was meant to be. That is what the published evaluation did.

use crate::program::{Command, FileOperation, Program};
use iolab_vocab::{Direction, Extent};

/// The benchmark, for all its ranks.
#[derive(Clone, Debug)]
pub struct Individual {
    /// Which way.
    pub direction: Direction,
    /// Size of a block.
    pub block_bytes: u64,
    /// Blocks of each rank in the file.
    pub iterations: u64,
    /// Blocks per call; `u64::MAX` for all.
    pub blocks_per_call: u64,
    /// Whether the calls are collective.
    pub is_collective: bool,
    calls: Vec<u64>,
}

impl Individual {
    /// Blocks of `block_bytes` laid over `file_bytes` by `rank_count` ranks.
    pub fn new(
        direction: Direction,
        rank_count: u32,
        file_bytes: u64,
        block_bytes: u64,
        blocks_per_call: u64,
    ) -> Individual {
        let iterations = file_bytes / block_bytes / u64::from(rank_count);
        Individual {
            direction,
            block_bytes,
            iterations,
            blocks_per_call: blocks_per_call.min(iterations),
            is_collective: false,
            calls: vec![0; rank_count as usize],
        }
    }

    /// The same, with collective calls.
    pub fn collective(self) -> Individual {
        Individual { is_collective: true, ..self }
    }

    fn call_count(&self) -> u64 {
        self.iterations.div_ceil(self.blocks_per_call)
    }
}

impl Program for Individual {
    fn next(&mut self, rank: u32, list: &mut Vec<Extent>) -> Option<Command> {
        let call = self.calls[rank as usize];
        self.calls[rank as usize] += 1;
        if call == 0 {
            return Some(FileOperation::Open.of(0));
        }
        if call > self.call_count() {
            return (call == self.call_count() + 1).then_some(FileOperation::Close.of(0));
        }
        let first = (call - 1) * self.blocks_per_call;
        let ranks = self.calls.len() as u64;
        let place = |iteration| (iteration * ranks + u64::from(rank)) * self.block_bytes;
        let blocks = first..first + self.blocks_per_call;
        list.extend(blocks.map(|iteration| Extent::new(place(iteration), self.block_bytes)));
        Some(FileOperation::access(self.direction, self.is_collective).of(0))
    }

    fn rank_count(&self) -> u32 {
        self.calls.len() as u32
    }
}
