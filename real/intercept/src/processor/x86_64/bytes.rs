//! Copies and comparisons until libc's are found: short rather than fast.

use std::arch::naked_asm;

/// `memmove`, and `memcpy` as well.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn moved() {
    naked_asm!(
        "mov rax, rdi",
        "mov rcx, rdx",
        "mov r8, rdi",
        "sub r8, rsi",
        "cmp r8, rdx",
        "jb 2f",
        "rep movsb",
        "ret",
        // The target begins inside of the source.
        "2:",
        "lea rdi, [rdi + rcx - 1]",
        "lea rsi, [rsi + rcx - 1]",
        "std",
        "rep movsb",
        "cld",
        "ret",
    )
}

/// `memset`.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn set() {
    naked_asm!("mov r8, rdi", "mov eax, esi", "mov rcx, rdx", "rep stosb", "mov rax, r8", "ret",)
}

/// `memcmp`, and `bcmp` as well.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn compared() {
    naked_asm!(
        "xor ecx, ecx",
        "2:",
        "cmp rcx, rdx",
        "je 3f",
        "movzx eax, byte ptr [rdi + rcx]",
        "movzx r8d, byte ptr [rsi + rcx]",
        "inc rcx",
        "sub eax, r8d",
        "je 2b",
        "ret",
        "3:",
        "xor eax, eax",
        "ret",
    )
}

/// `strlen`.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn length() {
    naked_asm!("mov rsi, -1", "jmp {within}", within = sym length_within)
}

/// `strnlen`.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn length_within() {
    naked_asm!(
        "xor eax, eax",
        "2:",
        "cmp rax, rsi",
        "je 3f",
        "cmp byte ptr [rdi + rax], 0",
        "je 3f",
        "inc rax",
        "jmp 2b",
        "3:",
        "ret",
    )
}
