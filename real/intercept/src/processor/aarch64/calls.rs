//! System calls: those by older names (`open`, `stat`, `dup2`, `rename`, …) do not exist here, so libc's
//! functions of these names come to the newer ones.

use crate::wrappers::by_number as functions;
use iolab_processor::SYS_RENAMEAT;
use iolab_trace::Function;

/// What libc's functions of the family of `__xstat` are called with, at most.
pub(crate) const STAT_VERSION_MAX: u32 = 0;

/// `sync_file_range`.
const SYNC_FILE_RANGE: i64 = 84;

/// The system call behind a function, where processors differ in that.
pub(crate) const fn number(function: Function) -> Option<i64> {
    Some(match function {
        Function::OPEN | Function::CREAT => libc::SYS_openat,
        Function::DUP2 => libc::SYS_dup3,
        Function::SYNC_FILE_RANGE => SYNC_FILE_RANGE,
        _ => return None,
    })
}

/// Its arguments, from those of the function.
#[inline(always)]
pub(crate) const fn arguments(function: Function, a: [usize; 6]) -> [usize; 6] {
    const HERE: usize = libc::AT_FDCWD as usize;
    match function {
        Function::OPEN => [HERE, a[0], a[1], a[2], 0, 0],
        Function::CREAT => {
            let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
            [HERE, a[0], flags as usize, a[1], 0, 0]
        }
        // Without flags.
        Function::DUP2 => [a[0], a[1], 0, 0, 0, 0],
        _ => a,
    }
}

/// What the function answers, from what the system call did: `dup3` refuses what `dup2` allows, to make a
/// descriptor into itself, which only asks whether it is open.
#[inline(always)]
pub(crate) fn answer(function: Function, a: [usize; 6], result: isize) -> isize {
    let is_same = function == Function::DUP2 && a[0] as i32 == a[1] as i32;
    if is_same && result == -(libc::EINVAL as isize) { same_descriptor(a[0]) } else { result }
}

#[cold]
fn same_descriptor(fd: usize) -> isize {
    let a = [fd, libc::F_GETFD as usize, 0, 0, 0, 0];
    // SAFETY: asks about a descriptor.
    match unsafe { iolab_processor::system_call(libc::SYS_fcntl, a) } {
        0.. => fd as i32 as isize,
        refused => refused,
    }
}

/// `stat` and `lstat` as libc does that has no function of these names.
pub(crate) const fn versioned_status(is_link: bool, path: usize, to: usize) -> (i64, [usize; 6]) {
    let flags = if is_link { libc::AT_SYMLINK_NOFOLLOW as usize } else { 0 };
    (libc::SYS_newfstatat, [libc::AT_FDCWD as usize, path, to, flags, 0, 0])
}

/// The function that serves a system call which libc's constants do not name, with the same arguments.
pub(crate) fn wrapper(number: i64) -> Option<usize> {
    Some(match number {
        SYS_RENAMEAT => functions::renameat as *const () as usize,
        SYNC_FILE_RANGE => functions::sync_file_range as *const () as usize,
        _ => return None,
    })
}

/// What `clone` is told by a system call that makes a process and is not `clone` itself: there is none.
pub(crate) const fn clone_flags(_: i64) -> Option<u64> {
    None
}
