//! `FILE` streams: events of a layer above. The system calls libc makes inside come by the patched
//! entry points and become children of these events. After the first calls on a file, those that
//! reach nothing below are counted and no more ([`runs`]).
//!
//! Libc closes the descriptor of a stream without passing an entry point; the table learns of it
//! here.

use super::record::leave_out;
use crate::call::{ABSENT, Call, Returns};
use crate::descriptor::{self, Entry};
use crate::mode::{self, Mode};
use crate::recorder::runs::{self, Before, Counted};
use crate::recorder::{self, Record};
use crate::{errno, process, sight, stage};
use iolab_trace::spool::LeftOut;
use iolab_trace::{Class, Function};

/// # Safety
/// The arguments in the call are the guest's own.
#[inline(always)]
pub(super) unsafe fn hook(class: Class, call: Call) -> usize {
    // SAFETY: the guest's own call.
    unsafe {
        let mode = mode::get();
        match class {
            Class::Open => open(call),
            Class::Close => close(call),
            _ if !mode.has(Mode::RECORD_STDIO) => call.next.call(call.raw),
            _ => operate(call, mode),
        }
    }
}

/// The descriptor of a stream, -1 for none.
#[inline(always)]
unsafe fn descriptor_of(stream: usize) -> i32 {
    if stream == 0 || stream == ABSENT {
        return -1;
    }
    let errno = errno::get();
    // SAFETY: the guest's stream, open before and after; asking does not lock it.
    let fd = unsafe { libc::fileno(stream as *mut libc::FILE) };
    if fd < 0 {
        errno::set(errno);
    }
    fd
}

unsafe fn open(call: Call) -> usize {
    // SAFETY: the guest's own call.
    unsafe {
        let before =
            if call.function == Function::FREOPEN { descriptor_of(call.stream) } else { -1 };
        if before >= 0 && process::owns_state() {
            stage::before_stream_close(before);
            descriptor::take(before as usize);
        }
        let start = recorder::now();
        let stream = call.next.call(call.raw);
        let times = (start, recorder::now());
        let fd = descriptor_of(stream);
        if fd >= 0 {
            if reads_by_mapping(call.mode_text) {
                stage::lent(fd);
            }
            let result = i64::from(fd);
            errno::keeping(|| record(&call, fd, sight::look(fd as usize), times, -1, result));
        }
        stream
    }
}

/// Whether a stream may map its file, as mode `m` allows.
unsafe fn reads_by_mapping(mode: usize) -> bool {
    // SAFETY: libc has just read this text.
    let mode = unsafe { std::ffi::CStr::from_ptr(mode as *const libc::c_char) }.to_bytes();
    mode.split(|&byte| byte == b',').next().is_some_and(|mode| mode.contains(&b'm'))
}

unsafe fn close(call: Call) -> usize {
    // SAFETY: the guest's own call.
    unsafe {
        let fd = descriptor_of(call.stream);
        if fd < 0 || !process::owns_state() {
            return call.next.call(call.raw);
        }
        let entry = sight::look(fd as usize);
        let start = recorder::now();
        let value = stage::close_stream(&call, fd);
        let times = (start, recorder::now());
        // The number may be another thread's by now; only what was ours is forgotten.
        if descriptor::get(fd as usize) == entry {
            descriptor::take(fd as usize);
        }
        errno::keeping(|| record(&call, fd, entry, times, -1, value as i32 as i64));
        value
    }
}

