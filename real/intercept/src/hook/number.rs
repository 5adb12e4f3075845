//! System calls made by number, through libc's `syscall`: those that have a function in the table go
//! its way, by a jump to its wrapper with the arguments moved by one; the others pass.
//!
//! Calls that only exist by number, and those that mean something to the library, are looked at
//! here. It may be a `vfork` or a `clone` on the same stack, hence the jump.

use super::unusual::{Moment, moment};
use super::{control, fork, fresh};
use crate::call::{Call, Returns};
use crate::{next, recorder, stage, system, wrappers};
use iolab_trace::Function;
use iolab_trace::spool::Unseen;
use std::arch::naked_asm;

/// The wrapper that serves a system call with the same arguments; `None` when there is none.
fn wrapper(number: i64) -> Option<usize> {
    macro_rules! served {
        ($($number:ident by $path:path;)*) => {
            match number {
                $(libc::$number => $path as *const () as usize,)*
                _ => return None,
            }
        };
    }
    Some(served! {
        SYS_read by wrappers::read;
        SYS_write by wrappers::write;
        SYS_open by wrappers::open;
        SYS_close by wrappers::close;
        SYS_stat by wrappers::stat;
        SYS_fstat by wrappers::fstat;
        SYS_lstat by wrappers::lstat;
        SYS_lseek by wrappers::lseek;
        SYS_mmap by wrappers::mmap;
        SYS_munmap by wrappers::munmap;
        SYS_ioctl by control::ioctl;
        SYS_pread64 by wrappers::pread;
        SYS_pwrite64 by wrappers::pwrite;
        SYS_readv by wrappers::readv;
        SYS_writev by wrappers::writev;
        SYS_preadv by wrappers::preadv;
        SYS_pwritev by wrappers::pwritev;
        SYS_preadv2 by preadv2;
        SYS_pwritev2 by pwritev2;
        SYS_access by wrappers::access;
        SYS_pipe by fresh::pipe;
        SYS_pipe2 by fresh::pipe2;
        SYS_msync by wrappers::msync;
        SYS_dup by wrappers::dup;
        SYS_dup2 by wrappers::dup2;
        SYS_dup3 by wrappers::dup3;
        SYS_sendfile by wrappers::sendfile;
        SYS_splice by wrappers::splice;
        SYS_copy_file_range by wrappers::copy_file_range;
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
        SYS_flock by wrappers::flock;
        SYS_fsync by wrappers::fsync;
        SYS_fdatasync by wrappers::fdatasync;
        SYS_syncfs by wrappers::syncfs;
        SYS_sync_file_range by wrappers::sync_file_range;
        SYS_sync by wrappers::sync;
        SYS_truncate by wrappers::truncate;
        SYS_ftruncate by wrappers::ftruncate;
        SYS_fallocate by wrappers::fallocate;
        SYS_chdir by wrappers::chdir;
        SYS_fchdir by wrappers::fchdir;
        SYS_rename by wrappers::rename;
        SYS_renameat by wrappers::renameat;
        SYS_renameat2 by wrappers::renameat2;
        SYS_mkdir by wrappers::mkdir;
        SYS_mkdirat by wrappers::mkdirat;
        SYS_rmdir by wrappers::rmdir;
        SYS_creat by wrappers::creat;
        SYS_link by wrappers::link;
        SYS_linkat by wrappers::linkat;
        SYS_unlink by wrappers::unlink;
        SYS_unlinkat by wrappers::unlinkat;
        SYS_symlink by wrappers::symlink;
        SYS_readlink by wrappers::readlink;
        SYS_readlinkat by wrappers::readlinkat;
        SYS_chmod by wrappers::chmod;
        SYS_fchmod by wrappers::fchmod;
        SYS_chown by wrappers::chown;
        SYS_fchown by wrappers::fchown;
        SYS_lchown by wrappers::lchown;
        SYS_fchownat by wrappers::fchownat;
        SYS_utime by wrappers::utime;
        SYS_utimes by wrappers::utimes;
        SYS_utimensat by wrappers::utimensat;
        SYS_futimesat by wrappers::futimesat;
        SYS_setxattr by wrappers::setxattr;
        SYS_lsetxattr by wrappers::lsetxattr;
        SYS_fsetxattr by wrappers::fsetxattr;
        SYS_getxattr by wrappers::getxattr;
        SYS_lgetxattr by wrappers::lgetxattr;
        SYS_fgetxattr by wrappers::fgetxattr;
        SYS_removexattr by wrappers::removexattr;
        SYS_lremovexattr by wrappers::lremovexattr;
        SYS_fremovexattr by wrappers::fremovexattr;
        SYS_openat by wrappers::openat;
        SYS_openat2 by openat2;
        SYS_newfstatat by wrappers::fstatat;
        SYS_fchmodat by fchmodat;
        SYS_statx by wrappers::statx;
        SYS_close_range by wrappers::close_range;
        SYS_memfd_create by fresh::memfd_create;
        SYS_eventfd by fresh_by_number::<{ libc::SYS_eventfd }>;
        SYS_eventfd2 by fresh_by_number::<{ libc::SYS_eventfd2 }>;
        SYS_epoll_create by fresh::epoll_create;
        SYS_epoll_create1 by fresh::epoll_create1;
        SYS_timerfd_create by fresh::timerfd_create;
        SYS_signalfd4 by fresh_by_number::<{ libc::SYS_signalfd4 }>;
        SYS_inotify_init by fresh::inotify_init;
        SYS_inotify_init1 by fresh::inotify_init1;
        SYS_inotify_add_watch by wrappers::inotify_add_watch;
        SYS_fanotify_init by fresh::fanotify_init;
        SYS_fanotify_mark by wrappers::fanotify_mark;
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
        SYS_open_by_handle_at by fresh_by_number::<{ libc::SYS_open_by_handle_at }>;
        SYS_rt_sigaction by stage::raw_sigaction;
    })
}

