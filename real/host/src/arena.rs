//! The memory of a benchmark: one page-aligned buffer that never moves.
//!
//! Back ends own it while transfers are under way, so that a kernel or an MPI library may keep
//! pointers into it without any promise from the caller.

use std::ops::{Deref, DerefMut};

/// Alignment that satisfies O_DIRECT on every device we know of.
const PAGE: usize = 4096;

/// A page-aligned buffer.
#[derive(Default)]
pub struct Arena {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Arena {
    /// `length` zero bytes, touched, so that no page fault falls into a measurement.
    pub fn new(length: usize) -> Arena {
        let bytes = vec![0u8; length + PAGE];
        let start = bytes.as_ptr().align_offset(PAGE);
        let mut arena = Arena { bytes, start, length };
        arena.iter_mut().step_by(PAGE).for_each(|byte| *byte = std::hint::black_box(1));
        arena
    }
}

impl Deref for Arena {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.length]
    }
}

impl DerefMut for Arena {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arena_starts_on_a_page() {
        let arena = Arena::new(10_000);
        assert_eq!((arena.as_ptr() as usize % PAGE, arena.len()), (0, 10_000));
        assert!(Arena::default().is_empty());
    }
}
