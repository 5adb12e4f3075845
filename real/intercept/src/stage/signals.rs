//! Signals that would end the program, and signal handlers that come at a bad moment.
//!
//! *Fatal signals.* The system ends a program that has no handler at once, and what was held back
//! would be gone, although the program's `write` had succeeded. So from the first staged file on,
//! signals that would end the program come here: what is held goes out, then the system's way is
//! taken after all, with the same signal. The program does not notice: asked for its handler, it
//! is told that there is none, and when it asks for none it gets this one again.
//!
//! *Bad moments.* A handler of the program runs while its thread is inside a file's lock. It could
//! exit, and what is held would be out of reach. So handlers go through [`on_signal`]: inside, the
//! signal is kept and sent again as soon as the thread is out of the lock. A handler for one time
//! (`SA_RESETHAND`) is taken away here, as the system would.
//!
//! *Faults of ours.* Memory of the program is touched by [`memory`](super::memory) in a few known
//! instructions; a fault there goes on behind them, and the call comes to `EFAULT`.

use super::{kept, table, watch};
use crate::moment::{Moment, moment};
use crate::next::Next;
use crate::processor::instructions::program_counter;
use crate::{errno, process, system};
use libc::{c_int, c_void, sigaction as Action, siginfo_t};
use std::cell::UnsafeCell;
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static SIGACTION: Next = Next::new(c"sigaction");

const SIGNALS: usize = 65;

/// Whether the default for a signal is to end the program: all but those that are ignored, stop or
/// continue it. What is beyond 31 is the program's to use, and ends it as well.
fn is_fatal(number: c_int) -> bool {
    !matches!(
        number,
        libc::SIGKILL
            | libc::SIGSTOP
            | libc::SIGTSTP
            | libc::SIGTTIN
            | libc::SIGTTOU
            | libc::SIGCONT
            | libc::SIGCHLD
            | libc::SIGURG
            | libc::SIGWINCH
    )
}

type Handler = unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

/// The program's own handlers, by signal; 0 where it has none and the default applies.
struct Handlers([UnsafeCell<usize>; SIGNALS]);

// SAFETY: words that are read and written whole.
unsafe impl Sync for Handlers {}

static HANDLERS: Handlers = Handlers([const { UnsafeCell::new(0) }; SIGNALS]);

fn own() -> usize {
    on_signal as *const () as usize
}

/// From the first staged file on.
pub(super) fn watch() {
    if cfg!(test) || !watch::begin() {
        return;
    }
    let errno = errno::get();
    (1..SIGNALS as c_int).for_each(watch_one);
    // Some numbers are libc's own and refused.
    errno::set(errno);
}

fn watch_one(number: c_int) {
    // SAFETY: asks for an action and sets one for handlers of this library.
    unsafe {
        let mut action = std::mem::zeroed::<Action>();
        if next_action(number, null_mut(), &mut action) != 0 || action.sa_sigaction == own() {
            return;
        }
        let asked = action.sa_flags & libc::SA_SIGINFO != 0;
        ASKED_FOR_INFO[number as usize].store(asked, Relaxed);
        if replace(number, &mut action) {
            next_action(number, &mut action, null_mut());
        }
    }
}

unsafe fn next_action(number: c_int, new: *mut Action, old: *mut Action) -> c_int {
    // SAFETY: the arguments are those of `sigaction`.
    unsafe { SIGACTION.call([number as usize, new as usize, old as usize, 0, 0, 0]) as c_int }
}

/// Puts our handler in the place of the program's, or of the default if that is fatal. False when
/// the action stays as it is.
fn replace(number: c_int, action: &mut Action) -> bool {
    let handler = action.sa_sigaction;
    let stays = match handler {
        libc::SIG_DFL => !is_fatal(number),
        libc::SIG_IGN => true,
        _ => handler == own() || number < 1 || number >= SIGNALS as c_int,
    };
    if stays {
        return false;
    }
    // SAFETY: a word of the table, written whole.
    unsafe { *HANDLERS.0[number as usize].get() = handler };
    ONCE[number as usize].store(action.sa_flags & libc::SA_RESETHAND != 0, Relaxed);
    action.sa_flags &= !libc::SA_RESETHAND;
    action.sa_sigaction = own();
    action.sa_flags |= libc::SA_SIGINFO;
    if handler == libc::SIG_DFL {
        action.sa_flags |= libc::SA_RESTART | libc::SA_ONSTACK;
    }
    true
}

