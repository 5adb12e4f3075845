//! Calls at a moment that is not an ordinary one: before start, in a new process nobody saw being
//! made, and while a child of `vfork` runs on this process's memory.
//!
//! *Borrowed memory.* Such a child has descriptors of its own but everything else is its parent's:
//! tables, staging memory, thread-local storage. What it does to its descriptors concerns nobody
//! here, so it passes. Where it would use, or hand on, a description its parent has staged, that
//! file is released first. From [`lend`] on every call comes here and asks who it is; the first call
//! of the lending thread after its return makes the moment ordinary again.

use crate::call::{ABSENT, Call};
use crate::mode::{self, Mode};
use crate::{process, stage, system, thread};
use iolab_trace::{Class, Layer};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Threads that lend the memory of this process.
static LENT: AtomicU32 = AtomicU32::new(0);

/// What kind of moment it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The library is not started, or has nothing to do.
    Idle,
    /// Another process runs on this memory, and it is the caller.
    Borrowed,
    /// An ordinary one (now).
    Usual,
}

/// What kind of moment it is for the caller. A new process is set up first.
#[inline(always)]
pub(crate) fn moment() -> Moment {
    if mode::get().has(Mode::USUAL) { Moment::Usual } else { find_out() }
}

#[cold]
#[inline(never)]
fn find_out() -> Moment {
    if mode::is_nothing_wanted() {
        return Moment::Idle;
    }
    if process::is_new() {
        super::process::enter_child();
    }
    match mode::get() {
        Mode::NOTHING => Moment::Idle,
        _ if process::number() != system::process_number() => Moment::Borrowed,
        _ => {
            take_back();
            Moment::Usual
        }
    }
}

/// The calling thread is about to lend this process's memory to a child.
pub(crate) fn lend() {
    thread::block().lent.fetch_add(1, Relaxed);
    LENT.fetch_add(1, Relaxed);
    mode::set_usual(false);
}

/// From now on somebody else may be running on this memory at any time.
pub(crate) fn lend_for_good() {
    LENT.fetch_add(1, Relaxed);
    mode::set_usual(false);
}

/// The calling thread runs again, so its child does not run on this memory any more.
pub(crate) fn take_back() {
    let lent = thread::block().lent.swap(0, Relaxed);
    if LENT.fetch_sub(lent, Relaxed) == lent && mode::get() != Mode::NOTHING {
        mode::set_usual(true);
        // Another thread may have lent it in between.
        if LENT.load(Relaxed) != 0 {
            mode::set_usual(false);
        }
    }
}

/// In a forked child.
pub(crate) fn forget_lending() {
    thread::block().lent.store(0, Relaxed);
    LENT.store(0, Relaxed);
}

/// As [`super::enter`], at such a moment.
///
/// # Safety
/// The arguments in the call are the guest's own.
#[cold]
#[inline(never)]
pub(super) unsafe fn enter(class: Class, layer: Layer, call: Call) -> usize {
    // SAFETY: the caller's promise, for every arm.
    unsafe {
        match find_out() {
            Moment::Usual => super::enter_usual(class, layer, call),
            // Libc's own function, which is whole in this mode (`start`), at its own cost.
            Moment::Idle => call.next.call(call.raw),
            Moment::Borrowed if layer == Layer::Stdio => call.next.call(call.raw),
            Moment::Borrowed => {
                hand_on(class, &call);
                call.answer(call.perform())
            }
        }
    }
}

/// A child on borrowed memory makes a call on descriptors that are also its parent's.
fn hand_on(class: Class, call: &Call) {
    if matches!(class, Class::Close | Class::Stat | Class::Unlink) {
        return;
    }
    for fd in [call.fd, call.in_fd, call.out_fd] {
        if fd != ABSENT {
            stage::lent(fd as i32);
        }
    }
}
