//! Functions of libc that only libc itself calls: closes of streams and directories, and the opens and transfers
//! of streams that must be no cancellation points (`fopen` with a `c` in its mode, also that of `,ccs=`). They have no wrapper; their entry points lead here
//! (`patch`).

use crate::call::{Call, Returns, padded};
use crate::next::{self, Next};
use crate::{system, wrappers};
use iolab_trace::{Class, Function, Layer};

/// Past whoever stands in front of libc: a sanitizer would take `old` for memory of the program.
static SET_CANCEL_STATE: Next = Next::new(c"pthread_setcancelstate");

/// `PTHREAD_CANCEL_DISABLE` of glibc.
const DISABLED: i32 = 1;

/// Makes a call in which the thread cannot be cancelled.
unsafe fn quietly(call: impl FnOnce() -> usize) -> usize {
    if system::is_single_threaded() {
        return call();
    }
    let mut state = 0_i32;
    let old = &raw mut state as usize;
    // SAFETY: changes the calling thread's own state for the length of the call.
    unsafe {
        SET_CANCEL_STATE.call(padded([DISABLED as usize, old]));
        let result = call();
        SET_CANCEL_STATE.call(padded([state as usize, old]));
        result
    }
}

/// `__close_nocancel`.
pub(crate) unsafe extern "C-unwind" fn close(fd: usize) -> usize {
    let raw = [fd, 0, 0, 0, 0, 0];
    let mut call = Call::new(Function::CLOSE, Returns::Int, &next::close, raw);
    call.fd = fd;
    // SAFETY: libc's own arguments.
    unsafe { quietly(|| super::enter(Class::Close, Layer::Posix, call)) }
}

/// `__read_nocancel`.
pub(crate) unsafe extern "C-unwind" fn read(fd: usize, buffer: usize, length: usize) -> usize {
    // SAFETY: libc's own arguments.
    unsafe { quietly(|| wrappers::read(fd, buffer, length)) }
}

/// `__write_nocancel`.
pub(crate) unsafe extern "C-unwind" fn write(fd: usize, buffer: usize, length: usize) -> usize {
    // SAFETY: libc's own arguments.
    unsafe { quietly(|| wrappers::write(fd, buffer, length)) }
}

/// `__open_nocancel`.
pub(crate) unsafe extern "C-unwind" fn open(path: usize, flags: usize, mode: usize) -> usize {
    // SAFETY: libc's own arguments.
    unsafe { quietly(|| wrappers::open64(path, flags, mode)) }
}

/// `__pread64_nocancel`.
pub(crate) unsafe extern "C-unwind" fn pread(
    fd: usize,
    buffer: usize,
    length: usize,
    offset: usize,
) -> usize {
    // SAFETY: libc's own arguments.
    unsafe { quietly(|| wrappers::pread64(fd, buffer, length, offset)) }
}
