//! Files mapped into memory. The calls are seen, the loads and stores are not: the trace says so, and
//! no strategy holds anything of a file while it is mapped, whoever opens it.

use super::{leave_out, record_of, stage_or_perform};
use crate::call::{ABSENT, Call};
use crate::descriptor::{self, Entry};
use crate::mode::{self, Mode};
use crate::{recorder, system};
use iolab_trace::spool::Unseen;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Mappings of followed files that are remembered, to tell their `munmap` and `msync` from those
/// of other memory. With one more, every file counts as mapped.
const ROOM: usize = 1024;

struct Mapping {
    start: AtomicUsize,
    end: AtomicUsize,
    description: AtomicU32,
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
pub(super) fn is_mapped(status: &libc::stat) -> bool {
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

/// `mmap`.
///
/// # Safety
/// The arguments in the call are the guest's own.
pub(super) unsafe fn map(call: Call) -> isize {
    // SAFETY: the guest's own call.
    unsafe {
        let mode = mode::get();
        let anonymous = call.flags as i32 & libc::MAP_ANONYMOUS != 0 || (call.fd as i32) < 0;
        if anonymous {
            return call.perform();
        }
        let entry = descriptor::look(call.fd);
        if !entry.is_tracked() {
            if let Some(reason) = entry.reason() {
                leave_out(reason);
            }
            return call.perform();
        }
        map_followed(call, entry, mode)
    }
}

unsafe fn map_followed(call: Call, entry: Entry, mode: Mode) -> isize {
    // SAFETY: the guest's own call.
    unsafe {
        let start = recorder::now();
        let result = stage_or_perform(call, mode);
        let times = (start, recorder::now());
        if result >= 0 {
            remember(result as usize, &call, entry.description());
            note_unseen(&call);
        }
        if mode.has(Mode::RECORD_POSIX) {
            let shown = if result > 0 { 0 } else { result };
            let class = call.function.class();
            let mut record = record_of(class, &call, entry.description(), times, shown);
            let flags = (call.flags as u32 as i64) << 32;
            record.argument = i64::from(call.protection as u32) | flags;
            recorder::push(record);
        }
        result
    }
}

fn note_unseen(call: &Call) {
    let shared = call.flags as i32 & libc::MAP_SHARED != 0;
    if shared && call.protection as i32 & libc::PROT_WRITE != 0 {
        recorder::unseen(Unseen::MappedStores);
    } else {
        recorder::unseen(Unseen::MappedLoads);
    }
}

fn remember(start: usize, call: &Call, description: u32) {
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
fn forget(first: usize, length: usize) {
    let last = first.saturating_add(length.next_multiple_of(4096));
    for mapping in &MAPPINGS[..USED.load(Ordering::Relaxed).min(ROOM)] {
        let start = mapping.start.load(Ordering::Relaxed);
        if start != 0 {
            let end = mapping.end.load(Ordering::Relaxed);
            mapping.start.store(rest(start, end, first, last), Ordering::Relaxed);
        }
    }
}

fn find(address: usize) -> Option<&'static Mapping> {
    MAPPINGS[..USED.load(Ordering::Relaxed).min(ROOM)].iter().find(|mapping| {
        let start = mapping.start.load(Ordering::Relaxed);
        start != 0 && start <= address && address < mapping.end.load(Ordering::Acquire)
    })
}

/// `munmap` and `msync`.
///
/// # Safety
/// As [`map`].
pub(super) unsafe fn unmap(call: Call) -> isize {
    // SAFETY: the guest's own call.
    unsafe {
        let mode = mode::get();
        let found = find(call.address);
        let Some(mapping) = found else { return call.perform_cancellable() };
        let description = mapping.description.load(Ordering::Relaxed);
        if call.flags == ABSENT {
            // Before: the place may be another thread's as soon as it is free.
            forget(call.address, call.length);
        }
        let start = recorder::now();
        let result = stage_or_perform(call, mode);
        let times = (start, recorder::now());
        if mode.has(Mode::RECORD_POSIX) {
            let class = call.function.class();
            recorder::push(record_of(class, &call, description, times, result));
        }
        result
    }
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
