//! What this process wants done with its calls; decided once at start, 0 before.

use std::sync::atomic::{AtomicU8, Ordering};

static MODE: AtomicU8 = AtomicU8::new(0);

/// A set of things to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mode(pub(crate) u8);

impl Mode {
    /// Nothing: pass every call through.
    pub(crate) const NOTHING: Mode = Mode(0);
    /// Record the program's calls.
    pub(crate) const RECORD: Mode = Mode(1);
    /// Record them in the stdio layer too.
    pub(crate) const RECORD_STDIO: Mode = Mode(2);
    /// Record what comes out below the strategies.
    pub(crate) const RECORD_BELOW: Mode = Mode(4);
    /// Let strategies answer.
    pub(crate) const STAGE: Mode = Mode(8);
    /// Record the program's calls in the POSIX layer.
    pub(crate) const RECORD_POSIX: Mode = Mode(16);

    /// Whether this is among them.
    #[inline(always)]
    pub(crate) const fn has(self, other: Mode) -> bool {
        self.0 & other.0 != 0
    }
}

/// The mode of this process.
#[inline(always)]
pub(crate) fn get() -> Mode {
    Mode(MODE.load(Ordering::Relaxed))
}

/// Adds to the mode.
pub(crate) fn add(mode: Mode) {
    MODE.fetch_or(mode.0, Ordering::Release);
}

/// From now on every call passes.
pub(crate) fn nothing_any_more() {
    MODE.store(0, Ordering::Release);
}