/// Reads, writes, seeks and flushes.
#[inline(always)]
unsafe fn operate(call: Call, mode: Mode) -> usize {
    // SAFETY: the guest's own call.
    unsafe {
        let fd = descriptor_of(call.stream);
        let mut entry =
            if fd >= 0 { descriptor::get(fd as usize) } else { Entry::left_out(LeftOut::NoFile) };
        if entry == Entry::UNKNOWN {
            entry = errno::keeping(|| sight::look(fd as usize));
        }
        if !entry.is_tracked() {
            leave_out(entry.reason().unwrap_or(LeftOut::BadDescriptor));
            return call.next.call(call.raw);
        }
        if !runs::is_due(fd, entry.description()) {
            let start = recorder::now();
            let value = call.next.call(call.raw);
            let times = (start, recorder::now());
            let (asked, result) = amounts(&call, value);
            record_operation(outline(&call), fd, entry, times, (asked, result));
            return value;
        }
        // Where system calls are not recorded, nothing else tells how long they took.
        let before = Before::now(!mode.has(Mode::RECORD_POSIX));
        let value = call.next.call(call.raw);
        let (asked, result) = amounts(&call, value);
        if before.has_reached() || result < 0 || asked >= LARGE {
            reached(outline(&call), fd, entry, before, (asked, result));
        } else {
            runs::count(Counted {
                description: entry.description(),
                fd,
                function: call.function,
                is_seek: call.function.class() == Class::Seek,
                asked,
                result,
            });
        }
        value
    }
}

/// Calls of this size and more are not added up: the sum could become too large.
const LARGE: i64 = 1 << 40;

/// What a record shows of a call besides what it moved.
#[derive(Clone, Copy)]
struct Outline {
    function: Function,
    offset: i64,
    whence: i64,
}

#[inline(always)]
fn outline(call: &Call) -> Outline {
    let seek = call.function.class() == Class::Seek;
    Outline {
        function: call.function,
        offset: if seek { call.offset as i64 } else { -1 },
        whence: if seek { i64::from(call.whence as i32) } else { -1 },
    }
}

/// A call among those that are counted which did more than touch the buffer.
#[cold]
#[inline(never)]
fn reached(call: Outline, fd: i32, entry: Entry, before: Before, amounts: (i64, i64)) {
    runs::end_of(entry.description());
    record_operation(call, fd, entry, before.times(), amounts);
}

/// Bytes asked for and bytes moved (or the status), by what the function takes and returns.
#[inline(always)]
unsafe fn amounts(call: &Call, value: usize) -> (i64, i64) {
    if call.size != ABSENT {
        let size = call.size as i64;
        return (size.saturating_mul(call.count as i64), size.saturating_mul(value as i64));
    }
    if call.text != ABSENT {
        // SAFETY: libc has just written this text to the stream.
        let length = unsafe { libc::strlen(call.text as *const libc::c_char) } as i64;
        return (length, if (value as i32) < 0 { -1 } else { length });
    }
    match (call.function.class(), call.returns) {
        _ if call.function == Function::REWIND => (-1, 0),
        (_, Returns::Pointer) if value == 0 => (call.length as i32 as i64, 0),
        // SAFETY: libc has just ended this text in the guest's buffer.
        (_, Returns::Pointer) => (call.length as i32 as i64, unsafe {
            libc::strlen(value as *const libc::c_char) as i64
        }),
        (Class::Read | Class::Write, Returns::Int) => (1, i64::from(value as i32 != -1)),
        (Class::Read, _) => (-1, (value as i64).max(0)),
        (Class::Write, _) => (value as i32 as i64, value as i32 as i64),
        _ => (-1, value as i32 as i64),
    }
}

fn record(call: &Call, fd: i32, entry: Entry, times: (u64, u64), length: i64, result: i64) {
    record_operation(outline(call), fd, entry, times, (length, result));
}

#[inline(never)]
fn record_operation(
    call: Outline,
    fd: i32,
    entry: Entry,
    times: (u64, u64),
    (length, result): (i64, i64),
) {
    if !mode::get().has(Mode::RECORD_STDIO) {
        return;
    }
    if !entry.is_tracked() {
        return leave_out(entry.reason().unwrap_or(LeftOut::BadDescriptor));
    }
    recorder::push(Record {
        start: times.0,
        end: times.1,
        offset: call.offset,
        length,
        argument: call.whence,
        result,
        number: entry.description(),
        fd,
        function: call.function.0,
        ..Record::default()
    });
}
