//! Database access: small records at random places of ten large files.
//!
//! Per iteration and rank one file is drawn; then pieces of 512 B to 50 KiB at random places of
//! it until 1,280,000 B are done. A call holds one piece, several or all. In a mixed run each
//! call is a read or a write by a bit drawn after its pieces.

use super::JavaRandom;
use crate::program::{Command, FileOperation, Program};
use iolab_vocab::Extent;

/// Files of the benchmark.
const FILE_COUNT: u32 = 10;
/// Size of each.
const FILE_BYTES: u64 = 1_250_000 * 1024;
/// Done by each rank in each iteration.
const SHARE_BYTES: u64 = 1_280_000;
/// Records are multiples of this.
const RECORD_BYTES: u64 = 512;

/// What the calls do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All read.
    Read,
    /// All write.
    Write,
    /// By a random bit each.
    Mixed,
}

/// The benchmark, for all its ranks.
#[derive(Clone, Debug)]
pub struct Database {
    ranks: Vec<Calls>,
}

#[derive(Clone, Debug, Default)]
struct Calls {
    done: usize,
    pieces: Vec<Extent>,
    /// Per call: where its pieces end, its file, whether it reads.
    calls: Vec<(u32, u32, bool)>,
}

impl Database {
    /// `pieces_per_call` at once; `usize::MAX` for all of an iteration.
    pub fn new(
        mode: Mode,
        rank_count: u32,
        iterations: u32,
        pieces_per_call: usize,
        random: &mut JavaRandom,
    ) -> Database {
        let mut ranks = vec![Calls::default(); rank_count as usize];
        for _ in 0..iterations {
            for calls in &mut ranks {
                calls.add_iteration(mode, pieces_per_call, random);
            }
        }
        Database { ranks }
    }
}

impl Calls {
    fn add_iteration(&mut self, mode: Mode, pieces_per_call: usize, random: &mut JavaRandom) {
        let file = random.below(FILE_COUNT as i32) as u32;
        let mut left = SHARE_BYTES;
        while left > 0 {
            let mut count = 0;
            while left > 0 && count < pieces_per_call {
                let piece = draw_piece(left, random);
                left -= piece.length;
                self.pieces.push(piece);
                count += 1;
            }
            let reads = match mode {
                Mode::Read => true,
                Mode::Write => false,
                Mode::Mixed => random.bit(),
            };
            self.calls.push((self.pieces.len() as u32, file, reads));
        }
    }
}

fn draw_piece(left: u64, random: &mut JavaRandom) -> Extent {
    let offset = random.long().unsigned_abs() % FILE_BYTES;
    let offset = offset / RECORD_BYTES * RECORD_BYTES;
    let wanted = (random.below(100) as u64 + 1) * RECORD_BYTES;
    Extent::new(offset, wanted.min(left).min(FILE_BYTES - offset))
}

impl Program for Database {
    fn next(&mut self, rank: u32, list: &mut Vec<Extent>) -> Option<Command> {
        let calls = &mut self.ranks[rank as usize];
        let files = FILE_COUNT as usize;
        let at = calls.done;
        calls.done += 1;
        if at < files {
            return Some(FileOperation::Open.of(at as u32));
        }
        let call = at - files;
        if let Some(&(end, file, reads)) = calls.calls.get(call) {
            let start = call.checked_sub(1).map_or(0, |before| calls.calls[before].0);
            list.extend_from_slice(&calls.pieces[start as usize..end as usize]);
            return Some(if reads {
                FileOperation::Read.of(file)
            } else {
                FileOperation::Write.of(file)
            });
        }
        let closed = call - calls.calls.len();
        (closed < files).then_some(FileOperation::Close.of(closed as u32))
    }

    fn rank_count(&self) -> u32 {
        self.ranks.len() as u32
    }
}
