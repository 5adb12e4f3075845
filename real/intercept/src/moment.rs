//! What kind of moment it is for a call: an ordinary one, one before start or with nothing to do, or
//! one of a child of `vfork` that runs on this process's memory.
//!
//! From [`lend`] on no moment counts as ordinary until who asks has found out who it is; the first
//! call of the lending thread after its return makes the moment ordinary again. An ordinary moment
//! costs one load to know.

use crate::mode::{self, Mode};
use crate::{process, system, thread};
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

/// As [`moment`], when it is no ordinary one by the word all look at.
#[cold]
#[inline(never)]
pub(crate) fn find_out() -> Moment {
    if mode::is_nothing_wanted() {
        return Moment::Idle;
    }
    if process::is_new() {
        process::enter_child();
    }
    // Where strategies stepped aside for good and nothing is recorded, the word all look at is empty
    // as long as memory is lent; that is no idle moment, since libc's functions lead here.
    if process::number() != system::process_number() {
        return Moment::Borrowed;
    }
    take_back();
    Moment::Usual
}

/// The calling thread is about to lend this process's memory to a child.
pub(crate) fn lend() {
    thread::block().lent.fetch_add(1, Relaxed);
    mode::lend(&LENT);
}

/// From now on somebody else may be running on this memory at any time.
pub(crate) fn lend_for_good() {
    mode::lend(&LENT);
}

/// The calling thread runs again, so its child does not run on this memory any more.
pub(crate) fn take_back() {
    let lent = thread::block().lent.swap(0, Relaxed);
    mode::take_back(&LENT, lent);
}

/// In a forked child.
pub(crate) fn forget_lending() {
    thread::block().lent.store(0, Relaxed);
    LENT.store(0, Relaxed);
}
