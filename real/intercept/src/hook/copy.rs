//! Transfers between two descriptors inside the kernel.

use super::answer::stage_or_perform_cancellable;
use super::record::leave_out;
use crate::call::{ABSENT, Call};
use crate::descriptor::Entry;
use crate::mode::{self, Mode};
use crate::recorder::{self, Record};
use crate::sight;
use iolab_trace::spool::LeftOut;
use iolab_trace::{Function, MOVED_SOURCE, MOVED_TARGET};

/// # Safety
/// The arguments in the call are the guest's own.
pub(super) unsafe fn hook(call: Call) -> isize {
    // SAFETY: the guest's own call.
    unsafe {
        let mode = mode::get();
        let (source, target) = (sight::look(call.in_fd), sight::look(call.out_fd));
        if !source.is_tracked() && !target.is_tracked() {
            leave_out(source.reason().unwrap_or(LeftOut::BadDescriptor));
            return call.perform_cancellable();
        }
        let start = recorder::now();
        let result = stage_or_perform_cancellable(&call, mode);
        let times = (start, recorder::now());
        if mode.has(Mode::RECORD_POSIX) {
            let places = Places::of(&call, result);
            let row = row(&call, source, target, &places, times, result);
            // Rows come in the order their calls ended, what is inside of one before it.
            if result > 0 {
                recorder::push(target_row(&call, target, &places, row));
            }
            recorder::push(row);
        }
        result
    }
}

/// Where a copy began in its two files, where the program said it.
struct Places {
    source: Option<i64>,
    target: Option<i64>,
}

impl Places {
    /// # Safety
    /// The arguments in the call are the guest's own, and the kernel has answered it.
    unsafe fn of(call: &Call, result: isize) -> Places {
        // The kernel has moved an offset by what it copied.
        let began = |pointer: usize| {
            let is_told = pointer != 0 && pointer != ABSENT && result >= 0;
            // SAFETY: the kernel just wrote there.
            is_told.then(|| unsafe { (pointer as *const i64).read_unaligned() - result as i64 })
        };
        match call.function {
            Function::SENDFILE => Places { source: began(call.offset), target: None },
            _ => Places { source: began(call.in_offset), target: began(call.out_offset) },
        }
    }
}

fn row(
    call: &Call,
    source: Entry,
    target: Entry,
    places: &Places,
    times: (u64, u64),
    result: isize,
) -> Record {
    Record {
        start: times.0,
        end: times.1,
        offset: places.source.unwrap_or(-1),
        length: call.length as i64,
        argument: if target.is_tracked() { i64::from(target.description()) } else { -1 },
        result: result as i64,
        number: if source.is_tracked() { source.description() } else { 0 },
        fd: call.in_fd as i32,
        function: call.function.0,
        ..Record::default()
    }
}

/// The row that says where the bytes went, by that of the copy.
fn target_row(call: &Call, target: Entry, places: &Places, row: Record) -> Record {
    let moved = |place: Option<i64>, bit| if place.is_none() { bit } else { 0 };
    Record {
        offset: places.target.unwrap_or(-1),
        argument: moved(places.source, MOVED_SOURCE) | moved(places.target, MOVED_TARGET),
        number: if target.is_tracked() { target.description() } else { 0 },
        fd: call.out_fd as i32,
        function: Function::COPY_TARGET.0,
        ..row
    }
}
