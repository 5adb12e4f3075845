//! Programs that filter their own system calls (seccomp).
//!
//! From then on one call the program would not make itself may end it. So before the filter goes up
//! strategies write out what they hold and step aside, the recorder stops, and every call passes with
//! exactly the system call libc would make. Libc's entry points stay overwritten, since other threads
//! may be inside; what leads back from them is passed on to the kernel here.

use crate::call::Call;
use crate::mode::{self, Mode};
use crate::next::Next;
use crate::{process, recorder, stage, system};
use iolab_trace::Function;
use iolab_trace::spool::Unseen;
use std::sync::atomic::{AtomicBool, Ordering};

static QUIET: AtomicBool = AtomicBool::new(false);
static PRCTL: Next = Next::new(c"prctl");

const SET_SECCOMP: usize = libc::PR_SET_SECCOMP as usize;
/// Operations of `seccomp(2)`: what puts a filter up.
const STRICT: usize = 0;
const FILTER: usize = 1;

/// # Safety
/// As libc's; its arguments are registers whatever their type.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn prctl(
    option: usize,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
) -> usize {
    let is_strict = a == libc::SECCOMP_MODE_STRICT as usize;
    // Without a filter it is a question whether there could be one.
    if option as u32 as usize == SET_SECCOMP && (is_strict || b != 0) {
        before_filter();
    }
    // SAFETY: the guest's own arguments.
    unsafe { PRCTL.call([option, a, b, c, d, 0]) }
}

/// Told of each call through libc's `syscall`.
pub(super) fn before_system_call(number: i64, a: usize, b: usize, c: usize) {
    let puts_up = match number {
        libc::SYS_seccomp => a == STRICT || (a == FILTER && c != 0),
        libc::SYS_prctl => a == SET_SECCOMP && (b == libc::SECCOMP_MODE_STRICT as usize || c != 0),
        _ => false,
    };
    if puts_up {
        before_filter();
    }
}

#[cold]
fn before_filter() {
    if mode::is_nothing_wanted() || !process::owns_state() {
        return;
    }
    if mode::get().has(Mode::STAGE) {
        stage::before_filter();
    }
    recorder::unseen(Unseen::Filtered);
    QUIET.store(true, Ordering::Release);
    mode::nothing_any_more();
}

/// A call that nothing is to be done about: libc's own function, at its own cost; where that leads
/// back to us, the system call libc would make.
///
/// # Safety
/// The arguments in the call are the guest's own.
#[inline(always)]
pub(super) unsafe fn pass(call: Call) -> usize {
    if QUIET.load(Ordering::Relaxed) && call.next.is_patched() {
        // SAFETY: the caller's promise.
        return unsafe { by_system_call(&{ call }) };
    }
    // SAFETY: the caller's promise.
    unsafe { call.next.call(call.raw) }
}

unsafe fn status(a: [usize; 4]) -> isize {
    // SAFETY: the guest's own arguments.
    unsafe { system::raw(libc::SYS_newfstatat, [a[0], a[1], a[2], a[3], 0, 0]) }
}

#[cold]
unsafe fn by_system_call(call: &Call) -> usize {
    let at_here = libc::AT_FDCWD as usize;
    let a = call.raw;
    // SAFETY: the guest's own call, as libc makes it.
    let result = unsafe {
        match call.function {
            Function::OPEN => {
                let mode = if call.mode == crate::call::ABSENT { 0 } else { a[2] };
                system::cancellable(libc::SYS_openat, [at_here, a[0], a[1], mode, 0, 0])
            }
            Function::OPENAT if call.mode == crate::call::ABSENT => {
                system::cancellable(libc::SYS_openat, [a[0], a[1], a[2], 0, 0, 0])
            }
            _ if call.version != crate::call::ABSENT => call.perform(),
            Function::STAT => status([at_here, a[0], a[1], 0]),
            Function::LSTAT => status([at_here, a[0], a[1], libc::AT_SYMLINK_NOFOLLOW as usize]),
            Function::FSTAT => {
                status([a[0], c"".as_ptr() as usize, a[1], libc::AT_EMPTY_PATH as usize])
            }
            Function::FSTATAT => status([a[0], a[1], a[2], a[3]]),
            _ => call.perform_cancellable(),
        }
    };
    call.answer(result)
}

/// Whether this program lives under a filter that one before it put up: then nothing is done in it at
/// all. `known` is how many filters the launcher lived under, in decimal. Asked with calls the loader
/// makes, too.
pub(crate) fn is_inherited(known: Option<&[u8]>) -> bool {
    let Some(known) = known.and_then(|text| std::str::from_utf8(text).ok()?.parse::<u32>().ok())
    else {
        return false;
    };
    let mut text = [0_u8; 2048];
    let path = c"/proc/self/status".as_ptr() as usize;
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
    // SAFETY: a terminated path, a buffer of this frame, and a descriptor of ours.
    let length = unsafe {
        let fd = system::raw(libc::SYS_openat, [libc::AT_FDCWD as usize, path, flags, 0, 0, 0]);
        if fd < 0 {
            return false;
        }
        let length =
            system::raw3(libc::SYS_read, fd as usize, text.as_mut_ptr() as usize, text.len());
        system::raw3(libc::SYS_close, fd as usize, 0, 0);
        length.max(0) as usize
    };
    let mark = b"Seccomp_filters:";
    let found = text[..length].windows(mark.len()).position(|it| it == mark);
    let Some(at) = found else { return false };
    let digits = text[at + mark.len()..length]
        .iter()
        .skip_while(|byte| byte.is_ascii_whitespace())
        .take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |count: u32, byte| count.wrapping_mul(10) + u32::from(byte - b'0')) > known
}
