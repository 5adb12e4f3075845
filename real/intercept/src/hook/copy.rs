//! Transfers between two descriptors inside the kernel.

use super::answer::stage_or_perform_cancellable;
use super::record::leave_out;
use crate::call::{ABSENT, Call};
use crate::descriptor::Entry;
use crate::mode::{self, Mode};
use crate::recorder::{self, Record};
use crate::sight;
use iolab_trace::Function;
use iolab_trace::spool::LeftOut;

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
            recorder::push(record(&call, source, target, times, result));
        }
        result
    }
}

fn record(call: &Call, source: Entry, target: Entry, times: (u64, u64), result: isize) -> Record {
    // SAFETY: read only after the kernel read and wrote it.
    let offset = unsafe { source_offset(call, result) };
    let target = if target.is_tracked() { i64::from(target.description()) } else { -1 };
    Record {
        start: times.0,
        end: times.1,
        offset,
        length: call.length as i64,
        argument: target,
        result: result as i64,
        number: if source.is_tracked() { source.description() } else { 0 },
        fd: call.in_fd as i32,
        function: call.function.0,
        ..Record::default()
    }
}

/// Where the copy began in the source: the kernel has moved the offset by what it copied.
unsafe fn source_offset(call: &Call, result: isize) -> i64 {
    let pointer = if call.function == Function::SENDFILE { call.offset } else { call.in_offset };
    if pointer == 0 || pointer == ABSENT || result < 0 {
        return -1;
    }
    // SAFETY: the kernel just wrote there.
    unsafe { *(pointer as *const i64) - result as i64 }
}
