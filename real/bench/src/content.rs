//! What is written: bytes that tell where they belong, and when they were written.
//!
//! The content is a function of seed, file, version and offset; every timed phase of every case and
//! repetition writes a version of its own, so that what an earlier phase left is never taken for what
//! this one should have written. Two parts make it up:
//!
//! * the first eight bytes of every sector (512 bytes) are a stamp, a function of the absolute sector:
//!   no two sectors of a file are equal, so storage that finds duplicates finds none;
//! * the rest comes from a table of pseudo-random words that begins anew every 16 MiB (4099 pages, a
//!   prime, so that no power of two is a period): storage that compresses blocks gains nothing.
//!
//! The table is why writing costs the harness nothing: the data of a contiguous transfer is a window
//! of it, on a page boundary whenever the offset is, as direct I/O wants. In files that are longer than
//! the table the stamps of a window are put in before its operation, a store for each sector.

use iolab_pattern::Access;
use iolab_vocab::{Random, Seed};
use std::fmt;

/// Bytes of the table.
pub(crate) const TABLE: u64 = 4099 * 4096;
/// Each of these begins with a stamp.
pub(crate) const SECTOR: u64 = 512;
const WORD: u64 = 8;
/// Odd, so that multiples of it never meet again.
const STEP: u64 = 0x2545_F491_4F6C_DD1D;

/// The bytes of one file in one version.
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

fn mixed(value: u64) -> u64 {
    Random::new(Seed(value)).bits()
}

impl Content {
    /// The content of that file (0 when shared) in that version (0 at first).
    pub fn new(seed: Seed, file: u32, version: u64) -> Content {
        let place = (u64::from(file) << 32).rotate_left(17);
        let version = if version == 0 { 0 } else { mixed(version) };
        Content { key: mixed(seed.0 ^ place ^ version) }
    }

    /// The stamp of a sector.
    #[inline]
    pub(crate) fn stamp(self, sector: u64) -> [u8; 8] {
        mixed(self.key.rotate_left(32).wrapping_add(sector.wrapping_mul(STEP))).to_le_bytes()
    }

    #[inline]
    fn word(self, index: u64, place: u64) -> [u8; 8] {
        match index % (SECTOR / WORD) {
            0 => self.stamp(index / (SECTOR / WORD)),
            _ => mixed(self.key.wrapping_add(place.wrapping_mul(STEP))).to_le_bytes(),
        }
    }

    /// The byte that belongs at an offset.
    pub fn byte(self, offset: u64) -> u8 {
        let index = offset / WORD;
        self.word(index, index % (TABLE / WORD))[(offset % WORD) as usize]
    }

    /// Writes into `memory` what belongs at `offset` and after.
    pub fn fill(self, offset: u64, memory: &mut [u8]) {
        let (mut index, skip) = (offset / WORD, (offset % WORD) as usize);
        let mut place = index % (TABLE / WORD);
        let head = if skip == 0 { 0 } else { (WORD as usize - skip).min(memory.len()) };
        let (first, rest) = memory.split_at_mut(head);
        if head > 0 {
            first.copy_from_slice(&self.word(index, place)[skip..skip + head]);
            (index, place) = (index + 1, (place + 1) % (TABLE / WORD));
        }
        for bytes in rest.chunks_mut(WORD as usize) {
            let word = self.word(index, place);
            bytes.copy_from_slice(&word[..bytes.len()]);
            index += 1;
            place = if place + 1 == TABLE / WORD { 0 } else { place + 1 };
        }
    }

    /// Writes into the buffer of an operation what belongs where it goes.
    pub fn fill_access(self, access: &Access, memory: &mut [u8]) {
        for piece in access.pieces() {
            let range = piece.memory as usize..(piece.memory + piece.length) as usize;
            self.fill(piece.file, &mut memory[range]);
        }
    }
}