/// Shows the program its own handler where ours stands.
fn show(number: c_int, action: &mut Action, asked_for_info: bool) {
    if action.sa_sigaction != own() {
        return;
    }
    // SAFETY: a word of the table, read whole.
    action.sa_sigaction = unsafe { *HANDLERS.0[number as usize].get() };
    if action.sa_sigaction == libc::SIG_DFL {
        action.sa_flags &= !(libc::SA_RESTART | libc::SA_ONSTACK);
    }
    if !asked_for_info {
        action.sa_flags &= !libc::SA_SIGINFO;
    }
}

/// Which handlers are for one time.
static ONCE: [AtomicBool; SIGNALS] = [const { AtomicBool::new(false) }; SIGNALS];

/// Which handlers of the program asked for the second and third argument themselves.
static ASKED_FOR_INFO: [AtomicBool; SIGNALS] = [const { AtomicBool::new(false) }; SIGNALS];

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sigaction(
    number: c_int,
    new: *const Action,
    old: *mut Action,
) -> c_int {
    // SAFETY: the program's own arguments; a bad `new` would fault in libc as well.
    unsafe {
        if !watch::is_watching() || !(1..SIGNALS as c_int).contains(&number) || is_borrowed() {
            return next_action(number, new.cast_mut(), old);
        }
        let (asked, once) = (&ASKED_FOR_INFO[number as usize], &ONCE[number as usize]);
        let (before, asked_before) = (*HANDLERS.0[number as usize].get(), asked.load(Relaxed));
        let once_before = once.load(Relaxed);
        let mut mine = if new.is_null() { std::mem::zeroed() } else { *new };
        if !new.is_null() {
            asked.store(mine.sa_flags & libc::SA_SIGINFO != 0, Relaxed);
            replace(number, &mut mine);
        }
        let given = if new.is_null() { null_mut() } else { &raw mut mine };
        let result = next_action(number, given, old);
        if result != 0 {
            *HANDLERS.0[number as usize].get() = before;
            asked.store(asked_before, Relaxed);
            once.store(once_before, Relaxed);
        } else if !old.is_null() && (*old).sa_sigaction == own() {
            let after = HANDLERS.0[number as usize].get().replace(before);
            show(number, &mut *old, asked_before);
            (*old).sa_flags |= if once_before { libc::SA_RESETHAND } else { 0 };
            *HANDLERS.0[number as usize].get() = after;
        }
        result
    }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn signal(number: c_int, handler: usize) -> usize {
    // SAFETY: what libc's `signal` does, by `sigaction`, so that it passes here.
    unsafe {
        let mut new = std::mem::zeroed::<Action>();
        let mut old = std::mem::zeroed::<Action>();
        new.sa_sigaction = handler;
        new.sa_flags = libc::SA_RESTART;
        match handler {
            libc::SIG_ERR => {
                errno::set(libc::EINVAL);
                libc::SIG_ERR
            }
            _ if sigaction(number, &new, &mut old) != 0 => libc::SIG_ERR,
            _ => old.sa_sigaction,
        }
    }
}

/// A child of `vfork` has signal actions of its own, but not these tables.
fn is_borrowed() -> bool {
    moment() == Moment::Borrowed
}

/// Libc's other ways to set a handler: it does so below [`sigaction`], and then it is as if the
/// program had come here.
macro_rules! setters {
    ($($symbol:ident by $next:ident;)*) => {$(
        static $next: Next = Next::new(
            match std::ffi::CStr::from_bytes_with_nul(
                concat!(stringify!($symbol), "\0").as_bytes()
            ) {
                Ok(name) => name,
                Err(_) => panic!("a symbol holds no NUL"),
            },
        );

        /// # Safety
        /// As libc's.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $symbol(number: c_int, handler: usize) -> usize {
            // SAFETY: the program's own arguments.
            unsafe { set_inside(&$next, number, handler) }
        }
    )*};
}