/// Told before a call through `syscall`; answers with the function to go on to, with 1 added when
/// that takes the arguments without the number.
unsafe extern "C" fn before_syscall(number: i64, first: usize) -> usize {
    if moment() != Moment::Idle {
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
        libc::SYS_fork => fork::before_clone(0),
        libc::SYS_vfork => fork::before_clone((libc::CLONE_VM | libc::CLONE_VFORK) as u64),
        libc::SYS_clone => fork::before_clone(first as u64),
        libc::SYS_clone3 if stage::is_readable(first) => {
            // SAFETY: flags are the first word of the structure, which can be read.
            fork::before_clone(unsafe { (first as *const u64).read_unaligned() });
        }
        libc::SYS_io_uring_setup => around(Unseen::IoUring),
        libc::SYS_io_setup => around(Unseen::Aio),
        _ => {}
    }
}

/// A way around the hooks is being set up.
pub(super) fn around(way: Unseen) {
    recorder::unseen(way);
    stage::step_aside(match way {
        Unseen::IoUring => "the program uses io_uring, whose transfers cannot be seen",
        _ => "the program uses libaio, whose transfers cannot be seen",
    });
}

/// # Safety
/// As libc's.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn syscall() -> i64 {
    naked_asm!(
        "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "sub rsp, 8",
        "call {before}",
        "add rsp, 8", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
        "test al, 1",
        "jne 2f",
        "jmp rax",
        "2:",
        "dec rax",
        "mov rdi, rsi", "mov rsi, rdx", "mov rdx, rcx", "mov rcx, r8", "mov r8, r9",
        "mov r9, [rsp + 8]",
        "jmp rax",
        before = sym before_syscall
    )
}

/// The system call takes the offset in two halves, of which the first holds all of it.
unsafe extern "C-unwind" fn preadv2(
    fd: usize,
    vector: usize,
    count: usize,
    offset: usize,
    _high: usize,
    flags: usize,
) -> usize {
    // SAFETY: the guest's own arguments.
    unsafe { wrappers::preadv2(fd, vector, count, offset, flags) }
}

/// As `preadv2`.
unsafe extern "C-unwind" fn pwritev2(
    fd: usize,
    vector: usize,
    count: usize,
    offset: usize,
    _high: usize,
    flags: usize,
) -> usize {
    // SAFETY: the guest's own arguments.
    unsafe { wrappers::pwritev2(fd, vector, count, offset, flags) }
}

/// The system call has no flags.
unsafe extern "C-unwind" fn fchmodat(directory: usize, path: usize, mode: usize) -> usize {
    // SAFETY: the guest's own arguments.
    unsafe { wrappers::fchmodat(directory, path, mode, 0) }
}

/// The call itself, by number.
fn by_number(number: i64, a: [usize; 6]) -> usize {
    let mut call = Call::new(Function::FRESH_DESCRIPTOR, Returns::Int, &next::syscall, a);
    call.raw = a;
    // SAFETY: the guest's own arguments.
    call.answer(unsafe { system::raw(number, a) })
}

/// A call whose result is a new descriptor.
unsafe extern "C-unwind" fn fresh_by_number<const NUMBER: i64>(
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
    let result = by_number(libc::SYS_openat2, [directory, path, how, size, 0, 0]);
    fresh::seen(result as i32);
    result
}
