//! What is written: bytes that tell where they belong.
//!
//! The byte at an offset comes from a table of pseudo-random words that repeats every 251 pages.
//! So a transfer to any contiguous range needs no filling: its data is a window of the table, on
//! a page boundary whenever the offset is, as direct I/O wants. Data that lands at a wrong place
//! differs unless the error is a multiple of 251 pages, which no power of two is. Files and
//! generations (what a read-modify-write wrote) have tables of their own.

use iolab_pattern::Access;
use iolab_vocab::{Random, Seed};
use std::fmt;

/// After how many bytes the table repeats.
pub const PERIOD: u64 = 251 * 4096;

/// The bytes of one file in one generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    key: u64,
}

/// A byte that is not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Where in the file (after the header).
    pub offset: u64,
    /// What should be there.
    pub wanted: u8,
    /// What is there.
    pub got: u8,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: wanted {:#04x}, got {:#04x}", self.offset, self.wanted, self.got)
    }
}

impl Content {
    /// The content of that file (0 when shared) in that generation (0 at first).
    pub fn new(seed: Seed, file: u32, generation: u32) -> Content {
        let place = u64::from(file) << 32 | u64::from(generation);
        Content { key: Random::new(Seed(seed.0 ^ place.rotate_left(17))).bits() }
    }

    fn word(self, index: u64) -> u64 {
        Random::new(Seed(self.key.wrapping_add(index.wrapping_mul(0x2545_F491_4F6C_DD1D)))).bits()
    }

    /// The byte that belongs at an offset.
    pub fn byte(self, offset: u64) -> u8 {
        let position = offset % PERIOD;
        self.word(position / 8).to_le_bytes()[(position % 8) as usize]
    }

    /// Writes into `memory` what belongs at `offset` and after.
    pub fn fill(self, offset: u64, memory: &mut [u8]) {
        let mut done = 0;
        while done < memory.len() {
            let position = (offset + done as u64) % PERIOD;
            let word = self.word(position / 8).to_le_bytes();
            let from = (position % 8) as usize;
            let length = (8 - from).min(memory.len() - done);
            memory[done..done + length].copy_from_slice(&word[from..from + length]);
            done += length;
        }
    }

    /// Writes into the buffer of an operation what belongs where it goes.
    pub fn fill_access(self, access: &Access, memory: &mut [u8]) {
        for piece in access.pieces() {
            let range = piece.memory as usize..(piece.memory + piece.length) as usize;
            self.fill(piece.file, &mut memory[range]);
        }
    }

    /// The first byte of an operation's buffer that does not belong where it came from.
    pub fn check_access(self, access: &Access, memory: &[u8]) -> Result<(), Mismatch> {
        let mut wanted = Vec::new();
        for piece in access.pieces() {
            let got = &memory[piece.memory as usize..(piece.memory + piece.length) as usize];
            wanted.resize(got.len(), 0);
            self.fill(piece.file, &mut wanted);
            if let Some(at) = got.iter().zip(&wanted).position(|(got, wanted)| got != wanted) {
                let offset = piece.file + at as u64;
                return Err(Mismatch { offset, wanted: wanted[at], got: got[at] });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filling_in_parts_or_at_once_gives_the_same_bytes() {
        let content = Content::new(Seed(3), 1, 0);
        let start = PERIOD - 13;
        let mut whole = vec![0; 100];
        content.fill(start, &mut whole);
        for cut in [1, 7, 8, 13, 64] {
            let mut parts = vec![0; 100];
            content.fill(start, &mut parts[..cut]);
            content.fill(start + cut as u64, &mut parts[cut..]);
            assert_eq!(whole, parts, "cut at {cut}");
        }
        assert!((0..100).all(|i| whole[i as usize] == content.byte(start + i)));
    }

    #[test]
    fn a_byte_that_went_elsewhere_is_noticed() {
        let content = Content::new(Seed(3), 0, 0);
        let mut access = Access::new();
        access.set_contiguous(5000, 300);
        for distance in [1, 8, 512, 4096, 1 << 20, 1 << 30] {
            let mut memory = vec![0; 300];
            content.fill(5000 + distance, &mut memory);
            let mismatch = content.check_access(&access, &memory).expect_err("misplaced");
            assert_eq!(mismatch.wanted, content.byte(mismatch.offset));
        }
        let mut right = vec![0; 300];
        content.fill_access(&access, &mut right);
        assert_eq!(content.check_access(&access, &right), Ok(()));
    }

    #[test]
    fn files_generations_and_seeds_differ() {
        let head = |seed, file, generation| {
            let mut bytes = [0; 16];
            Content::new(Seed(seed), file, generation).fill(0, &mut bytes);
            bytes
        };
        let all = [head(1, 0, 0), head(2, 0, 0), head(1, 1, 0), head(1, 0, 1)];
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
