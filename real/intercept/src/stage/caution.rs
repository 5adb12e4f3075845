//! What is still dared: whether bytes may be held beyond a call, and whether something failed, so that
//! every call passes from then on.

use super::{allocator, kernel};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Nothing is held back beyond a call any more: the process is ending, or given up.
static CAUTIOUS: AtomicBool = AtomicBool::new(false);
/// The system lets files grow to a limit only, so a write has to be told at once whether it fits.
static FILES_LIMITED: AtomicBool = AtomicBool::new(false);
/// Something failed inside: every file is released by its next call.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// The run says nothing of what strategies do not reach.
static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on nothing is said of what merely passes.
pub(super) fn be_quiet() {
    QUIET.store(true, Relaxed);
}

/// Whether what a call leaves behind has to go out with it.
#[inline(always)]
pub(super) fn is_cautious() -> bool {
    CAUTIOUS.load(Relaxed)
}

pub(super) fn must_give_up() -> bool {
    GIVEN_UP.load(Relaxed) || allocator::is_exhausted()
}

/// One line on standard error, the first time.
#[cold]
pub(super) fn say_once(said: &AtomicBool, what: &str) {
    if !said.swap(true, Relaxed) {
        kernel::tell(&[what.as_bytes()]);
    }
}

/// The same where nothing is wrong and something merely passes.
#[cold]
pub(super) fn remark_once(said: &AtomicBool, what: &str) {
    if !QUIET.load(Relaxed) {
        say_once(said, what);
    }
}

/// One line, once; from then on everything passes.
#[cold]
pub(super) fn give_up(why: &str) {
    switch_off(why, true);
}

/// The same where nothing is wrong: the program has a way around the hooks.
#[cold]
pub(super) fn step_aside(why: &str) {
    switch_off(why, !QUIET.load(Relaxed));
}

fn switch_off(why: &str, is_said: bool) {
    CAUTIOUS.store(true, Relaxed);
    if !GIVEN_UP.swap(true, Relaxed) && is_said {
        kernel::tell(&[why.as_bytes(), b"; strategies are switched off, calls pass as they are"]);
    }
}

/// From now on nothing is held back beyond a call.
pub(super) fn begin() {
    CAUTIOUS.store(true, Relaxed);
}

/// The same, and in children as well: files are limited in size (`RLIMIT_FSIZE`).
#[cold]
pub(super) fn limit_files() {
    FILES_LIMITED.store(true, Relaxed);
    begin();
}

/// Whether files are limited in size.
pub(super) fn limits_files() -> bool {
    FILES_LIMITED.load(Relaxed)
}

/// Says why a file that could be held back of is not, if that is why.
pub(super) fn say_limited() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if limits_files() {
        let why = "files are limited in size here (RLIMIT_FSIZE), so nothing of them is held back";
        remark_once(&SAID, why);
    }
}

/// In a forked child.
pub(super) fn after_fork() {
    CAUTIOUS.store(GIVEN_UP.load(Relaxed) || FILES_LIMITED.load(Relaxed), Relaxed);
}
