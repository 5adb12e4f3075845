//! Variadic functions. Stable Rust cannot define them; a few instructions put the arguments where
//! a function of fixed signature finds them.

use super::answer::stage_or_perform_cancellable;
use super::data::control;
use super::process::{exec_list, exec_list_environment, exec_list_search};
use crate::call::{Call, Returns, padded};
use crate::mode::Mode;
use crate::moment::{Moment, moment};
use crate::{next, sight, stage};
use iolab_trace::{Class, Function, Layer};
use std::arch::naked_asm;

macro_rules! exec_lists {
    ($($symbol:ident => $target:path;)*) => {$(
        /// # Safety
        /// As libc's.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $symbol() -> i32 {
            // The arguments after the path lie in five registers and then on the stack behind the
            // return address. Moved there, the registers make one array with the rest.
            naked_asm!(
                "pop rax",
                "push r9", "push r8", "push rcx", "push rdx", "push rsi",
                "push rax",
                "lea rsi, [rsp + 8]",
                "call {target}",
                "pop rcx",
                "add rsp, 40",
                "jmp rcx",
                target = sym $target
            )
        }
    )*};
}

exec_lists! {
    execl => exec_list;
    execlp => exec_list_search;
    execle => exec_list_environment;
}

macro_rules! print_lists {
    ($($symbol:ident => $target:path, fixed $bytes:literal, list in $register:literal;)*) => {$(
        /// # Safety
        /// As libc's.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $symbol() -> i32 {
            // Builds a `va_list` as the x86-64 convention lays it out: the register save area at
            // rsp + 32, the list itself at rsp.
            naked_asm!(
                "sub rsp, 216",
                "mov [rsp + 48], rdx", "mov [rsp + 56], rcx",
                "mov [rsp + 64], r8", "mov [rsp + 72], r9",
                "test al, al",
                "je 2f",
                "movaps [rsp + 80], xmm0", "movaps [rsp + 96], xmm1",
                "movaps [rsp + 112], xmm2", "movaps [rsp + 128], xmm3",
                "movaps [rsp + 144], xmm4", "movaps [rsp + 160], xmm5",
                "movaps [rsp + 176], xmm6", "movaps [rsp + 192], xmm7",
                "2:",
                concat!("mov dword ptr [rsp], ", $bytes),
                "mov dword ptr [rsp + 4], 48",
                "lea rax, [rsp + 224]",
                "mov [rsp + 8], rax",
                "lea rax, [rsp + 32]",
                "mov [rsp + 16], rax",
                concat!("mov ", $register, ", rsp"),
                "call {target}",
                "add rsp, 216",
                "ret",
                target = sym $target
            )
        }
    )*};
}

print_lists! {
    fprintf => crate::wrappers::vfprintf, fixed "16", list in "rdx";
    __fprintf_chk => crate::wrappers::__vfprintf_chk, fixed "24", list in "rcx";
}

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
