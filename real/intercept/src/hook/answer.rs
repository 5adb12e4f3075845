//! How a call on a followed file is answered: by the stage of strategies when there is one, else by
//! the kernel.

use crate::call::Call;
use crate::mode::Mode;
use crate::stage;

/// Performs a call on a followed file: by the stage when there is one, else below it.
///
/// # Safety
/// The arguments in the call are the guest's own.
#[inline(always)]
pub(super) unsafe fn stage_or_perform(call: Call, mode: Mode) -> isize {
    if mode.has(Mode::STAGE) {
        // SAFETY: the guest's own call. The copy keeps `call` itself in registers.
        return unsafe { stage::perform(&{ call }) };
    }
    // SAFETY: the guest's own call.
    unsafe { call.perform() }
}

/// As [`stage_or_perform`], for calls in which the thread may wait.
///
/// # Safety
/// The arguments in the call are the guest's own.
pub(super) unsafe fn stage_or_perform_cancellable(call: &Call, mode: Mode) -> isize {
    // SAFETY: the guest's own call.
    unsafe { if mode.has(Mode::STAGE) { stage::perform(call) } else { call.perform_cancellable() } }
}

/// The result of a call that makes a descriptor, by `attempt`. Where no number is left, those that the stage
/// has taken are given to the program, and it is tried once more.
pub(super) fn with_a_number(mode: Mode, attempt: impl Fn() -> isize) -> isize {
    let result = attempt();
    let lacks = result == -(libc::EMFILE as isize) && mode.has(Mode::STAGE);
    if lacks && stage::give_room() { attempt() } else { result }
}
