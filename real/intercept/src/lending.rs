//! The two words by which all threads know whether a child runs on this process's memory: how many have
//! lent it, and, in the word that every call looks at, whether this is an ordinary moment. While anybody has lent
//! the memory the moment must not count as ordinary, in whatever order the threads come by.

use crate::atomic::Ordering::{AcqRel, Relaxed, Release};
use crate::atomic::{AtomicU16, AtomicU32};

/// The memory is lent once more: counted first, so that whoever finds the mode changed finds the count changed.
pub(crate) fn lend(lent: &AtomicU32, mode: &AtomicU16, usual: u16) {
    lent.fetch_add(1, Relaxed);
    mode.fetch_and(!usual, Release);
}

/// So many do not lend it any more; if nobody does, the moment is an ordinary one again, unless nothing is wanted.
pub(crate) fn take_back(
    lent: &AtomicU32,
    count: u32,
    mode: &AtomicU16,
    usual: u16,
    is_wanted: bool,
) {
    if lent.fetch_sub(count, Relaxed) == count && is_wanted {
        // Acquires: another thread may have lent it in between, and if its change of the mode came before
        // this one, the look below must find its count.
        mode.fetch_or(usual, AcqRel);
        if lent.load(Relaxed) != 0 {
            mode.fetch_and(!usual, Release);
        }
    }
}
