//! Functions of libc that Rust cannot define: variadic ones, and those that may return twice or to a
//! stack of the program's, for which nothing of ours may lie on the stack.
//!
//! Linux passes variadic arguments as it passes named ones: the first eight in registers.

use crate::hook::{fork, number, process};
use std::arch::naked_asm;

/// # Safety
/// As libc's.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn syscall() -> i64 {
    naked_asm!(
        "stp x29, x30, [sp, #-80]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "str x6, [sp, #64]",
        "bl {before}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x2, x3, [sp, #32]",
        "ldp x4, x5, [sp, #48]",
        "ldr x6, [sp, #64]",
        "ldp x29, x30, [sp], #80",
        "tbz x16, #0, 2f",
        "sub x16, x16, #1",
        "mov x0, x1", "mov x1, x2", "mov x2, x3", "mov x3, x4", "mov x4, x5", "mov x5, x6",
        "2:",
        "br x16",
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
        "stp x29, x30, [sp, #-16]!",
        "mov x29, sp",
        "bl {before}",
        "mov x16, x0",
        "ldp x29, x30, [sp], #16",
        "br x16",
        before = sym fork::before_vfork
    )
}

/// # Safety
/// As libc's.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn clone() -> i32 {
    naked_asm!(
        "stp x29, x30, [sp, #-80]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "bl {before}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x2, x3, [sp, #32]",
        "ldp x4, x5, [sp, #48]",
        "ldp x6, x7, [sp, #64]",
        "ldp x29, x30, [sp], #80",
        "br x16",
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
            // The arguments after the path lie in seven registers and then on the stack. Put below
            // that, the registers make one array with the rest.
            naked_asm!(
                "stp x29, x30, [sp, #-80]!",
                "mov x29, sp",
                "str x1, [sp, #24]",
                "stp x2, x3, [sp, #32]",
                "stp x4, x5, [sp, #48]",
                "stp x6, x7, [sp, #64]",
                "add x1, sp, #24",
                "bl {target}",
                "ldp x29, x30, [sp], #80",
                "ret",
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
            // Builds a `va_list` as the convention lays it out: at sp + 16 the list itself (where the
            // stack goes on, ends of the two save areas, and how far before them the next argument lies),
            // at sp + 48 the general registers, at sp + 112 those for numbers of floating point.
            naked_asm!(
                "stp x29, x30, [sp, #-240]!",
                "mov x29, sp",
                "stp x0, x1, [sp, #48]",
                "stp x2, x3, [sp, #64]",
                "stp x4, x5, [sp, #80]",
                "stp x6, x7, [sp, #96]",
                "stp q0, q1, [sp, #112]",
                "stp q2, q3, [sp, #144]",
                "stp q4, q5, [sp, #176]",
                "stp q6, q7, [sp, #208]",
                "add x9, sp, #240",
                "add x10, sp, #112",
                "stp x9, x10, [sp, #16]",
                "str x9, [sp, #32]",
                concat!("mov w9, #", $bytes, " - 64"),
                "mov w10, #-128",
                "stp w9, w10, [sp, #40]",
                concat!("add ", $register, ", sp, #16"),
                "bl {target}",
                "ldp x29, x30, [sp], #240",
                "ret",
                target = sym $target
            )
        }
    )*};
}

print_lists! {
    fprintf => crate::wrappers::vfprintf, fixed "16", list in "x2";
    __fprintf_chk => crate::wrappers::__vfprintf_chk, fixed "24", list in "x3";
}
