//! Descriptors that come to share a description, and descriptors that go.

use super::answer::{stage_or_perform, with_a_number};
use super::record::{leave_out, record_of};
use crate::call::Call;
use crate::descriptor::{self, Entry};
use crate::mode::{self, Mode};
use crate::recorder::{self, Record};
use crate::{process, sight, stage};
use iolab_trace::Function;

/// `dup`, `dup2`, `dup3`, `fcntl(F_DUPFD)`.
///
/// # Safety
/// The arguments in the call are the guest's own.
pub(super) unsafe fn hook(call: Call) -> isize {
    // SAFETY: the guest's own call.
    unsafe {
        let mode = mode::get();
        if !process::owns_state() {
            stage::lent(descriptor_of(call.fd));
            return call.perform();
        }
        let entry = sight::look(call.fd);
        let start = recorder::now();
        let result = with_a_number(mode, || {
            if entry.is_tracked() || replaces_followed(&call) {
                stage_or_perform(call, mode)
            } else if mode.has(Mode::STAGE) {
                stage::dup_unfollowed(&call)
            } else {
                call.perform()
            }
        });
        let times = (start, recorder::now());
        if result >= 0 {
            descriptor::set(result as i32, entry);
        }
        if entry.is_tracked() {
            record(&call, entry, times, result);
        }
        result
    }
}

/// Whether a `dup2` closes a followed file on its way.
fn replaces_followed(call: &Call) -> bool {
    matches!(call.function, Function::DUP2 | Function::DUP3)
        && descriptor::get(call.new_fd).is_tracked()
}

fn record(call: &Call, entry: Entry, times: (u64, u64), result: isize) {
    if !mode::get().has(Mode::RECORD_POSIX) {
        return;
    }
    recorder::push(Record {
        start: times.0,
        end: times.1,
        offset: -1,
        length: -1,
        argument: i64::from(descriptor_of(call.new_fd)),
        result: result as i64,
        number: entry.description(),
        fd: descriptor_of(call.fd),
        function: call.function.0,
        ..Record::default()
    });
}

/// `close`. The entry goes before the system call: after it, another thread may already have been
/// given the same number.
///
/// # Safety
/// As [`hook`].
pub(super) unsafe fn close(call: Call) -> isize {
    // SAFETY: the guest's own call.
    unsafe {
        let mode = mode::get();
        if stage::is_own(call.fd) {
            return -(libc::EBADF as isize);
        }
        let entry = descriptor::get(call.fd);
        if entry.is_tracked() && !mode.has(Mode::RECORD_POSIX) && !stage::is_known(call.fd) {
            // Who calls need not be asked: the entry alone goes, and a look finds it out anew.
            descriptor::take(call.fd);
            return call.perform();
        }
        if !process::owns_state() {
            return call.perform_cancellable();
        }
        if !entry.is_tracked() {
            descriptor::take(call.fd);
            if let Some(reason) = entry.reason() {
                leave_out(reason);
            }
            stage::close_unfollowed(descriptor_of(call.fd));
            return call.perform_cancellable();
        }
        close_followed(call, entry, mode)
    }
}

unsafe fn close_followed(call: Call, entry: Entry, mode: Mode) -> isize {
    // SAFETY: the guest's own call.
    unsafe {
        let start = recorder::now();
        let result = if mode.has(Mode::STAGE) {
            stage::perform(&call)
        } else {
            descriptor::take(call.fd);
            call.perform()
        };
        let times = (start, recorder::now());
        if mode.has(Mode::RECORD_POSIX) {
            let class = call.function.class();
            recorder::push(record_of(class, &call, entry.description(), times, result));
        }
        result
    }
}

/// `close_range`: one event per followed file that it closes.
///
/// # Safety
/// As [`hook`].
pub(super) unsafe fn close_range(call: Call) -> isize {
    // SAFETY: the guest's own call.
    unsafe {
        let mode = mode::get();
        let only_marks = call.flags as u32 & libc::CLOSE_RANGE_CLOEXEC != 0;
        if only_marks || !process::owns_state() {
            return if mode.has(Mode::STAGE) { stage::close_range(&call) } else { call.perform() };
        }
        let start = recorder::now();
        let result = if mode.has(Mode::STAGE) { stage::perform(&call) } else { call.perform() };
        let times = (start, recorder::now());
        if result == 0 {
            forget(&call, times);
        }
        result
    }
}

fn forget(call: &Call, times: (u64, u64)) {
    let last = (call.last as u32 as usize).min(65_535);
    for fd in call.first as u32 as usize..=last {
        let entry = descriptor::get(fd);
        if entry.is_tracked() && mode::get().has(Mode::RECORD_POSIX) {
            let mut one = *call;
            (one.fd, one.flags) = (fd, crate::call::ABSENT);
            // SAFETY: a close has no memory arguments.
            let record =
                unsafe { record_of(call.function.class(), &one, entry.description(), times, 0) };
            recorder::push(record);
        }
    }
    descriptor::forget_range(call.first as u32 as usize, last);
}

/// A descriptor argument, absent or not, as the system counts them.
#[inline(always)]
fn descriptor_of(argument: usize) -> i32 {
    argument as i32
}
