//! The calls programs make most, `read`, `write`, `pread`, `pwrite` and `lseek`: arguments stay in
//! registers, the system call's number is a constant, and nothing is built in memory but the record.
//! What is not the usual case of a followed file goes the way of all calls ([`super::enter`]).

use crate::descriptor::{self, Entry};
use crate::mode::{self, Mode};
use crate::next::Next;
use crate::recorder::{self, Record};
use crate::{stage, system};
use iolab_trace::Function;

const READ: u16 = Function::READ.0;
const WRITE: u16 = Function::WRITE.0;
const PREAD: u16 = Function::PREAD.0;
const PWRITE: u16 = Function::PWRITE.0;
const LSEEK: u16 = Function::LSEEK.0;

/// Whether a wrapper of that function with so many arguments goes this way; fortified ones have more.
pub(crate) const fn is_hot(function: Function, arguments: usize) -> bool {
    match function.0 {
        READ | WRITE | LSEEK => arguments == 3,
        PREAD | PWRITE => arguments == 4,
        _ => false,
    }
}

/// The system call behind a hot function.
const fn number(function: u16) -> i64 {
    match function {
        READ => libc::SYS_read,
        WRITE => libc::SYS_write,
        PREAD => libc::SYS_pread64,
        PWRITE => libc::SYS_pwrite64,
        LSEEK => libc::SYS_lseek,
        _ => -1,
    }
}

/// Makes a call at an ordinary moment; `None` where it is not the usual case.
///
/// # Safety
/// The arguments are the guest's own.
#[inline(always)]
pub(crate) unsafe fn perform<const FUNCTION: u16>(
    next: &Next,
    mode: Mode,
    a: [usize; 4],
) -> Option<isize> {
    let entry = descriptor::get(a[0]);
    if !entry.is_tracked() || next.is_foreign() || mode.counts_only() {
        return None;
    }
    let waits = FUNCTION != LSEEK && !system::is_single_threaded();
    // SAFETY: the caller's promise.
    Some(unsafe {
        match waits || mode.has(Mode::RECORD_POSIX) {
            true => perform_whole::<FUNCTION>(a[0], a[1], a[2], a[3], entry),
            false => answered::<FUNCTION>(mode, a),
        }
    })
}

/// A call in which the thread may be cancelled, or that is recorded.
#[inline(never)]
unsafe fn perform_whole<const FUNCTION: u16>(
    fd: usize,
    b: usize,
    c: usize,
    d: usize,
    entry: Entry,
) -> isize {
    if FUNCTION != LSEEK {
        system::cancellation_point();
    }
    let (mode, a) = (mode::get(), [fd, b, c, d]);
    // SAFETY: the guest's own arguments.
    unsafe {
        if !mode.has(Mode::RECORD_POSIX) {
            return answered::<FUNCTION>(mode, a);
        }
        let start = recorder::now();
        let result = answered::<FUNCTION>(mode, a);
        let end = recorder::now();
        let (offset, length, argument) = match FUNCTION {
            LSEEK => (b as i64, -1, i64::from(c as i32)),
            READ | WRITE => (-1, c as i64, -1),
            _ => (d as i64, c as i64, -1),
        };
        recorder::push(Record {
            start,
            end,
            offset,
            length,
            argument,
            result: result as i64,
            number: entry.description(),
            fd: fd as i32,
            function: FUNCTION,
            ..Record::default()
        });
        result
    }
}

/// The answer of the stage where it has one, else of the kernel.
#[inline(always)]
unsafe fn answered<const FUNCTION: u16>(mode: Mode, a: [usize; 4]) -> isize {
    // SAFETY: the guest's own arguments.
    unsafe {
        if mode.has(Mode::STAGE)
            && let Some(result) = stage::answer(Function(FUNCTION), a)
        {
            return result;
        }
        let result = system::raw(number(FUNCTION), [a[0], a[1], a[2], a[3], 0, 0]);
        match FUNCTION {
            WRITE | PWRITE if result != a[2] as isize && mode.has(Mode::STAGE) => {
                stage::made_room(Function(FUNCTION), a, result)
            }
            _ => result,
        }
    }
}
