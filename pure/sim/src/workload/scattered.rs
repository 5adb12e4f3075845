//! Random access: the blocks of the individual pattern in shuffled order, one per call.
//!
//! All (iteration, rank) pairs in order are shuffled once; each rank does its blocks in the order
//! in which they then stand.

use super::JavaRandom;
use crate::program::{Command, FileOperation, Program};
use iolab_vocab::{Direction, Extent};

/// The benchmark, for all its ranks.
#[derive(Clone, Debug)]
pub struct Scattered {
    direction: Direction,
    block_bytes: u64,
    /// Per rank, its iterations in the order in which it does them.
    order: Vec<Vec<u32>>,
    calls: Vec<usize>,
}

impl Scattered {
    /// Blocks of `block_bytes` laid over `file_bytes` by `rank_count` ranks, in the order that
    /// the generator's next shuffle gives.
    pub fn new(
        direction: Direction,
        rank_count: u32,
        file_bytes: u64,
        block_bytes: u64,
        random: &mut JavaRandom,
    ) -> Scattered {
        let iterations = (file_bytes / block_bytes / u64::from(rank_count)) as u32;
        let pair = |iteration| (0..rank_count).map(move |rank| (iteration, rank));
        let mut pairs: Vec<_> = (0..iterations).flat_map(pair).collect();
        random.shuffle(&mut pairs);
        let mut order = vec![Vec::with_capacity(iterations as usize); rank_count as usize];
        pairs.into_iter().for_each(|(iteration, rank)| order[rank as usize].push(iteration));
        Scattered { direction, block_bytes, order, calls: vec![0; rank_count as usize] }
    }
}

impl Program for Scattered {
    fn next(&mut self, rank: u32, list: &mut Vec<Extent>) -> Option<Command> {
        let call = self.calls[rank as usize];
        self.calls[rank as usize] += 1;
        let order = &self.order[rank as usize];
        if call == 0 {
            return Some(FileOperation::Open.of(0));
        }
        if call > order.len() {
            return (call == order.len() + 1).then_some(FileOperation::Close.of(0));
        }
        let block = u64::from(order[call - 1]) * self.order.len() as u64 + u64::from(rank);
        list.push(Extent::new(block * self.block_bytes, self.block_bytes));
        Some(FileOperation::access(self.direction, false).of(0))
    }

    fn rank_count(&self) -> u32 {
        self.calls.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_does_its_blocks_once_and_their_order_is_not_the_one_in_the_file() {
        let (ranks, bytes) = (3, 10);
        let mut random = JavaRandom::new(1);
        let mut program = Scattered::new(Direction::Write, ranks, 30 * bytes, bytes, &mut random);
        assert_eq!(program.rank_count(), ranks);
        for rank in 0..ranks {
            let mut list = Vec::new();
            let commands: Vec<Command> =
                std::iter::from_fn(|| program.next(rank, &mut list)).collect();
            assert_eq!(commands.len(), 12, "ten blocks between an opening and a closing");
            assert_eq!(commands[0], FileOperation::Open.of(0));
            assert_eq!(commands[11], FileOperation::Close.of(0));
            let offsets: Vec<u64> = list.iter().map(|extent| extent.offset).collect();
            let mut sorted = offsets.clone();
            sorted.sort_unstable();
            let own = |at: u64| (at * u64::from(ranks) + u64::from(rank)) * bytes;
            assert_eq!(sorted, (0..10).map(own).collect::<Vec<_>>());
            assert_ne!(offsets, sorted, "rank {rank}");
        }
    }
}
