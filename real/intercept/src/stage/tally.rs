//! What came of the strategies of this process, for the launcher to tell at the end of the run: files,
//! calls, and what went past the library. Without a page of the run to write to, nothing is counted.

use iolab_policy::insitu::Call;
use iolab_segment::{TALLY_VARIABLE, Tally};
use iolab_trace::program::Missed;
use iolab_trace::spool::Unseen;
use std::ffi::CString;
use std::sync::OnceLock;

/// The page of the run, set once at start.
static TALLY: OnceLock<Tally> = OnceLock::new();

/// Finds the page of the run.
pub(super) fn join(variable: &dyn Fn(&[u8]) -> Option<&'static [u8]>) {
    let path = variable(TALLY_VARIABLE.as_bytes()).and_then(|path| CString::new(path).ok());
    if let Some(tally) = path.and_then(|path| Tally::attach(&path)) {
        let _ = TALLY.set(tally);
    }
}

/// This process has strategies.
pub(super) fn begun() {
    told(Tally::begun);
}

/// A file is served by a stack.
pub(super) fn serves(status: &libc::stat) {
    told(|tally| tally.serves(status.st_dev, status.st_ino));
}

/// Something goes past the library.
pub(crate) fn notice(what: Unseen) {
    told(|tally| tally.notice(1 << what as u32));
}

/// A program is about to be started without the library.
pub(crate) fn miss(program: &[u8], why: Missed) {
    told(|tally| tally.miss(program, why));
}

/// Whether anybody wants to know.
pub(crate) fn is_wanted() -> bool {
    TALLY.get().is_some()
}

fn told(tell: impl FnOnce(Tally)) {
    if let Some(tally) = TALLY.get() {
        tell(*tally);
    }
}

/// Calls on one file that were not told yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Calls {
    /// That strategies heard.
    pub(super) heard: u64,
    /// That came out below.
    pub(super) below: u64,
}

impl Calls {
    /// Tells of them.
    pub(super) fn tell(&mut self) {
        if self.heard + self.below > 0 {
            let calls = std::mem::take(self);
            told(|tally| tally.calls(calls.heard, calls.below));
        }
    }
}

/// Whether a call is one of the program's own, of which there may be fewer below.
pub(super) fn is_counted(call: Call) -> bool {
    !matches!(
        call,
        Call::Open { .. } | Call::Flush | Call::Settle | Call::Close | Call::Advise { .. }
    )
}
