//! System calls by their older names, which exist here beside the newer ones.

use crate::hook::{fresh, number::fresh_by_number};
use crate::wrappers::by_number as functions;
use iolab_trace::Function;

/// What libc's functions of the family of `__xstat` are called with, at most: libc's structure and the
/// kernel's, which are one.
pub(crate) const STAT_VERSION_MAX: u32 = 1;

/// The system call behind a function, where processors differ in that.
pub(crate) const fn number(function: Function) -> Option<i64> {
    Some(match function {
        Function::OPEN => libc::SYS_open,
        Function::CREAT => libc::SYS_creat,
        Function::DUP2 => libc::SYS_dup2,
        Function::SYNC_FILE_RANGE => libc::SYS_sync_file_range,
        _ => return None,
    })
}

/// Its arguments, from those of the function.
#[inline(always)]
pub(crate) const fn arguments(_: Function, a: [usize; 6]) -> [usize; 6] {
    a
}

/// What the function answers, from what the system call did.
#[inline(always)]
pub(crate) const fn answer(_: Function, _: [usize; 6], result: isize) -> isize {
    result
}

/// `stat` and `lstat` as libc does that has no function of these names.
pub(crate) const fn versioned_status(is_link: bool, path: usize, to: usize) -> (i64, [usize; 6]) {
    (if is_link { libc::SYS_lstat } else { libc::SYS_stat }, [path, to, 0, 0, 0, 0])
}

/// The function that serves a system call which others do not have, with the same arguments.
pub(crate) fn wrapper(number: i64) -> Option<usize> {
    macro_rules! served {
        ($($number:ident by $path:path;)*) => {
            match number {
                $(libc::$number => $path as *const () as usize,)*
                _ => return None,
            }
        };
    }
    Some(served! {
        SYS_open by functions::open;
        SYS_stat by functions::stat;
        SYS_lstat by functions::lstat;
        SYS_access by functions::access;
        SYS_pipe by fresh::pipe;
        SYS_dup2 by functions::dup2;
        SYS_sync_file_range by functions::sync_file_range;
        SYS_rename by functions::rename;
        SYS_renameat by functions::renameat;
        SYS_mkdir by functions::mkdir;
        SYS_rmdir by functions::rmdir;
        SYS_creat by functions::creat;
        SYS_link by functions::link;
        SYS_unlink by functions::unlink;
        SYS_symlink by functions::symlink;
        SYS_readlink by functions::readlink;
        SYS_chmod by functions::chmod;
        SYS_chown by functions::chown;
        SYS_lchown by functions::lchown;
        SYS_utime by functions::utime;
        SYS_utimes by functions::utimes;
        SYS_futimesat by functions::futimesat;
        SYS_eventfd by fresh_by_number::<{ libc::SYS_eventfd }>;
        SYS_epoll_create by fresh::epoll_create;
        SYS_inotify_init by fresh::inotify_init;
    })
}

/// What `clone` is told by a system call that makes a process and is not `clone` itself.
pub(crate) const fn clone_flags(number: i64) -> Option<u64> {
    match number {
        libc::SYS_fork => Some(0),
        libc::SYS_vfork => Some((libc::CLONE_VM | libc::CLONE_VFORK) as u64),
        _ => None,
    }
}
