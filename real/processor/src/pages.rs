//! The size of pages: 4 KiB on x86-64; 4, 16 or 64 KiB on AArch64, as the system's kernel was built.

use crate::PAGE_BYTES_MAX;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of a page of this system. Asked of the loader's notes once; no system call.
#[inline]
pub fn page_bytes() -> usize {
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    match KNOWN.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: looks up a word of the auxiliary vector.
            let told = unsafe { libc::getauxval(libc::AT_PAGESZ) } as usize;
            let bytes = if told.is_power_of_two() { told } else { PAGE_BYTES_MAX };
            KNOWN.store(bytes, Ordering::Relaxed);
            bytes
        }
        known => known,
    }
}

/// The whole pages in which the bytes of a range lie.
#[inline]
pub fn whole_pages(range: Range<usize>, page_bytes: usize) -> Range<usize> {
    range.start & !(page_bytes - 1)..range.end.next_multiple_of(page_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_no_larger_than_statics_are_laid_out_for() {
        assert!(page_bytes().is_power_of_two() && (4096..=PAGE_BYTES_MAX).contains(&page_bytes()));
    }

    #[test]
    fn a_range_is_covered_by_pages_of_any_size() {
        for bytes in [4 << 10, 16 << 10, 64 << 10] {
            assert_eq!(whole_pages(bytes..2 * bytes, bytes), bytes..2 * bytes);
            assert_eq!(whole_pages(bytes - 1..bytes + 1, bytes), 0..2 * bytes);
            assert_eq!(whole_pages(70_000..70_012, bytes), {
                let first = 70_000 / bytes * bytes;
                first..first + bytes
            });
        }
    }
}
