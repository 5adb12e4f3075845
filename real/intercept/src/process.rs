//! Which process this is: the one the state in memory belongs to, a forked copy, or a vfork child
//! that borrows the memory.
//!
//! A page that the kernel wipes in forked children (`MADV_WIPEONFORK`) holds a mark: zero means
//! "new process, nothing set up yet", also after a raw `clone`. Reading it costs one load.
//! A vfork child shares even that page; there only the process number tells.

use crate::{mode, system};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

static STARTED: AtomicBool = AtomicBool::new(false);
static NUMBER: AtomicU32 = AtomicU32::new(0);
/// Of a forked copy: the process that the state in memory belonged to before.
static PARENT: AtomicU32 = AtomicU32::new(0);
/// What sets a forked child up: a `fn()`, null before start.
static SET_UP: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// Sets the mark up; called once at start. `set_up` gives a forked child what it must have of its own.
pub(crate) fn start(set_up: fn()) {
    SET_UP.store(set_up as *mut (), Ordering::Relaxed);
    settle();
    let (page, bytes) = mode::page();
    // SAFETY: a page of this library's own that nothing but these two words lies in.
    let advised =
        unsafe { system::raw3(libc::SYS_madvise, page, bytes, libc::MADV_WIPEONFORK as usize) };
    STARTED.store(advised == 0, Ordering::Relaxed);
}

/// Whether this is a forked child in which nothing was set up yet.
#[inline(always)]
pub(crate) fn is_new() -> bool {
    mode::mark().load(Ordering::Relaxed) == 0 && STARTED.load(Ordering::Relaxed)
}

/// Whether this is a forked child in which nothing was set up yet, for who knows of the fork: also where the page
/// is not wiped (before Linux 4.14, under QEMU). One system call.
pub(crate) fn is_copy() -> bool {
    is_new() || number() != system::process_number()
}

/// Sets a forked child up, as was said at start.
#[cold]
#[inline(never)]
pub(crate) fn enter_child() {
    let set_up = SET_UP.load(Ordering::Relaxed);
    if !set_up.is_null() {
        // SAFETY: only `start` stores here, and what it stores is a function of this type.
        unsafe { std::mem::transmute::<*mut (), fn()>(set_up)() }
    }
}

/// Takes note that this is a process of its own.
pub(crate) fn settle() {
    let number = system::process_number();
    let before = NUMBER.swap(number, Ordering::Relaxed);
    if before != 0 && before != number {
        PARENT.store(before, Ordering::Relaxed);
    }
    mode::mark().store(1, Ordering::Relaxed);
}

/// Number of the process the state belongs to.
pub(crate) fn number() -> u32 {
    NUMBER.load(Ordering::Relaxed)
}

/// Who made this process. Of a forked copy that is known for good, when its parent may have ended long since and the
/// system names another one.
pub(crate) fn parent() -> u32 {
    match PARENT.load(Ordering::Relaxed) {
        // SAFETY: takes no arguments.
        0 => unsafe { system::raw3(libc::SYS_getppid, 0, 0, 0) as u32 },
        parent => parent,
    }
}

/// Whether the caller is the process the state belongs to, and not a vfork child on borrowed
/// memory whose opens and closes are not ours. Sets a forked child up first. One system call:
/// for opens and closes, not for transfers.
pub(crate) fn owns_state() -> bool {
    if is_new() {
        enter_child();
    }
    number() == system::process_number() || number() == 0
}
