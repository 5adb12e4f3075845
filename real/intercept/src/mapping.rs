//! The files that this process has mapped, as far as the calls show it: a table of fixed size.
//!
//! Where a mapping of a followed file was moved or unmapped unseen it still counts, and with more of
//! them than there is room for every file counts as mapped.

use crate::call::Call;
use crate::mode::{self, Mode};
use crate::system;
use iolab_processor::page_bytes;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Mappings of followed files that are remembered, to tell their `munmap` and `msync` from those
/// of other memory. With one more, every file counts as mapped.
const ROOM: usize = 1024;

/// A mapping of a followed file.
pub(crate) struct Mapping {
    start: AtomicUsize,
    end: AtomicUsize,
    pub(crate) description: AtomicU32,
    device: AtomicU64,
    inode: AtomicU64,
}

static MAPPINGS: [Mapping; ROOM] = [const {
    Mapping {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        description: AtomicU32::new(0),
        device: AtomicU64::new(0),
        inode: AtomicU64::new(0),
    }
}; ROOM];
static USED: AtomicUsize = AtomicUsize::new(0);
static TOO_MANY: AtomicBool = AtomicBool::new(false);

/// Whether the file with that status is mapped by this process, as far as is known: what was moved
/// or unmapped unseen still counts.
pub(crate) fn is_mapped(status: &libc::stat) -> bool {
    let used = USED.load(Ordering::Relaxed).min(ROOM);
    let shows = |mapping: &Mapping| {
        mapping.start.load(Ordering::Relaxed) != 0
            && mapping.inode.load(Ordering::Relaxed) == status.st_ino
            && mapping.device.load(Ordering::Relaxed) == status.st_dev
    };
    TOO_MANY.load(Ordering::Relaxed) || MAPPINGS[..used].iter().any(shows)
}

/// The files that this process has mapped, as far as is known, by device and inode.
pub(crate) fn for_each(mut act: impl FnMut(u64, u64)) {
    for mapping in &MAPPINGS[..USED.load(Ordering::Relaxed).min(ROOM)] {
        let inode = mapping.inode.load(Ordering::Relaxed);
        if mapping.start.load(Ordering::Relaxed) != 0 && inode != 0 {
            act(mapping.device.load(Ordering::Relaxed), inode);
        }
    }
}

/// Takes note of a mapping that a call has made here.
pub(crate) fn remember(start: usize, call: &Call, description: u32) {
    let free = MAPPINGS.iter().enumerate().find(|(_, mapping)| {
        mapping.start.compare_exchange(0, start, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    });
    let Some((index, mapping)) = free else { return TOO_MANY.store(true, Ordering::Relaxed) };
    if mode::get().has(Mode::STAGE)
        && let Ok(status) = system::status(call.fd as i32)
    {
        mapping.device.store(status.st_dev, Ordering::Relaxed);
        mapping.inode.store(status.st_ino, Ordering::Relaxed);
    }
    mapping.description.store(description, Ordering::Relaxed);
    mapping.end.store(start.saturating_add(call.length), Ordering::Release);
    USED.fetch_max(index + 1, Ordering::Relaxed);
}

/// What of a mapping stays after an unmapping of these bytes: where it begins, 0 for nothing. Of one
/// that is cut in two, all counts as mapped.
fn rest(start: usize, end: usize, first: usize, last: usize) -> usize {
    match (first <= start, end <= last) {
        (true, true) => 0,
        (true, false) => start.max(last),
        _ => start,
    }
}

/// Takes note that these bytes are mapped no longer.
pub(crate) fn forget(first: usize, length: usize) {
    let last = first.saturating_add(length.next_multiple_of(page_bytes()));
    for mapping in &MAPPINGS[..USED.load(Ordering::Relaxed).min(ROOM)] {
        let start = mapping.start.load(Ordering::Relaxed);
        if start != 0 {
            let end = mapping.end.load(Ordering::Relaxed);
            mapping.start.store(rest(start, end, first, last), Ordering::Relaxed);
        }
    }
}

/// The mapping of a followed file that an address lies in.
pub(crate) fn find(address: usize) -> Option<&'static Mapping> {
    MAPPINGS[..USED.load(Ordering::Relaxed).min(ROOM)].iter().find(|mapping| {
        let start = mapping.start.load(Ordering::Relaxed);
        start != 0 && start <= address && address < mapping.end.load(Ordering::Acquire)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_mapping_stays_what_was_not_unmapped() {
        assert_eq!(rest(100, 200, 100, 200), 0);
        assert_eq!(rest(100, 200, 50, 300), 0);
        assert_eq!(rest(100, 200, 100, 150), 150);
        assert_eq!(rest(100, 200, 150, 200), 100);
        assert_eq!(rest(100, 200, 120, 150), 100);
        assert_eq!(rest(100, 200, 0, 50), 100);
    }
}