setters! {
    sigset by SIGSET;
    sysv_signal by SYSV_SIGNAL;
    __sysv_signal by SYSV_SIGNAL_INNER;
    bsd_signal by BSD_SIGNAL;
    ssignal by SSIGNAL;
}

unsafe fn set_inside(next: &Next, number: c_int, handler: usize) -> usize {
    let known = (1..SIGNALS as c_int).contains(&number);
    // SAFETY: the program's own arguments; then asks for an action and puts ours before it.
    unsafe {
        let found = next.call([number as usize, handler, 0, 0, 0, 0]);
        if !known || !watch::is_watching() || is_borrowed() {
            return found;
        }
        let before = *HANDLERS.0[number as usize].get();
        let errno = errno::get();
        watch_one(number);
        errno::set(errno);
        if found == own() { before } else { found }
    }
}

/// `rt_sigaction` by number, with the structures of the kernel.
///
/// # Safety
/// As the system call's.
pub(crate) unsafe extern "C-unwind" fn raw_sigaction(
    number: usize,
    new: usize,
    old: usize,
    mask_bytes: usize,
) -> usize {
    // SAFETY: the program's own arguments; then asks for an action and puts ours before it.
    unsafe {
        let arguments = [number, new, old, mask_bytes, 0, 0];
        let result = system::raw(libc::SYS_rt_sigaction, arguments);
        if result < 0 {
            errno::set(-result as i32);
            return usize::MAX;
        }
        let signal = number as c_int;
        if (1..SIGNALS as c_int).contains(&signal) && watch::is_watching() && !is_borrowed() {
            // The first word is the handler.
            let shown = old as *mut usize;
            if old != 0 && *shown == own() {
                *shown = *HANDLERS.0[number].get();
            }
            if new != 0 {
                watch_one(signal);
            }
        }
        0
    }
}

/// Every handled signal of a program with staged files.
unsafe extern "C" fn on_signal(number: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let errno = errno::get();
    // SAFETY: the system's arguments; the table holds a function of the program or the default.
    unsafe {
        if matches!(number, libc::SIGSEGV | libc::SIGBUS) && goes_on(context) {
            return;
        }
        // A fault cannot wait: the instruction would fault again.
        if !is_fault(number, info) && is_inside() && kept::keep(number, info) {
            return;
        }
        let handler = *HANDLERS.0[number as usize].get();
        if ONCE[number as usize].swap(false, Relaxed) {
            *HANDLERS.0[number as usize].get() = libc::SIG_DFL;
            if !is_fatal(number) {
                next_action(number, &mut std::mem::zeroed::<Action>(), null_mut());
            }
        }
        match handler {
            libc::SIG_DFL => end_by(number),
            handler => transmute::<usize, Handler>(handler)(number, info, context),
        }
    }
    errno::set(errno);
}

/// A fault where this library touches memory of the program: the thread goes on behind it.
unsafe fn goes_on(context: *mut c_void) -> bool {
    // SAFETY: the system's own structure.
    let (at, go_on) = program_counter(unsafe { &mut *context.cast::<libc::ucontext_t>() });
    match super::memory::behind_fault(at) {
        Some(behind) => {
            go_on(behind);
            true
        }
        None => false,
    }
}

unsafe fn is_fault(number: c_int, info: *const siginfo_t) -> bool {
    let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGSYS];
    // SAFETY: the system's own structure; codes above zero come from the kernel.
    faults.contains(&number) && unsafe { (*info).si_code } > 0
}

/// Whether this thread is inside a file's lock.
fn is_inside() -> bool {
    table::files().any(|file| file.is_mine())
}

/// Takes the system's way after what is held is out. The signal is blocked while its handler runs,
/// so it comes when the handler returns.
unsafe fn end_by(number: c_int) {
    if process::owns_state() {
        super::life::end();
    }
    // SAFETY: sets the default action and sends this thread the signal that has come.
    unsafe {
        let mut default = std::mem::zeroed::<Action>();
        next_action(number, &mut default, null_mut());
        let pid = system::process_number() as usize;
        system::raw3(libc::SYS_tgkill, pid, kept::thread_number() as usize, number as usize);
    }
}