/// Whether every byte that should come from `offset` on is as one of these has it.
pub(crate) fn check(allowed: &[Content], offset: u64, got: &[u8]) -> Result<(), Mismatch> {
    let (Some(first), others) = (allowed.first(), allowed.get(1..).unwrap_or_default()) else {
        return Ok(());
    };
    let mut wanted = vec![0; got.len()];
    first.fill(offset, &mut wanted);
    if wanted == got {
        return Ok(());
    }
    let right = |at: usize| {
        let place = offset + at as u64;
        got[at] == wanted[at] || others.iter().any(|other| other.byte(place) == got[at])
    };
    match (0..got.len()).find(|at| !right(*at)) {
        None => Ok(()),
        Some(at) => Err(Mismatch { offset: offset + at as u64, wanted: wanted[at], got: got[at] }),
    }
}

/// The first byte of an operation's buffer that does not belong where it came from.
pub(crate) fn check_access(
    allowed: &[Content],
    access: &Access,
    memory: &[u8],
) -> Result<(), Mismatch> {
    access.pieces().try_for_each(|piece| {
        let got = &memory[piece.memory as usize..(piece.memory + piece.length) as usize];
        check(allowed, piece.file, got)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn filling_in_parts_or_at_once_gives_the_same_bytes() {
        let content = Content::new(Seed(3), 1, 0);
        for start in [TABLE - 13, 3, 505] {
            let mut whole = vec![0; 1100];
            content.fill(start, &mut whole);
            for cut in [1, 2, 7, 8, 13, 64, 1099] {
                let mut parts = vec![0; 1100];
                content.fill(start, &mut parts[..cut]);
                content.fill(start + cut as u64, &mut parts[cut..]);
                assert_eq!(whole, parts, "from {start}, cut at {cut}");
            }
            assert!((0..1100).all(|i| whole[i as usize] == content.byte(start + i)));
        }
    }

    #[test]
    fn a_byte_that_went_elsewhere_is_noticed_however_far() {
        let content = [Content::new(Seed(3), 0, 0)];
        let mut access = Access::new();
        access.set_contiguous(5000, 600);
        for distance in [1, 8, 512, 4096, 251 * 4096, 1 << 20, TABLE, 7 * TABLE, 1 << 40] {
            let mut memory = vec![0; 600];
            content[0].fill(5000 + distance, &mut memory);
            let mismatch = check_access(&content, &access, &memory).expect_err("misplaced");
            assert_eq!(mismatch.wanted, content[0].byte(mismatch.offset));
        }
        let mut right = vec![0; 600];
        content[0].fill_access(&access, &mut right);
        assert_eq!(check_access(&content, &access, &right), Ok(()));
    }

    #[test]
    fn no_two_sectors_are_equal_of_any_file_version_or_seed() {
        let mut seen = BTreeSet::new();
        for (seed, file, version) in [(1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1), (1, 0, 1 << 32)] {
            let content = Content::new(Seed(seed), file, version);
            for sector in (0..200).chain((0..200).map(|sector| sector + 5 * TABLE / SECTOR)) {
                let mut bytes = vec![0; SECTOR as usize];
                content.fill(sector * SECTOR, &mut bytes);
                assert!(seen.insert(bytes), "{seed} {file} {version} {sector}");
            }
        }
    }

    #[test]
    fn bytes_of_either_version_are_told_from_those_of_neither() {
        let (old, new) = (Content::new(Seed(1), 0, 1), Content::new(Seed(1), 0, 2));
        let mut half = vec![0; 1000];
        old.fill(0, &mut half);
        new.fill(500, &mut half[500..]);
        assert_eq!(check(&[new, old], 0, &half), Ok(()));
        assert_eq!(check(&[new], 0, &half).map_err(|wrong| wrong.offset), Err(0));
        half[700] ^= 0xFF;
        assert!(check(&[new, old], 0, &half).is_err() || old.byte(700) == half[700]);
    }
}
