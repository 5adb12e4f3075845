//! The control page of the run, which all its processes share with the launcher: settings, the next
//! number, and counters of what was left out, lost or cannot be seen.
//!
//! Without a run there is no page: nothing is counted, and numbers are this process's own.

use iolab_trace::spool::{LeftOut, Lost, Unseen, control};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Numbers where there is no run to be unique in (strategies without recording).
static LOCAL_NUMBER: AtomicU32 = AtomicU32::new(1);

static CONTROL: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

/// Sets where the page is mapped; null for no run.
pub(super) fn set(page: *mut u8) {
    CONTROL.store(page, Ordering::Relaxed);
}

/// A word of the control page, if there is a run.
pub(super) fn word(at: usize) -> Option<&'static AtomicU32> {
    let control = CONTROL.load(Ordering::Relaxed);
    // SAFETY: the page stays mapped; the offsets are inside it.
    (!control.is_null()).then(|| unsafe { &*(control.add(at) as *const AtomicU32) })
}

/// A counter of the control page.
pub(super) fn counter(at: usize) -> Option<&'static AtomicU64> {
    let control = CONTROL.load(Ordering::Relaxed);
    // SAFETY: as above.
    (!control.is_null()).then(|| unsafe { &*(control.add(at) as *const AtomicU64) })
}

/// A number for a description or a name, unique in the run; 0 when nothing is recorded.
pub(crate) fn new_number() -> u32 {
    match word(control::NUMBER) {
        Some(word) => word.fetch_add(1, Ordering::Relaxed),
        None => LOCAL_NUMBER.fetch_add(1, Ordering::Relaxed),
    }
}

fn count(at: usize, index: usize) {
    if let Some(counter) = counter(at + index * 8) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts a call that is left out by rule.
pub(crate) fn left_out(reason: LeftOut) {
    count(control::LEFT_OUT, reason as usize);
}

/// Counts a call that should have been recorded and was not.
pub(super) fn lost(reason: Lost) {
    count(control::LOST, reason as usize);
}

/// Notes that something happened that hooks cannot see.
pub(crate) fn unseen(what: Unseen) {
    crate::stage::tally::notice(what);
    let bit = 1 << what as u32;
    if let Some(word) = word(control::UNSEEN)
        && word.load(Ordering::Relaxed) & bit == 0
    {
        word.fetch_or(bit, Ordering::Relaxed);
    }
}
