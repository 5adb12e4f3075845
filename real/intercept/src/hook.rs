//! Hooks: what happens to a call before it reaches the kernel. One file per kind of call.
//!
//! The way is always the same: find out which file the call is about, take the time, let the stage
//! of strategies answer if there is one (it sees every call on a followed file, every call by
//! path, and every call that makes or ends a process), else perform the call; then record it.

mod bypass;
mod control;
mod copy;
mod data;
mod dup;
pub(crate) mod fork;
pub(crate) mod fresh;
mod limits;
pub(crate) mod map;
mod message;
mod naming;
mod number;
mod open;
mod place;
pub(crate) mod process;
mod program;
pub(crate) mod quiet;
pub(crate) mod sandbox;
mod stdio;
mod unusual;
mod variadic;

use crate::call::{ABSENT, Call};
use crate::mode::{self, Mode};
use crate::recorder::{self, Record};
use crate::stage;
use iolab_trace::{Class, Function, Layer};

/// Chooses the hook of a call, at any moment.
///
/// # Safety
/// The arguments in the call are the guest's own.
#[inline(never)]
pub(crate) unsafe fn enter(class: Class, layer: Layer, call: Call) -> usize {
    // SAFETY: the caller's promise, for every arm.
    unsafe {
        if !mode::get().has(Mode::USUAL) {
            return unusual::enter(class, layer, call);
        }
        enter_usual(class, layer, call)
    }
}

/// As [`choose`], with the choice made at run time.
///
/// # Safety
/// As [`enter`].
#[cold]
#[inline(never)]
unsafe fn enter_usual(class: Class, layer: Layer, call: Call) -> usize {
    // SAFETY: the caller's promise.
    unsafe { choose(class, layer, call) }
}

/// Chooses the hook of a call at an ordinary moment. Class and layer are constants of the wrapper, so
/// that nothing of the choice is left at run time.
///
/// # Safety
/// As [`enter`].
#[inline(always)]
pub(crate) unsafe fn choose(class: Class, layer: Layer, call: Call) -> usize {
    // SAFETY: the caller's promise, for every arm.
    unsafe {
        if layer == Layer::Stdio {
            return stdio::hook(class, call);
        }
        if call.capacity != ABSENT && call.length > call.capacity {
            // A fortified call about to overflow: libc's function ends the program with its message.
            return call.next.call(call.raw);
        }
        let result = match class {
            Class::Open => open::hook(call),
            Class::Close if call.fd == ABSENT => dup::close_range(call),
            Class::Close => dup::close(call),
            Class::Dup => dup::hook(call),
            Class::Copy => copy::hook(call),
            Class::Map => map::map(call),
            Class::Unmap => map::unmap(call),
            Class::Sync if call.address != ABSENT => map::unmap(call),
            Class::Sync if call.fd == ABSENT => process::everything(call),
            Class::Process => process::hook(call),
            Class::Read | Class::Write if call.block != ABSENT => data::aio(call),
            _ if call.path != ABSENT => naming::hook(call),
            _ => data::hook(call),
        };
        call.answer(result)
    }
}

/// Performs a call on a followed file: by the stage when there is one, else below it.
///
/// # Safety
/// As [`enter`].
#[inline(always)]
pub(crate) unsafe fn stage_or_perform(call: Call, mode: Mode) -> isize {
    if mode.has(Mode::STAGE) {
        // SAFETY: the guest's own call. The copy keeps `call` itself in registers.
        return unsafe { stage::perform(&{ call }) };
    }
    // SAFETY: the guest's own call.
    unsafe { call.perform() }
}

/// As [`stage_or_perform`], for calls in which the thread may wait.
///
/// # Safety
/// As [`enter`].
pub(crate) unsafe fn stage_or_perform_cancellable(call: &Call, mode: Mode) -> isize {
    // SAFETY: the guest's own call.
    unsafe { if mode.has(Mode::STAGE) { stage::perform(call) } else { call.perform_cancellable() } }
}

/// The class-dependent argument of an event, as `docs/format/trace.md` lists them.
#[inline(always)]
fn argument(class: Class, call: &Call) -> i64 {
    let value = match class {
        Class::Seek => call.whence as i32 as usize,
        Class::Allocate => call.mode,
        Class::Advise => call.advice,
        Class::Lock => call.operation,
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
/// As [`enter`].
#[inline(always)]
unsafe fn record_of(
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
/// As [`enter`].
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
        record.function |= iolab_trace::spool::BELOW;
        recorder::push(record);
        result
    }
}

/// A descriptor argument, absent or not, as the system counts them.
#[inline(always)]
fn descriptor_of(argument: usize) -> i32 {
    argument as i32
}

/// Counts a call that is left out, if anything is recorded at all.
fn leave_out(reason: iolab_trace::spool::LeftOut) {
    if mode::get().has(Mode::RECORD) {
        recorder::left_out(reason);
    }
}
