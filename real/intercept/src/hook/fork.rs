//! Ways to make a copy of the process: what its files hold is out and their positions are true
//! before the copy can use them, and the copy starts with a recorder of its own.
//!
//! `fork` inside libc (`daemon`, `forkpty`) comes by the handlers that are registered with it. A copy
//! nobody saw being made (an inline system call) is recognised by its first call: the page of
//! `mode` is wiped in it. `vfork` and `clone` return twice, or to a stack of the program's, and are
//! therefore passed on by a jump, after a look at what is asked.

use super::process::record;
use crate::call::{Call, Returns};
use crate::moment::{self, Moment, moment};
use crate::{mode, next, process, recorder, stage};
use iolab_trace::Function;
use std::ffi::{c_int, c_void};

unsafe extern "C" {
    fn pthread_atfork(
        prepare: extern "C" fn(),
        parent: extern "C" fn(),
        child: extern "C" fn(),
    ) -> c_int;
}

/// Has libc call here around every `fork` of its own.
pub(crate) fn start() {
    // SAFETY: functions of this library, which is never unloaded.
    unsafe { pthread_atfork(prepare, parent, child) };
}

extern "C" fn prepare() {
    if moment() == Moment::Usual {
        let call = Call::new(Function::FORK, Returns::Int, &next::fork, [0; 6]);
        // SAFETY: takes no arguments.
        unsafe { stage::before_process(&call) };
    }
}

extern "C" fn parent() {}

extern "C" fn child() {
    if !mode::is_nothing_wanted() && process::is_copy() {
        process::enter_child();
    }
}

unsafe fn copied(next: &'static next::Next) -> i32 {
    let call = Call::new(Function::FORK, Returns::Int, next, [0; 6]);
    // SAFETY: the guest's own call.
    unsafe {
        if moment() != Moment::Usual {
            return call.answer(call.perform_next()) as i32;
        }
        stage::before_process(&call);
        let start = recorder::now();
        let result = call.perform_next();
        if result == 0 {
            child();
        } else {
            stage::after_fork(result);
            record(Function::FORK, 0, -1, (start, recorder::now()), result as i64);
        }
        call.answer(result) as i32
    }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn fork() -> i32 {
    // SAFETY: the guest's own call.
    unsafe { copied(&next::fork) }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn _Fork() -> i32 {
    // SAFETY: the guest's own call.
    unsafe { copied(&next::_Fork) }
}

/// Told before a `vfork`; answers with the function to go on to.
pub(crate) unsafe extern "C" fn before_vfork() -> usize {
    if moment() == Moment::Usual {
        before_lending();
    }
    next::vfork.address()
}

fn before_lending() {
    let call = Call::new(Function::VFORK, Returns::Int, &next::vfork, [0; 6]);
    // SAFETY: takes no arguments.
    unsafe { stage::before_process(&call) };
    let now = recorder::now();
    record(Function::VFORK, 0, -1, (now, now), 0);
    moment::lend();
}

/// A `clone` with these flags follows, which nobody here sees return.
pub(super) fn before_clone(flags: u64) {
    if moment() != Moment::Usual {
        return;
    }
    let has = |flag: c_int| flags & flag as u32 as u64 != 0;
    let (memory, descriptors) = (has(libc::CLONE_VM), has(libc::CLONE_FILES));
    match (memory, descriptors) {
        (true, true) => stage::step_aside("a thread was made by clone, unknown to libc"),
        (true, false) if has(libc::CLONE_VFORK) => before_lending(),
        (true, false) => {
            stage::step_aside("a process was made that shares this one's memory");
            moment::lend_for_good();
        }
        (false, true) => stage::step_aside("a process was made that shares this one's descriptors"),
        (false, false) => {
            let call = Call::new(Function::CLONE, Returns::Int, &next::clone, [0; 6]);
            // SAFETY: takes no arguments that are looked at.
            unsafe { stage::before_process(&call) };
            let now = recorder::now();
            record(Function::CLONE, 0, -1, (now, now), 0);
        }
    }
}

/// Told before a `clone`; answers with the function to go on to.
pub(crate) unsafe extern "C" fn clone_follows(
    _: *mut c_void,
    _: *mut c_void,
    flags: c_int,
) -> usize {
    before_clone(flags as u32 as u64);
    next::clone.address()
}
