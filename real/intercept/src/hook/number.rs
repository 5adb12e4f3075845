//! System calls made by number, through libc's `syscall`: those that have a function in the table go
//! its way, by a jump to its wrapper with the arguments moved by one; the others pass. They go on to
//! the kernel: a library that has put its own function before libc's (an allocator its `mmap`) does
//! its work by them, and has been called for the same call already.
//!
//! Calls that only exist by number, and those that mean something to the library, are looked at
//! here. It may be a `vfork` or a `clone` on the same stack, hence the jump.

use super::{bypass, control, fork, fresh, place};
use crate::call::{Call, Returns, kernel_takes_flags};
use crate::moment::{Moment, moment};
use crate::processor::calls;
use crate::wrappers::by_number as functions;
use crate::{next, stage, system, thread};
use iolab_trace::Function;
use iolab_trace::spool::Unseen;

/// The function that serves a system call with the same arguments; `None` when there is none.
fn wrapper(number: i64) -> Option<usize> {
    macro_rules! served {
        ($($number:ident by $path:path;)*) => {
            match number {
                $(libc::$number => $path as *const () as usize,)*
                _ => return calls::wrapper(number),
            }
        };
    }
    Some(served! {
        SYS_read by functions::read;
        SYS_write by functions::write;
        SYS_close by functions::close;
        SYS_fstat by functions::fstat;
        SYS_lseek by functions::lseek;
        SYS_mmap by functions::mmap;
        SYS_munmap by functions::munmap;
        SYS_ioctl by control::ioctl;
        SYS_pread64 by functions::pread;
        SYS_pwrite64 by functions::pwrite;
        SYS_readv by functions::readv;
        SYS_writev by functions::writev;
        SYS_preadv by functions::preadv;
        SYS_pwritev by functions::pwritev;
        SYS_preadv2 by preadv2;
        SYS_pwritev2 by pwritev2;
        SYS_pipe2 by fresh::pipe2;
        SYS_msync by functions::msync;
        SYS_dup by functions::dup;
        SYS_dup3 by functions::dup3;
        SYS_sendfile by functions::sendfile;
        SYS_splice by functions::splice;
        SYS_copy_file_range by functions::copy_file_range;
        SYS_socket by fresh::socket;
        SYS_socketpair by fresh::socketpair;
        SYS_accept by fresh::accept;
        SYS_accept4 by fresh::accept4;
        SYS_sendmsg by super::message::sendmsg;
        SYS_sendmmsg by super::message::sendmmsg;
        SYS_recvmsg by super::message::recvmsg;
        SYS_recvmmsg by super::message::recvmmsg;
        SYS_execve by super::process::execve;
        SYS_execveat by super::process::execveat;
        SYS_exit_group by super::process::_exit;
        SYS_fcntl by super::variadic::fcntl;
        SYS_flock by functions::flock;
        SYS_fsync by functions::fsync;
        SYS_fdatasync by functions::fdatasync;
        SYS_syncfs by functions::syncfs;
        SYS_sync by functions::sync;
        SYS_truncate by functions::truncate;
        SYS_ftruncate by functions::ftruncate;
        SYS_fallocate by functions::fallocate;
        SYS_chdir by functions::chdir;
        SYS_fchdir by functions::fchdir;
        SYS_renameat2 by functions::renameat2;
        SYS_mkdirat by functions::mkdirat;
        SYS_linkat by functions::linkat;
        SYS_symlinkat by functions::symlinkat;
        SYS_unlinkat by functions::unlinkat;
        SYS_readlinkat by functions::readlinkat;
        SYS_fchmod by functions::fchmod;
        SYS_fchown by functions::fchown;
        SYS_fchownat by functions::fchownat;
        SYS_utimensat by functions::utimensat;
        SYS_setxattr by functions::setxattr;
        SYS_lsetxattr by functions::lsetxattr;
        SYS_fsetxattr by functions::fsetxattr;
        SYS_getxattr by functions::getxattr;
        SYS_lgetxattr by functions::lgetxattr;
        SYS_fgetxattr by functions::fgetxattr;
        SYS_flistxattr by super::attributes::flistxattr;
        SYS_removexattr by functions::removexattr;
        SYS_lremovexattr by functions::lremovexattr;
        SYS_fremovexattr by functions::fremovexattr;
        SYS_openat by functions::openat;
        SYS_openat2 by openat2;
        SYS_newfstatat by functions::fstatat;
        SYS_fchmodat by fchmodat;
        SYS_statx by functions::statx;
        SYS_close_range by functions::close_range;
        SYS_memfd_create by fresh::memfd_create;
        SYS_eventfd2 by fresh_by_number::<{ libc::SYS_eventfd2 }>;
        SYS_epoll_create1 by fresh::epoll_create1;
        SYS_timerfd_create by fresh::timerfd_create;
        SYS_signalfd4 by fresh_by_number::<{ libc::SYS_signalfd4 }>;
        SYS_inotify_init1 by fresh::inotify_init1;
        SYS_inotify_add_watch by functions::inotify_add_watch;
        SYS_fanotify_init by fresh::fanotify_init;
        SYS_fanotify_mark by functions::fanotify_mark;
        SYS_pidfd_open by fresh_by_number::<{ libc::SYS_pidfd_open }>;
        SYS_pidfd_getfd by fresh_by_number::<{ libc::SYS_pidfd_getfd }>;
        SYS_perf_event_open by fresh_by_number::<{ libc::SYS_perf_event_open }>;
        SYS_userfaultfd by fresh_by_number::<{ libc::SYS_userfaultfd }>;
        SYS_bpf by fresh_by_number::<{ libc::SYS_bpf }>;
        SYS_landlock_create_ruleset by fresh_by_number::<{ libc::SYS_landlock_create_ruleset }>;
        SYS_memfd_secret by fresh_by_number::<{ libc::SYS_memfd_secret }>;
        SYS_mq_open by fresh_by_number::<{ libc::SYS_mq_open }>;
        SYS_open_tree by fresh_by_number::<{ libc::SYS_open_tree }>;
        SYS_fsopen by fresh_by_number::<{ libc::SYS_fsopen }>;
        SYS_fsmount by fresh_by_number::<{ libc::SYS_fsmount }>;
        SYS_fspick by fresh_by_number::<{ libc::SYS_fspick }>;
        SYS_open_by_handle_at by fresh::open_by_handle_at;
        SYS_rt_sigaction by stage::raw_sigaction;
        SYS_chroot by place::chroot;
        SYS_unshare by place::unshare;
        SYS_setns by place::setns;
        SYS_mount by place::mount;
        SYS_umount2 by place::umount2;
        SYS_move_mount by place::move_mount;
        SYS_mount_setattr by place::mount_setattr;
        SYS_pivot_root by pivot_root;
    })
}

