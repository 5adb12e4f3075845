//! Whether signals are watched: from the first staged file on ([`signals`](super::signals)).

use crate::mode::{self, Mode};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static INSTALLED: AtomicBool = AtomicBool::new(false);

/// From now on they are; false when they were already.
pub(super) fn begin() -> bool {
    !INSTALLED.swap(true, Relaxed)
}

/// Whether handlers go through here.
pub(super) fn is_watching() -> bool {
    INSTALLED.load(Relaxed) && mode::get().has(Mode::STAGE)
}

/// Whether faults in our own touching of memory are caught.
#[inline(always)]
pub(super) fn catches_faults() -> bool {
    INSTALLED.load(Relaxed)
}
