//! Functions of libc that Rust cannot define: variadic ones, and those that may return twice or to a
//! stack of the program's, for which nothing of ours may lie on the stack.

use crate::hook::{fork, number, process};
use std::arch::naked_asm;

/// # Safety
/// As libc's.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn syscall() -> i64 {
    naked_asm!(
        "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "sub rsp, 8",
        "call {before}",
        "add rsp, 8", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
        "test al, 1",
        "jne 2f",
        "jmp rax",
        "2:",
        "dec rax",
        "mov rdi, rsi", "mov rsi, rdx", "mov rdx, rcx", "mov rcx, r8", "mov r8, r9",
        "mov r9, [rsp + 8]",
        "jmp rax",
        before = sym number::before_syscall
    )
}

/// # Safety
/// As libc's.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn vfork() -> i32 {
    // The child runs on the parent's stack: nothing of ours may lie on it when the call returns.
    naked_asm!(
        "sub rsp, 8", "call {before}", "add rsp, 8", "jmp rax",
        before = sym fork::before_vfork
    )
}

/// # Safety
/// As libc's; arguments beyond the sixth stay where they are on the stack.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn clone() -> i32 {
    naked_asm!(
        "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "sub rsp, 8",
        "call {before}",
        "add rsp, 8", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
        "jmp rax",
        before = sym fork::clone_follows
    )
}

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
    execl => process::exec_list;
    execlp => process::exec_list_search;
    execle => process::exec_list_environment;
}

macro_rules! print_lists {
    ($($symbol:ident => $target:path, fixed $bytes:literal, list in $register:literal;)*) => {$(
        /// # Safety
        /// As libc's.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $symbol() -> i32 {
            // Builds a `va_list` as the convention lays it out: the register save area at
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
