//! System calls without libc: by one instruction, results as the kernel gives them
//! (`-errno` for a failure), `errno` untouched.
//!
//! A call that may block must not be made this way while another thread might cancel this one: a
//! raw call is no cancellation point and `pthread_cancel` would hang. [`cancellable`] does what
//! libc does around its own: asynchronous cancellation for the length of the call.

use crate::next::{self, Next};
pub(crate) use iolab_processor::system_call as raw;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// A system call of up to three arguments.
///
/// # Safety
/// As [`raw`].
#[inline(always)]
pub(crate) unsafe fn raw3(number: i64, a: usize, b: usize, c: usize) -> isize {
    // SAFETY: the caller's promise.
    unsafe { raw(number, [a, b, c, 0, 0, 0]) }
}

/// What stands for `__libc_single_threaded` where libc has none: several threads, to be safe.
static SEVERAL_THREADS: u8 = 0;
static SINGLE_THREADED: AtomicPtr<u8> = AtomicPtr::new(&raw const SEVERAL_THREADS as *mut u8);

/// Finds libc's own flag that the process has one thread; called once at start.
pub(crate) fn find_thread_flag() {
    let found = next::symbol(c"__libc_single_threaded") as *mut u8;
    if !found.is_null() {
        SINGLE_THREADED.store(found, Ordering::Relaxed);
    }
    SET_CANCEL_TYPE.address();
}

/// Whether libc knows of no second thread.
#[inline(always)]
pub(crate) fn is_single_threaded() -> bool {
    // SAFETY: points to libc's flag or to ours, both static.
    unsafe { *SINGLE_THREADED.load(Ordering::Relaxed) != 0 }
}

/// A tool checks what memory the program uses, and counts what we look at as the program's own errors.
static IS_CHECKED: AtomicBool = AtomicBool::new(false);

/// Takes note of a checker of memory from the libraries that are loaded before others; called once at start.
pub(crate) fn find_checker(preloaded: Option<&[u8]>) {
    const VALGRIND: &[u8] = b"vgpreload_";
    let found = preloaded.is_some_and(|it| it.windows(VALGRIND.len()).any(|part| part == VALGRIND));
    IS_CHECKED.store(found, Ordering::Relaxed);
}

/// Whether a tool checks what memory the program uses.
#[inline]
pub(crate) fn is_checked() -> bool {
    IS_CHECKED.load(Ordering::Relaxed)
}

/// Whether the 8 bytes at an address can be read: the kernel looks at a new signal mask before it finds that there is
/// no such way to apply it. Where a tool would report that, as bytes of another process, which no tool checks.
pub(crate) fn is_readable(address: usize) -> bool {
    const NO_SUCH_HOW: usize = 99;
    if address < 4096 {
        return false;
    }
    if is_checked() {
        let mut bytes = 0_u64;
        let into = libc::iovec { iov_base: (&raw mut bytes).cast(), iov_len: 8 };
        let from = libc::iovec { iov_base: address as *mut _, iov_len: 8 };
        let at = |part: &libc::iovec| std::ptr::from_ref(part) as usize;
        // SAFETY: 8 bytes of our own are written.
        let copied = unsafe {
            let own = process_number() as usize;
            raw(libc::SYS_process_vm_readv, [own, at(&into), 1, at(&from), 1, 0])
        };
        return copied == 8;
    }
    // SAFETY: nothing is changed, whatever `address` is.
    let answer = unsafe { raw(libc::SYS_rt_sigprocmask, [NO_SUCH_HOW, address, 0, 8, 0, 0]) };
    answer != -(libc::EFAULT as isize)
}

/// Whether the process has one thread, for certain: asked of the kernel where libc has no flag (before
/// version 2.32).
pub(crate) fn has_one_thread() -> bool {
    // What a directory of processes has beside an entry for each thread: `.` and its own in the parent.
    const OF_ITSELF: libc::nlink_t = 2;
    if is_single_threaded() {
        return true;
    }
    let mut status = std::mem::MaybeUninit::<libc::stat>::zeroed();
    let path = c"/proc/self/task".as_ptr() as usize;
    // SAFETY: a terminated path, and a buffer as large as the kernel's structure, of which any bytes are one.
    let status = unsafe {
        let to = status.as_mut_ptr() as usize;
        raw(libc::SYS_newfstatat, [HERE, path, to, 0, 0, 0]);
        status.assume_init()
    };
    status.st_nlink == OF_ITSELF + 1
}

// A cancelled thread unwinds through our frames, by libgcc and not by Rust. Built to unwind, the
// frames must be declared to let that pass; built to abort (the release), the same declaration would
// make Rust end the process there, and without it the frames have nothing that could object.
#[cfg(panic = "unwind")]
unsafe extern "C-unwind" {
    fn pthread_testcancel();
}
#[cfg(panic = "abort")]
unsafe extern "C" {
    fn pthread_testcancel();
}

