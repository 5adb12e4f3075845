//! Paths in static memory: nothing is allocated in a guest.

use crate::path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A path in static memory, ended by NUL.
pub(super) struct Text {
    bytes: [AtomicU64; Text::WORDS],
    length: AtomicUsize,
}

impl Text {
    const WORDS: usize = 544;

    pub(super) const fn new() -> Text {
        Text { bytes: [const { AtomicU64::new(0) }; Text::WORDS], length: AtomicUsize::new(0) }
    }

    pub(super) fn clear(&self) {
        self.length.store(0, Ordering::Relaxed);
    }

    /// Appends, and ends with a NUL that the next append overwrites.
    pub(super) fn push(&self, text: &[u8]) {
        let length = self.length.load(Ordering::Relaxed);
        if length + text.len() < Text::WORDS * 8 {
            // SAFETY: within the array; only start and a child's set-up write it.
            unsafe {
                let to = self.bytes.as_ptr().cast::<u8>().cast_mut().add(length);
                std::ptr::copy_nonoverlapping(text.as_ptr(), to, text.len());
                to.add(text.len()).write(0);
            }
            self.length.store(length + text.len(), Ordering::Relaxed);
        }
    }

    pub(super) fn push_decimal(&self, number: u32) {
        let mut digits = [0; 10];
        let count = path::write_decimal(number, &mut digits);
        self.push(&digits[..count]);
    }

    pub(super) fn text(&self) -> &[u8] {
        // SAFETY: the first `length` bytes were written.
        unsafe {
            std::slice::from_raw_parts(
                self.bytes.as_ptr().cast(),
                self.length.load(Ordering::Relaxed),
            )
        }
    }

    pub(super) fn address(&self) -> usize {
        self.bytes.as_ptr() as usize
    }
}
