//! The record of a call, as the hooks fill it in from the call's named arguments, and the count of
//! those that are left out.

use crate::call::{ABSENT, Call};
use crate::mode::{self, Mode};
use crate::recorder::{self, Record};
use iolab_processor::traced_open_flags;
use iolab_trace::spool::{BELOW, LeftOut};
use iolab_trace::{Class, Function};

/// The class-dependent argument of an event, as `docs/format/trace.md` lists them.
#[inline(always)]
fn argument(class: Class, call: &Call) -> i64 {
    let value = match class {
        Class::Seek => call.whence as i32 as usize,
        Class::Allocate => call.mode,
        Class::Advise => call.advice,
        Class::Lock => call.operation,
        Class::Control if call.function == Function::FCNTL_SETFL => {
            traced_open_flags(call.flags as i32) as usize
        }
        Class::Sync | Class::Flush | Class::Control => call.flags,
        // Those of `preadv2` and `pwritev2`; none is what others have.
        Class::Read | Class::Write if call.flags as i32 > 0 => call.flags as i32 as usize,
        _ => ABSENT,
    };
    value as i64
}

/// Bytes a vector of buffers asks for.
///
/// # Safety
/// The vector must be readable, which a call that succeeded with it has shown.
unsafe fn vector_bytes(vector: usize, count: usize) -> i64 {
    let vector = vector as *const libc::iovec;
    // SAFETY: the caller's promise.
    (0..count).map(|index| unsafe { (*vector.add(index)).iov_len as i64 }).sum()
}

/// The record of a call by its named arguments.
///
/// # Safety
/// The arguments in the call are the guest's own.
#[inline(always)]
pub(super) unsafe fn record_of(
    class: Class,
    call: &Call,
    number: u32,
    times: (u64, u64),
    result: isize,
) -> Record {
    let mut length = call.length as i64;
    if call.vector != ABSENT && result >= 0 {
        // SAFETY: the kernel just read it.
        length = unsafe { vector_bytes(call.vector, call.count) };
    }
    Record {
        start: times.0,
        end: times.1,
        offset: call.offset as i64,
        length,
        argument: argument(class, call),
        result: result as i64,
        number,
        fd: call.fd as i32,
        function: moved_by(call).0,
        ..Record::default()
    }
}

/// `preadv2` and `pwritev2` with the offset −1 are `readv` and `writev`.
#[inline(always)]
fn moved_by(call: &Call) -> Function {
    match call.function {
        Function::PREADV2 if call.offset == ABSENT => Function::READV,
        Function::PWRITEV2 if call.offset == ABSENT => Function::WRITEV,
        function => function,
    }
}

/// Performs a call below the strategies, recording it there when that is wanted. The stage's way
/// down. `number` is the description the call is on.
///
/// # Safety
/// The arguments in the call are the guest's own.
#[allow(dead_code, reason = "the stage of strategies is its caller")]
pub(crate) unsafe fn perform_below(call: &Call, number: u32) -> isize {
    // SAFETY: a call the stage made of the guest's own.
    unsafe {
        if !mode::get().has(Mode::RECORD_BELOW) {
            return call.perform();
        }
        let start = recorder::now();
        let result = call.perform();
        let times = (start, recorder::now());
        let mut record = record_of(call.function.class(), call, number, times, result);
        record.function |= BELOW;
        recorder::push(record);
        result
    }
}

/// Counts a call that is left out, if anything is recorded at all.
pub(super) fn leave_out(reason: LeftOut) {
    if mode::get().has(Mode::RECORD) {
        recorder::left_out(reason);
    }
}
