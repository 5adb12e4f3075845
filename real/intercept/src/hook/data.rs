//! Calls on one descriptor: transfers, seeks, syncs, sizes, locks, status. The hot path.

use super::answer::stage_or_perform;
use super::record::{leave_out, record_of};
use crate::call::{ABSENT, Call};
use crate::descriptor::{self, Entry};
use crate::mode::{self, Mode};
use crate::{recorder, sight, stage, system};
use iolab_trace::spool::LeftOut;
use iolab_trace::{Class, Function};

/// # Safety
/// The arguments in the call are the guest's own.
#[inline(always)]
pub(super) unsafe fn hook(call: Call) -> isize {
    let entry = descriptor::get(call.fd);
    // SAFETY: the caller's promise.
    unsafe { if entry.is_tracked() { followed(call, entry) } else { other(call) } }
}

#[inline(always)]
unsafe fn followed(call: Call, entry: Entry) -> isize {
    if waits(call.function.class()) {
        system::cancellation_point();
    }
    let mode = mode::get();
    // SAFETY: the guest's own call.
    unsafe {
        if !mode.has(Mode::RECORD_POSIX) {
            if mode.has(Mode::RECORD_STDIO) {
                recorder::runs::note_reached();
            }
            return stage_or_perform(call, mode);
        }
        let start = recorder::now();
        let result = stage_or_perform(call, mode);
        let times = (start, recorder::now());
        let class = call.function.class();
        recorder::push(record_of(class, &call, entry.description(), times, result));
        result
    }
}

/// Whether libc's function is a cancellation point.
const fn waits(class: Class) -> bool {
    matches!(class, Class::Read | Class::Write | Class::Sync | Class::Allocate)
}

/// A descriptor seen for the first time, or one that is not followed.
#[cold]
#[inline(never)]
unsafe fn other(call: Call) -> isize {
    // SAFETY: the guest's own call.
    unsafe {
        match sight::look(call.fd) {
            entry if entry.is_tracked() => followed(call, entry),
            entry => {
                leave_out(entry.reason().unwrap_or(LeftOut::BadDescriptor));
                stage::before_unfollowed_lock(&call);
                call.perform_cancellable()
            }
        }
    }
}

/// POSIX asynchronous I/O: the transfer is seen when libc's helper thread makes it, so that here
/// only the request is recorded.
///
/// # Safety
/// As [`hook`].
pub(super) unsafe fn aio(call: Call) -> isize {
    // SAFETY: the guest's own call; a control block is read only after libc accepted it.
    unsafe {
        let start = recorder::now();
        let result = call.perform_next();
        let times = (start, recorder::now());
        if !mode::get().has(Mode::RECORD_POSIX) || result < 0 {
            return result;
        }
        let block = &*(call.block as *const libc::aiocb);
        let entry = sight::look(block.aio_fildes as usize);
        if !entry.is_tracked() {
            return result;
        }
        let mut request = call;
        request.fd = block.aio_fildes as usize;
        request.offset = block.aio_offset as usize;
        request.length = block.aio_nbytes;
        recorder::push(record_of(Class::Read, &request, entry.description(), times, 0));
        result
    }
}

/// `fcntl` commands that concern a followed file. `None`: nothing of ours.
pub(super) fn control(command: i32) -> Option<Function> {
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => Some(Function::FCNTL_DUPFD),
        libc::F_SETLK | libc::F_SETLKW | libc::F_OFD_SETLK | libc::F_OFD_SETLKW => {
            Some(Function::FCNTL_LOCK)
        }
        // Asking counts from the file position as well.
        libc::F_GETLK | libc::F_OFD_GETLK => Some(Function::FCNTL_LOCK),
        libc::F_SETFL => Some(Function::FCNTL_SETFL),
        libc::F_SETLEASE => Some(Function::FCNTL_LEASE),
        _ => None,
    }
}

const _: () = assert!(ABSENT as i64 == -1);
