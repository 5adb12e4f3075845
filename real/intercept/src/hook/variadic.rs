//! Variadic functions with at most one argument more: it travels as a named one would. Others stand in
//! `processor`, since stable Rust cannot define them.

use super::answer::stage_or_perform_cancellable;
use super::data::control;
use crate::call::{Call, Returns, padded};
use crate::mode::Mode;
use crate::moment::{Moment, moment};
use crate::{next, sight, stage};
use iolab_trace::{Class, Function, Layer};

/// # Safety
/// As libc's; the third argument is one register whatever its type.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn fcntl(fd: usize, command: usize, argument: usize) -> usize {
    // SAFETY: the guest's own arguments.
    unsafe { control_of(&next::fcntl, fd, command, argument) }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn fcntl64(
    fd: usize,
    command: usize,
    argument: usize,
) -> usize {
    // SAFETY: the guest's own arguments.
    unsafe { control_of(&next::fcntl64, fd, command, argument) }
}

unsafe fn control_of(next: &'static next::Next, fd: usize, command: usize, value: usize) -> usize {
    let function = control(command as i32).unwrap_or(Function::FCNTL_SETFL);
    let raw = padded([fd, command, value]);
    let mut call = Call::new(function, Returns::Int, next, raw);
    call.fd = fd;
    // SAFETY: the guest's own arguments.
    unsafe {
        let moment = moment();
        let keeps = command as i32 == libc::F_SETFD && value as i32 & libc::FD_CLOEXEC == 0;
        if moment == Moment::Borrowed && keeps {
            // The child will hand it on to the program it becomes.
            stage::lent(fd as i32);
        }
        if control(command as i32).is_none() || moment != Moment::Usual {
            return call.answer(call.perform_next());
        }
        match function.class() {
            Class::Dup => (call.new_fd, call.minimum) = (value, value),
            Class::Lock => (call.operation, call.lock) = (command, value),
            _ => call.flags = value,
        }
        if function.class() == Class::Dup || sight::look(fd).is_tracked() {
            return super::enter(function.class(), Layer::Posix, call);
        }
        stage::before_unfollowed_lock(&call);
        call.answer(stage_or_perform_cancellable(&call, Mode::NOTHING))
    }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn closefrom(first: i32) {
    let raw = padded([first.max(0) as usize, u32::MAX as usize, 0]);
    let mut call = Call::new(Function::CLOSE_RANGE, Returns::Int, &next::close_range, raw);
    (call.first, call.last, call.flags) = (raw[0], raw[1], raw[2]);
    // SAFETY: closes what the guest asked to close.
    unsafe { super::enter(Class::Close, Layer::Posix, call) };
}
