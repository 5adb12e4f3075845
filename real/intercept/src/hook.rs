//! Hooks: what happens to a call before it reaches the kernel. One file per kind of call.
//!
//! The way is always the same: find out which file the call is about, take the time, let the stage
//! of strategies answer if there is one (it sees every call on a followed file, every call by
//! path, and every call that makes or ends a process), else perform the call; then record it.

mod answer;
mod attributes;
mod bypass;
mod cancel;
mod control;
mod copy;
mod data;
mod dup;
pub(crate) mod fork;
pub(crate) mod fresh;
pub(crate) mod hot;
mod limits;
pub(crate) mod map;
mod message;
mod naming;
pub(crate) mod number;
mod open;
mod place;
pub(crate) mod process;
mod program;
pub(crate) mod quiet;
mod record;
pub(crate) mod sandbox;
mod stdio;
mod unusual;
mod variadic;

use crate::call::{ABSENT, Call};
use crate::mode::{self, Mode};
use iolab_trace::{Class, Layer};

/// Chooses the hook of a call, at any moment.
///
/// # Safety
/// The arguments in the call are the guest's own.
#[inline(never)]
pub(crate) unsafe fn enter(class: Class, layer: Layer, call: Call) -> usize {
    // SAFETY: the caller's promise, for every arm.
    unsafe {
        if !mode::get().has(Mode::USUAL) {
            return unusual::enter(class, layer, call, enter_usual);
        }
        enter_usual(class, layer, call)
    }
}

/// As [`choose`], with the choice made at run time.
///
/// # Safety
/// As [`enter`].
#[cold]
#[inline(never)]
unsafe fn enter_usual(class: Class, layer: Layer, call: Call) -> usize {
    // SAFETY: the caller's promise.
    unsafe { choose(class, layer, call) }
}

/// Chooses the hook of a call at an ordinary moment. Class and layer are constants of the wrapper, so
/// that nothing of the choice is left at run time.
///
/// # Safety
/// As [`enter`].
#[inline(always)]
pub(crate) unsafe fn choose(class: Class, layer: Layer, call: Call) -> usize {
    // SAFETY: the caller's promise, for every arm.
    unsafe {
        if layer == Layer::Stdio {
            return stdio::hook(class, call);
        }
        if call.capacity != ABSENT && call.length > call.capacity {
            // A fortified call about to overflow: libc's function ends the program with its message.
            return call.next.call(call.raw);
        }
        let result = match class {
            Class::Open => open::hook(call),
            Class::Close if call.fd == ABSENT => dup::close_range(call),
            Class::Close => dup::close(call),
            Class::Dup => dup::hook(call),
            Class::Copy => copy::hook(call),
            Class::Map => map::map(call),
            Class::Unmap => map::unmap(call),
            Class::Sync if call.address != ABSENT => map::unmap(call),
            Class::Sync if call.fd == ABSENT => process::everything(call),
            Class::Process => process::hook(call),
            Class::Read | Class::Write if call.block != ABSENT => data::aio(call),
            _ if call.path != ABSENT => naming::hook(call),
            _ => data::hook(call),
        };
        call.answer(result)
    }
}
