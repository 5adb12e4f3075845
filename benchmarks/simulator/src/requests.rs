//! A program that is made up as it goes: every rank reads or writes its own small blocks in turn.

use iolab_sim::program::{Command, FileOperation, Program};
use iolab_vocab::{Direction, Extent};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Iteration i of rank r touches offset (i * ranks + r) * block.
pub(crate) struct Requests {
    pub(crate) direction: Direction,
    pub(crate) block_bytes: u64,
    pub(crate) per_rank: u64,
    /// Requests of each rank so far.
    pub(crate) done: Vec<u64>,
    /// Requests of all ranks so far, for whoever watches.
    pub(crate) issued: Arc<AtomicU64>,
}

impl Program for Requests {
    fn next(&mut self, rank: u32, list: &mut Vec<Extent>) -> Option<Command> {
        let ranks = self.done.len() as u64;
        let done = &mut self.done[rank as usize];
        if *done == self.per_rank {
            return None;
        }
        let block = *done * ranks + u64::from(rank);
        list.push(Extent::new(block * self.block_bytes, self.block_bytes));
        *done += 1;
        self.issued.fetch_add(1, Ordering::Relaxed);
        Some(FileOperation::access(self.direction, false).of(0))
    }

    fn rank_count(&self) -> u32 {
        self.done.len() as u32
    }
}
