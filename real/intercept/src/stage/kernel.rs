//! System calls as they are: no libc, no `errno`, a failure is `-errno`. What happens here is seen
//! by no hook, is no cancellation point and is safe in a signal handler.

use crate::system;
pub(crate) use iolab_processor::thread_pointer;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::AtomicU32;

/// The most bytes one read or write moves (`MAX_RW_COUNT`); larger requests are cut by the kernel.
pub(crate) const TRANSFER_BYTES_MAX: usize = 0x7fff_f000;

/// A system call with the arguments given; the rest are zero.
macro_rules! system_call {
    ($number:ident $(, $argument:expr)* $(,)?) => {{
        let given = [$($argument as usize),*];
        let mut arguments = [0usize; 6];
        arguments[..given.len()].copy_from_slice(&given);
        iolab_processor::system_call(libc::$number, arguments)
    }};
}
pub(crate) use system_call;

/// `read` at the file position.
///
/// # Safety
/// `buffer` may be any address: the kernel checks it.
pub(crate) unsafe fn read(fd: c_int, buffer: *mut c_void, length: usize) -> isize {
    // SAFETY: the kernel checks descriptor and memory.
    unsafe { system_call!(SYS_read, fd, buffer, length) }
}

/// `write` at the file position.
///
/// # Safety
/// `buffer` may be any address: the kernel checks it.
pub(crate) unsafe fn write(fd: c_int, buffer: *const c_void, length: usize) -> isize {
    // SAFETY: the kernel checks descriptor and memory.
    unsafe { system_call!(SYS_write, fd, buffer, length) }
}

/// Says one line on standard error.
#[cold]
pub(crate) fn tell(parts: &[&[u8]]) {
    const PARTS: usize = 6;
    let line = [&b"iolab: "[..]].into_iter().chain(parts.iter().copied()).chain([&b"\n"[..]]);
    let mut vector = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PARTS];
    let mut count = 0;
    for (entry, part) in vector.iter_mut().zip(line) {
        *entry = libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() };
        count += 1;
    }
    crate::system::say_parts(&vector[..count]);
}

/// `pread` at `offset`.
///
/// # Safety
/// `buffer` may be any address: the kernel checks it.
pub(crate) unsafe fn pread(fd: c_int, buffer: *mut c_void, length: usize, offset: i64) -> isize {
    // SAFETY: the kernel checks descriptor and memory.
    unsafe { system_call!(SYS_pread64, fd, buffer, length, offset) }
}

/// `pwrite` at `offset`.
///
/// # Safety
/// `buffer` may be any address: the kernel checks it.
pub(crate) unsafe fn pwrite(fd: c_int, buffer: *const c_void, length: usize, offset: i64) -> isize {
    // SAFETY: the kernel checks descriptor and memory.
    unsafe { system_call!(SYS_pwrite64, fd, buffer, length, offset) }
}

pub(crate) fn seek(fd: c_int, offset: i64, whence: c_int) -> isize {
    // SAFETY: no memory is involved.
    unsafe { system_call!(SYS_lseek, fd, offset, whence) }
}

pub(crate) fn close(fd: c_int) -> isize {
    // SAFETY: no memory is involved.
    unsafe { system_call!(SYS_close, fd) }
}

pub(crate) fn sync(fd: c_int, data_only: bool) -> isize {
    let number = if data_only { libc::SYS_fdatasync } else { libc::SYS_fsync };
    // SAFETY: no memory is involved.
    unsafe { iolab_processor::system_call(number, [fd as usize, 0, 0, 0, 0, 0]) }
}

pub(crate) fn truncate(fd: c_int, length: u64) -> isize {
    // SAFETY: no memory is involved.
    unsafe { system_call!(SYS_ftruncate, fd, length) }
}

pub(crate) fn allocate(fd: c_int, mode: i32, offset: u64, length: u64) -> isize {
    // SAFETY: no memory is involved.
    unsafe { system_call!(SYS_fallocate, fd, mode, offset, length) }
}

/// What the kernel begins to fetch at one request at least: it cuts longer ones to the read-ahead of
/// the device, which is no shorter than this unless somebody has set it so.
const FETCH_BYTES: u64 = 128 << 10;

/// Has the kernel begin to fetch a range into its page cache.
pub(crate) fn fetch(fd: c_int, offset: u64, length: u64) -> isize {
    let end = offset.saturating_add(length);
    let mut at = offset;
    while at < end {
        let bytes = FETCH_BYTES.min(end - at);
        // SAFETY: no memory is involved.
        let result =
            unsafe { system_call!(SYS_fadvise64, fd, at, bytes, libc::POSIX_FADV_WILLNEED) };
        if result < 0 {
            return result;
        }
        at += bytes;
    }
    0
}

/// Whether somebody of this user could open the file anew to write to it.
pub(crate) fn is_writable_by_name(fd: c_int, status: &libc::stat) -> bool {
    // SAFETY: no memory is involved.
    let user = unsafe { system_call!(SYS_geteuid) } as u32;
    if user == 0 || (status.st_uid == user && status.st_mode & 0o200 != 0) {
        return true;
    }
    let flags = libc::AT_EMPTY_PATH | libc::AT_EACCESS;
    // SAFETY: the path is terminated.
    unsafe { system_call!(SYS_faccessat2, fd, c"".as_ptr(), libc::W_OK, flags) == 0 }
}