/// Acts on a cancellation request, as libc's function would at this place.
#[inline(always)]
pub(crate) fn cancellation_point() {
    if !is_single_threaded() {
        // SAFETY: ends the thread or does nothing; no frame of ours below needs cleaning up.
        unsafe { pthread_testcancel() }
    }
}

/// `PTHREAD_CANCEL_ASYNCHRONOUS` of glibc.
pub(crate) const ASYNCHRONOUS: i32 = 1;

/// Libc's function; the name itself leads to the hook (`hook::cancel`).
pub(crate) static SET_CANCEL_TYPE: Next = Next::new(c"pthread_setcanceltype");

/// A system call in which the thread may wait and may be cancelled.
///
/// # Safety
/// As [`raw`].
pub(crate) unsafe fn cancellable(number: i64, a: [usize; 6]) -> isize {
    if is_single_threaded() {
        // SAFETY: the caller's promise; with one thread nobody can cancel it while it waits.
        return unsafe { raw(number, a) };
    }
    let mut kind = 0i32;
    // SAFETY: between the two calls only the system call runs, which may be torn off anywhere.
    unsafe {
        let at = &raw mut kind as usize;
        SET_CANCEL_TYPE.call([ASYNCHRONOUS as usize, at, 0, 0, 0, 0]);
        let result = raw(number, a);
        SET_CANCEL_TYPE.call([kind as usize, at, 0, 0, 0, 0]);
        result
    }
}

/// Status of an open descriptor.
pub(crate) fn status(fd: i32) -> Result<libc::stat, i32> {
    let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the buffer is as large as the kernel's structure; it is read only when filled.
    unsafe {
        match raw3(libc::SYS_fstat, fd as usize, status.as_mut_ptr() as usize, 0) {
            0 => Ok(status.assume_init()),
            error => Err(-error as i32),
        }
    }
}

/// Where a symbolic link leads, into `room` bytes at `to`: how many there are.
///
/// # Safety
/// The path is terminated, and there is room.
pub(crate) unsafe fn read_link(path: &std::ffi::CStr, to: usize, room: usize) -> isize {
    // SAFETY: the caller's promise.
    unsafe { raw(libc::SYS_readlinkat, [HERE, path.as_ptr() as usize, to, room, 0, 0]) }
}

/// Gives a file another name; both are addresses of terminated paths.
///
/// # Safety
/// They are.
pub(crate) unsafe fn rename(from: usize, to: usize) -> isize {
    // SAFETY: the caller's promise.
    unsafe { raw(iolab_processor::SYS_RENAMEAT, [HERE, from, HERE, to, 0, 0]) }
}

/// Relative paths start from the working directory.
const HERE: usize = libc::AT_FDCWD as usize;

/// This process, asked of the kernel each time (libc's answer is the same, but is a call).
pub(crate) fn process_number() -> u32 {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { raw3(libc::SYS_getpid, 0, 0, 0) as u32 }
}

/// Writes a line to standard error, for the few things a person must hear from inside a guest.
pub(crate) fn say(line: &[u8]) {
    say_parts(&[libc::iovec { iov_base: line.as_ptr().cast_mut().cast(), iov_len: line.len() }]);
}

/// The same of a line in parts, in one piece: the process may end at any moment, and others may write there as well.
///
/// The program has not asked for it, so it must not die of it: where nobody reads standard error any more, or it is a
/// file that has reached its limit, the line is lost, and with it the signal that the kernel sends.
pub(crate) fn say_parts(parts: &[libc::iovec]) {
    let bit = |signal: i32| 1_u64 << (signal - 1);
    let deadly = bit(libc::SIGPIPE) | bit(libc::SIGXFSZ);
    let (mut before, mut pending) = (0_u64, 0_u64);
    let at = |mask: &u64| std::ptr::from_ref(mask) as usize;
    let room = |mask: &mut u64| std::ptr::from_mut(mask) as usize;
    // SAFETY: masks are of 8 bytes, as the kernel is told; the parts are only read.
    unsafe {
        let block = [libc::SIG_BLOCK as usize, at(&deadly), room(&mut before), 8, 0, 0];
        raw(libc::SYS_rt_sigprocmask, block);
        raw3(libc::SYS_rt_sigpending, room(&mut pending), 8, 0);
        let written = raw3(libc::SYS_writev, 2, parts.as_ptr() as usize, parts.len());
        // What was pending already is the program's.
        let ours = match -(written as i32) {
            libc::EPIPE => bit(libc::SIGPIPE) & !pending,
            libc::EFBIG => bit(libc::SIGXFSZ) & !pending,
            _ => 0,
        };
        if ours != 0 {
            let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            let take = [at(&ours), 0, std::ptr::from_ref(&at_once) as usize, 8, 0, 0];
            raw(libc::SYS_rt_sigtimedwait, take);
        }
        let restore = [libc::SIG_SETMASK as usize, at(&before), 0, 8, 0, 0];
        raw(libc::SYS_rt_sigprocmask, restore);
    }
}