/// Told before a call through `syscall`; answers with the function to go on to, with 1 added when
/// that takes the arguments without the number.
pub(crate) unsafe extern "C" fn before_syscall(
    number: i64,
    first: usize,
    b: usize,
    c: usize,
) -> usize {
    if moment() != Moment::Idle && !thread::is_below(number, first) {
        super::sandbox::before_system_call(number, first, b, c);
        if let Some(wrapper) = wrapper(number) {
            return wrapper | 1;
        }
        // SAFETY: the guest's own arguments.
        unsafe { notice(number, first) };
    }
    next::syscall.address()
}

unsafe fn notice(number: i64, first: usize) {
    match number {
        libc::SYS_clone => fork::before_clone(first as u64),
        libc::SYS_clone3 if system::is_readable(first) => {
            // SAFETY: flags are the first word of the structure, which can be read.
            fork::before_clone(unsafe { (first as *const u64).read_unaligned() });
        }
        libc::SYS_io_uring_setup => bypass::around(Unseen::IoUring),
        libc::SYS_io_setup => bypass::around(Unseen::Aio),
        _ => {
            if let Some(flags) = calls::clone_flags(number) {
                fork::before_clone(flags);
            }
        }
    }
}

/// The system call takes the offset in two halves, of which the first holds all of it.
unsafe extern "C-unwind" fn preadv2(
    fd: usize,
    vector: usize,
    count: usize,
    offset: usize,
    high: usize,
    flags: usize,
) -> usize {
    if !kernel_takes_flags() {
        return by_number(libc::SYS_preadv2, [fd, vector, count, offset, high, flags]);
    }
    // SAFETY: the guest's own arguments.
    unsafe { functions::preadv2(fd, vector, count, offset, flags) }
}

/// As `preadv2`.
unsafe extern "C-unwind" fn pwritev2(
    fd: usize,
    vector: usize,
    count: usize,
    offset: usize,
    high: usize,
    flags: usize,
) -> usize {
    if !kernel_takes_flags() {
        return by_number(libc::SYS_pwritev2, [fd, vector, count, offset, high, flags]);
    }
    // SAFETY: the guest's own arguments.
    unsafe { functions::pwritev2(fd, vector, count, offset, flags) }
}

/// The system call has no flags.
unsafe extern "C-unwind" fn fchmodat(directory: usize, path: usize, mode: usize) -> usize {
    // SAFETY: the guest's own arguments.
    unsafe { functions::fchmodat(directory, path, mode, 0) }
}

/// The call itself, by number.
fn by_number(number: i64, a: [usize; 6]) -> usize {
    let mut call = Call::new(Function::FRESH_DESCRIPTOR, Returns::Int, &next::syscall, a);
    call.raw = a;
    // SAFETY: the guest's own arguments.
    call.answer(unsafe { system::raw(number, a) })
}

/// A call whose result is a new descriptor.
pub(crate) unsafe extern "C-unwind" fn fresh_by_number<const NUMBER: i64>(
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> usize {
    let result = by_number(NUMBER, [a, b, c, d, e, f]);
    fresh::seen(result as i32);
    result
}

/// Libc has no function for it. What is opened so passes, and is kept true.
unsafe extern "C-unwind" fn openat2(
    directory: usize,
    path: usize,
    how: usize,
    size: usize,
) -> usize {
    if moment() == Moment::Usual {
        stage::before_unseen_open(directory as i32, path);
    }
    let result = by_number(libc::SYS_openat2, [directory, path, how, size, 0, 0]) as i32;
    // SAFETY: flags are the first word of the structure, which the kernel has read.
    let flags = if result < 0 { 0 } else { unsafe { (how as *const u64).read_unaligned() } };
    fresh::opened(result, flags as i32) as isize as usize
}

/// `pivot_root`, of which libc has no function.
///
/// # Safety
/// As the system call.
unsafe extern "C-unwind" fn pivot_root(new_root: usize, put_old: usize) -> usize {
    place::around(|| by_number(libc::SYS_pivot_root, [new_root, put_old, 0, 0, 0, 0]))
}
