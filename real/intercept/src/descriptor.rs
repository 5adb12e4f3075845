//! What is known about each descriptor: a table by number, one word each, filled at open or at
//! first sight.
//!
//! A word holds the state (unknown, tracked, left out and why), the open flags that matter, and
//! the number of the open file description, which dup'ed descriptors share and which is unique
//! over all processes of a run.

use iolab_trace::spool::LeftOut;
use std::sync::atomic::{AtomicU64, Ordering};

/// Descriptors above are passed through and counted.
const LIMIT: usize = 65_536;

static TABLE: [AtomicU64; LIMIT] = [const { AtomicU64::new(0) }; LIMIT];

/// What the table says about a descriptor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry(u64);

impl Entry {
    /// Not looked at yet.
    pub(crate) const UNKNOWN: Entry = Entry(0);
    const TRACKED: u64 = 1;

    /// A regular file, with its description's number and the flags it was opened with.
    pub(crate) const fn tracked(description: u32, flags: u32) -> Entry {
        Entry(Entry::TRACKED | ((flags as u64) & 0xff_ffff) << 8 | (description as u64) << 32)
    }

    /// Not followed, for this reason.
    pub(crate) const fn left_out(reason: LeftOut) -> Entry {
        Entry(2 + reason as u64)
    }

    /// Whether it is a regular file whose calls are followed.
    #[inline(always)]
    pub(crate) const fn is_tracked(self) -> bool {
        self.0 & 0xff == Entry::TRACKED
    }

    /// Why it is not followed.
    pub(crate) fn reason(self) -> Option<LeftOut> {
        LeftOut::from_index((self.0 & 0xff).wrapping_sub(2) as usize)
    }

    /// Number of the open file description.
    #[inline(always)]
    pub(crate) const fn description(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The `O_…` flags of the open.
    pub(crate) const fn flags(self) -> u32 {
        (self.0 >> 8) as u32 & 0xff_ffff
    }
}

/// The entry of a descriptor, unknown or not.
#[inline(always)]
pub(crate) fn get(fd: usize) -> Entry {
    let fd = fd as u32 as usize;
    if fd < LIMIT { Entry(TABLE[fd].load(Ordering::Relaxed)) } else { out_of_table(fd) }
}

/// The entry of what has none.
const fn out_of_table(fd: usize) -> Entry {
    Entry::left_out(match fd <= i32::MAX as usize {
        true => LeftOut::OutOfTable,
        false => LeftOut::BadDescriptor,
    })
}

/// Sets the entry of a descriptor.
pub(crate) fn set(fd: i32, entry: Entry) {
    if let Some(word) = TABLE.get(fd as usize) {
        word.store(entry.0, Ordering::Relaxed);
    }
}

/// Forgets a descriptor and says what was known.
pub(crate) fn take(fd: usize) -> Entry {
    let fd = fd as u32 as usize;
    TABLE.get(fd).map_or(out_of_table(fd), |word| Entry(word.swap(0, Ordering::Relaxed)))
}

/// Forgets all descriptors from `first` to `last`.
pub(crate) fn forget_range(first: usize, last: usize) {
    for word in TABLE.iter().take(last.saturating_add(1)).skip(first) {
        // A store only where something stands: most of the table is untouched memory.
        if word.load(Ordering::Relaxed) != 0 {
            word.store(0, Ordering::Relaxed);
        }
    }
}
