//! Files mapped into memory. The calls are seen, the loads and stores are not: the trace says so, and
//! no strategy holds anything of a file while it is mapped, whoever opens it.

use super::answer::stage_or_perform;
use super::record::{leave_out, record_of};
use crate::call::{ABSENT, Call};
use crate::descriptor::Entry;
use crate::mode::{self, Mode};
use crate::{mapping, recorder, sight};
use iolab_trace::spool::Unseen;
use std::sync::atomic::Ordering;

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
        let entry = sight::look(call.fd);
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
            mapping::remember(result as usize, &call, entry.description());
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

/// `munmap` and `msync`.
///
/// # Safety
/// As [`map`].
pub(super) unsafe fn unmap(call: Call) -> isize {
    // SAFETY: the guest's own call.
    unsafe {
        let mode = mode::get();
        let found = mapping::find(call.address);
        let Some(mapping) = found else { return call.perform_cancellable() };
        let description = mapping.description.load(Ordering::Relaxed);
        if call.flags == ABSENT {
            // Before: the place may be another thread's as soon as it is free.
            mapping::forget(call.address, call.length);
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
