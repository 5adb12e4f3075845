//! The stage: where in-situ strategies meet a program's calls. The hooks ask it here.
//!
//! Every call on a followed file, every call by path and every call that makes or ends a process
//! comes by when the mode has `STAGE`. `hook::perform_below` is the way down.

use crate::call::Call;
use crate::descriptor::Entry;

/// Answers a call: a descriptor call on a followed file, a copy with one, a map, or a call by path
/// (opens included). The result is `-errno` for a failure.
///
/// # Safety
/// The arguments in the call are the guest's own.
pub(crate) unsafe fn perform(call: &Call) -> isize {
    // SAFETY: the caller's promise.
    unsafe { call.perform() }
}

/// A regular file was opened; `name` is its absolute path.
pub(crate) fn opened(_fd: i32, _entry: Entry, _name: &[u8], _status: Option<&libc::stat>) {}

/// A regular file that was open before this library could see it is used for the first time.
pub(crate) fn inherited(_fd: i32, _entry: Entry, _name: &[u8]) {}

/// `fork`, `vfork`, `exec…`, `posix_spawn`, `system` or `sync` follows: whatever is held back must
/// be below when this returns.
///
/// # Safety
/// The arguments in the call are the guest's own.
pub(crate) unsafe fn before_process(_call: &Call) {}

/// In the parent, after a fork; `result` is the child or `-errno`.
pub(crate) fn after_fork(_result: isize) {}

/// In a forked child, before it does anything.
pub(crate) fn enter_child() {}

/// An exec failed; the program goes on.
pub(crate) fn after_exec_failed() {}

/// The process ends by its own will: return from main, `exit`, `_exit`, `quick_exit`.
pub(crate) fn before_exit() {}

/// `freopen` is about to close this descriptor inside libc.
pub(crate) fn before_stream_close(_fd: i32) {}

/// `fclose`: libc flushes the stream (by writes that come as calls) and closes the descriptor
/// unseen. Answers with what the guest gets.
///
/// # Safety
/// The arguments in the call are the guest's own.
pub(crate) unsafe fn close_stream(call: &Call, _fd: i32) -> usize {
    // SAFETY: the caller's promise.
    unsafe { call.next.call(call.raw) }
}

/// Reads the stage's settings from the environment; true when strategies are to be applied.
pub(crate) fn start(_variable: &dyn Fn(&[u8]) -> Option<&'static [u8]>) -> bool {
    false
}
