//! What is done with calls at a moment that is not an ordinary one ([`crate::moment`]): before start,
//! in a new process nobody saw being made, and while a child of `vfork` runs on this process's memory.
//!
//! *Borrowed memory.* Such a child has descriptors of its own but everything else is its parent's:
//! tables, staging memory, thread-local storage. What it does to its descriptors concerns nobody
//! here, so it passes. Where it would use, or hand on, a description its parent has staged, that
//! file is released first.

use crate::call::{ABSENT, Call};
use crate::moment::{Moment, find_out};
use crate::stage::{self, Held, Opening};
use crate::system;
use iolab_trace::{Class, Layer};

/// As [`super::enter`], at such a moment; `usual` takes the call when the moment turns out to be an
/// ordinary one.
///
/// # Safety
/// The arguments in the call are the guest's own.
#[cold]
#[inline(never)]
pub(super) unsafe fn enter(
    class: Class,
    layer: Layer,
    call: Call,
    usual: unsafe fn(Class, Layer, Call) -> usize,
) -> usize {
    // SAFETY: the caller's promise, for every arm.
    unsafe {
        match find_out() {
            Moment::Usual => usual(class, layer, call),
            // Libc's own function, which is whole in this mode (`start`), at its own cost.
            Moment::Idle => super::sandbox::pass(call),
            Moment::Borrowed if layer == Layer::Stdio => call.next.call(call.raw),
            Moment::Borrowed if class == Class::Open => call.answer(open(&call)),
            Moment::Borrowed => {
                hand_on(class, &call);
                call.answer(call.perform())
            }
        }
    }
}

/// A child on borrowed memory opens a file: one that lies in a fast place is opened there, for which nothing
/// is remembered.
unsafe fn open(call: &Call) -> isize {
    let mut held = stage::before_open(call);
    loop {
        // SAFETY: the guest's own call.
        let result = unsafe { call.perform() };
        match opened(call, held, result) {
            Some(result) => return result,
            None => held = Held::NOTHING,
        }
    }
}

/// What the child gets; `None` if the open is to be made once more.
fn opened(call: &Call, held: Held, result: isize) -> Option<isize> {
    let status = if result >= 0 { system::status(result as i32).ok() } else { None };
    let flags = super::open::flags(call) as i32;
    match stage::after_open(held, result as i32, flags, None, status.as_ref()) {
        Opening::Passed => Some(result),
        Opening::Staged(fd, _) => Some(fd as isize),
        Opening::Failed(errno) => Some(-(errno as isize)),
        Opening::Gone => None,
    }
}

/// A child on borrowed memory makes a call on descriptors that are also its parent's.
fn hand_on(class: Class, call: &Call) {
    if matches!(class, Class::Close | Class::Stat | Class::Unlink) {
        return;
    }
    for fd in [call.fd, call.in_fd, call.out_fd] {
        if fd != ABSENT {
            stage::lent(fd as i32);
        }
    }
}
