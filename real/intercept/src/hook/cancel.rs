//! Asynchronous cancellation may tear a thread off anywhere, in a file's lock too: a program that turns
//! it on gets its calls as they are.

use crate::moment::{Moment, moment};
use crate::{stage, system};
use std::ffi::c_int;

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn pthread_setcanceltype(kind: c_int, old: usize) -> c_int {
    if kind == system::ASYNCHRONOUS && moment() == Moment::Usual {
        stage::keep_out("a thread may be cancelled at any instruction");
    }
    // SAFETY: the program's own arguments.
    unsafe { system::SET_CANCEL_TYPE.call([kind as usize, old, 0, 0, 0, 0]) as c_int }
}
