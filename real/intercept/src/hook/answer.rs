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
