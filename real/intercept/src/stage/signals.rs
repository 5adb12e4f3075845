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
//! signal is kept and sent again as soon as the thread is out of the lock.

use super::table;
use crate::mode::{self, Mode};
use crate::next::Next;
use crate::{process, system};
use libc::{c_int, c_void, sigaction as Action, siginfo_t};
use std::cell::UnsafeCell;
use std::mem::{MaybeUninit, transmute};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};

static SIGACTION: Next = Next::new(c"sigaction");
static INSTALLED: AtomicBool = AtomicBool::new(false);

const SIGNALS: usize = 65;

/// Signals whose default is to end the program and that come from outside or from a fault.
const FATAL: &[c_int] = &[
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGILL,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGUSR1,
    libc::SIGSEGV,
    libc::SIGUSR2,
    libc::SIGPIPE,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGSYS,
];

type Handler = unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

/// The program's own handlers, by signal; 0 where it has none and the default applies.
struct Handlers([UnsafeCell<usize>; SIGNALS]);

// SAFETY: words that are read and written whole.
unsafe impl Sync for Handlers {}

static HANDLERS: Handlers = Handlers([const { UnsafeCell::new(0) }; SIGNALS]);

/// Signals that came at a bad moment, with what the system told about each.
struct Kept {
    number: [AtomicI32; 8],
    thread: [AtomicI32; 8],
    info: UnsafeCell<[MaybeUninit<siginfo_t>; 8]>,
}

// SAFETY: an element of `info` belongs to the thread that reserved its number.
unsafe impl Sync for Kept {}

static KEPT: Kept = Kept {
    number: [const { AtomicI32::new(0) }; 8],
    thread: [const { AtomicI32::new(0) }; 8],
    info: UnsafeCell::new([const { MaybeUninit::uninit() }; 8]),
};

fn own() -> usize {
    on_signal as *const () as usize
}

fn is_fatal(number: c_int) -> bool {
    FATAL.contains(&number)
}

/// Whether handlers go through here.
fn is_watching() -> bool {
    INSTALLED.load(Relaxed) && mode::get().has(Mode::STAGE)
}

/// From the first staged file on.
pub(super) fn watch() {
    if cfg!(test) || INSTALLED.swap(true, Relaxed) {
        return;
    }
    let errno = system::errno();
    for number in 1..SIGNALS as c_int {
        // SAFETY: asks for an action and sets one for handlers of this library.
        unsafe {
            let mut action = std::mem::zeroed::<Action>();
            if next_action(number, null_mut(), &mut action) != 0 {
                continue;
            }
            let asked = action.sa_flags & libc::SA_SIGINFO != 0;
            ASKED_FOR_INFO[number as usize].store(asked, Relaxed);
            if replace(number, &mut action) {
                next_action(number, &mut action, null_mut());
            }
        }
    }
    // Some numbers are libc's own and refused.
    system::set_errno(errno);
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
        // A handler for one time is the system's to take away; ours would be taken with it.
        _ if action.sa_flags & libc::SA_RESETHAND != 0 => true,
        _ => handler == own() || number < 1 || number >= SIGNALS as c_int,
    };
    if stays {
        return false;
    }
    // SAFETY: a word of the table, written whole.
    unsafe { *HANDLERS.0[number as usize].get() = handler };
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
        if !is_watching() || !(1..SIGNALS as c_int).contains(&number) {
            return next_action(number, new.cast_mut(), old);
        }
        let asked = &ASKED_FOR_INFO[number as usize];
        let (before, asked_before) = (*HANDLERS.0[number as usize].get(), asked.load(Relaxed));
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
        } else if !old.is_null() && (*old).sa_sigaction == own() {
            let after = HANDLERS.0[number as usize].get().replace(before);
            show(number, &mut *old, asked_before);
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
                system::set_errno(libc::EINVAL);
                libc::SIG_ERR
            }
            _ if sigaction(number, &new, &mut old) != 0 => libc::SIG_ERR,
            _ => old.sa_sigaction,
        }
    }
}

/// Every handled signal of a program with staged files.
unsafe extern "C" fn on_signal(number: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let errno = system::errno();
    // SAFETY: the system's arguments; the table holds a function of the program or the default.
    unsafe {
        // A fault cannot wait: the instruction would fault again.
        if !is_fault(number, info) && is_inside() && keep(number, info) {
            return;
        }
        match *HANDLERS.0[number as usize].get() {
            libc::SIG_DFL => end_by(number),
            handler => transmute::<usize, Handler>(handler)(number, info, context),
        }
    }
    system::set_errno(errno);
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
        system::raw3(libc::SYS_tgkill, pid, thread_number() as usize, number as usize);
    }
}

fn thread_number() -> i32 {
    // SAFETY: takes no arguments.
    unsafe { system::raw3(libc::SYS_gettid, 0, 0, 0) as i32 }
}

/// Keeps a signal for later; false when there is no room for one more.
unsafe fn keep(number: c_int, info: *const siginfo_t) -> bool {
    let free = (0..KEPT.number.len())
        .find(|&at| KEPT.number[at].compare_exchange(0, -1, Relaxed, Relaxed).is_ok());
    let Some(at) = free else { return false };
    // SAFETY: the element was reserved just now; the system's structure is copied whole.
    unsafe { (*KEPT.info.get())[at].write(*info) };
    KEPT.thread[at].store(thread_number(), Relaxed);
    KEPT.number[at].store(number, std::sync::atomic::Ordering::Release);
    table::files().filter(|file| file.is_mine()).for_each(|file| file.late.call_back());
    true
}

/// Sends this thread the signals that came while it was inside.
#[cold]
pub(super) fn send_kept() {
    let (pid, thread) = (system::process_number(), thread_number());
    for at in 0..KEPT.number.len() {
        let number = KEPT.number[at].load(std::sync::atomic::Ordering::Acquire);
        if number <= 0 || KEPT.thread[at].load(Relaxed) != thread {
            continue;
        }
        // SAFETY: the element was filled before its number was set. The copy frees it at once: the
        // handler may not come back.
        unsafe {
            let info = (*KEPT.info.get())[at].assume_init();
            KEPT.number[at].store(0, Relaxed);
            let arguments =
                [pid as usize, thread as usize, number as usize, &raw const info as usize, 0, 0];
            let sent = system::raw(libc::SYS_rt_tgsigqueueinfo, arguments);
            // The system lets nobody pretend to be the kernel (timers, terminal): send it plainly.
            if sent != 0 {
                system::raw3(libc::SYS_tgkill, pid as usize, thread as usize, number as usize);
            }
        }
    }
}