/// Whether the name the system knows an open file by leads to it; or there is none any more, so that
/// nobody will see the file when its last descriptor goes.
pub(crate) fn is_found_by_name(fd: c_int, status: &libc::stat) -> bool {
    let mut buffer = crate::path::Buffer::new();
    let Some(path) = crate::path::of_descriptor_ended(fd, &mut buffer) else { return false };
    let found = status_at(libc::AT_FDCWD, path as *const libc::c_char, libc::AT_SYMLINK_NOFOLLOW);
    status.st_nlink == 0
        || found.is_some_and(|it| (it.st_dev, it.st_ino) == (status.st_dev, status.st_ino))
}

/// Whether the descriptor goes away when a program is executed.
pub(crate) fn closes_on_exec(fd: c_int) -> bool {
    // SAFETY: no memory is involved.
    let flags = unsafe { system_call!(SYS_fcntl, fd, libc::F_GETFD, 0) };
    flags < 0 || flags & libc::FD_CLOEXEC as isize != 0
}

/// Whether the descriptor is open.
pub(crate) fn is_open(fd: c_int) -> bool {
    // SAFETY: no memory is involved.
    unsafe { system_call!(SYS_fcntl, fd, libc::F_GETFD, 0) >= 0 }
}

pub(crate) fn yield_now() {
    // SAFETY: no memory is involved.
    unsafe { system_call!(SYS_sched_yield) };
}

fn time_of(nanoseconds: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (nanoseconds / 1_000_000_000) as i64,
        tv_nsec: (nanoseconds % 1_000_000_000) as i64,
    }
}

/// Sleeps while a word is as expected, until [`wake_one`] or a signal comes or the time is over.
pub(crate) fn sleep_while(word: &AtomicU32, expected: u32, nanoseconds: u64) {
    let time = time_of(nanoseconds);
    let how = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: word and `time` live through the call.
    unsafe { system_call!(SYS_futex, word.as_ptr(), how, expected, &raw const time) };
}

/// Ends the sleep of one that sleeps on that word.
pub(crate) fn wake_one(word: &AtomicU32) {
    let how = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word lives through the call.
    unsafe { system_call!(SYS_futex, word.as_ptr(), how, 1) };
}

/// Sleeps until the monotonic clock says so, whatever signals come meanwhile.
pub(crate) fn sleep_until_ns(nanoseconds: u64) {
    let time = time_of(nanoseconds);
    while monotonic_ns() < nanoseconds {
        // SAFETY: `time` lives through the call; nothing remains of an absolute time.
        unsafe {
            system_call!(
                SYS_clock_nanosleep,
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &raw const time,
                0
            )
        };
    }
}

pub(crate) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place; the vDSO call is safe in signal handlers.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The time of day.
pub(crate) fn real_seconds() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place; the vDSO call is safe in signal handlers.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut time) };
    time.tv_sec
}

/// Status of a descriptor; `None` when it is not open.
pub(crate) fn status(fd: c_int) -> Option<libc::stat> {
    status_at(fd, c"".as_ptr(), libc::AT_EMPTY_PATH)
}

/// Status of a path; `None` when there is nothing (or the path is no readable memory).
pub(crate) fn status_at(directory: c_int, path: *const c_char, flags: c_int) -> Option<libc::stat> {
    let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel checks `path` and fills `status` on success.
    unsafe {
        let result = system_call!(SYS_newfstatat, directory, path, status.as_mut_ptr(), flags);
        (result == 0).then(|| status.assume_init())
    }
}

/// Anonymous memory, zeroed on first touch; `None` when there is none.
pub(crate) fn map(bytes: usize) -> Option<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh anonymous mapping overlaps nothing.
    let address = unsafe { system_call!(SYS_mmap, 0, bytes, protection, flags, -1isize, 0) };
    (!(-4095..0).contains(&address)).then_some(address as *mut u8)
}

/// Gives back what `map` returned.
///
/// # Safety
/// Nothing refers to the memory any more.
pub(crate) unsafe fn unmap(address: *mut u8, bytes: usize) {
    // SAFETY: by this function's contract.
    unsafe { system_call!(SYS_munmap, address, bytes) };
}

/// Blocks every signal of this thread; returns the mask to restore.
pub(crate) fn block_signals() -> u64 {
    let all = u64::MAX;
    let mut before = 0u64;
    // SAFETY: both masks are 8 bytes, as the kernel is told.
    unsafe {
        system_call!(SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const all, &raw mut before, 8)
    };
    before
}

/// Restores what `block_signals` returned.
pub(crate) fn restore_signals(mask: u64) {
    // SAFETY: the mask is 8 bytes, as the kernel is told.
    unsafe { system_call!(SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, 0, 8) };
}

/// Whether the 8 bytes at `address` can be written: the current signal mask is put there and what
/// stood there is put back.
///
/// # Safety
/// Nobody else uses these bytes meanwhile (they are part of a buffer being read into).
pub(crate) unsafe fn is_writable(address: usize) -> bool {
    if !system::is_readable(address) {
        return false;
    }
    let place = address as *mut u64;
    // SAFETY: readable as just seen; written only when the kernel could.
    unsafe {
        let before = place.read_unaligned();
        let result = system_call!(SYS_rt_sigprocmask, libc::SIG_BLOCK, 0, address, 8);
        if result == 0 {
            place.write_unaligned(before);
        }
        result == 0
    }
}

/// A limit of this process, soft and hard; `None` where the system does not tell.
pub(super) fn limits(which: u32) -> Option<libc::rlimit64> {
    let mut limits = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills the structure.
    let asked = unsafe { system_call!(SYS_prlimit64, 0, which, 0, &raw mut limits) };
    (asked == 0).then_some(limits)
}
