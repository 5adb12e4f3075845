//! Copies and comparisons until libc's are found: short rather than fast.

use std::arch::naked_asm;

/// `memmove`, and `memcpy` as well.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn moved() {
    naked_asm!(
        "sub x3, x0, x1",
        "cmp x3, x2",
        "b.lo 3f",
        "mov x4, x0",
        "2:",
        "cbz x2, 4f",
        "ldrb w5, [x1], #1",
        "strb w5, [x4], #1",
        "sub x2, x2, #1",
        "b 2b",
        // The target begins inside of the source.
        "3:",
        "cbz x2, 4f",
        "sub x2, x2, #1",
        "ldrb w5, [x1, x2]",
        "strb w5, [x0, x2]",
        "b 3b",
        "4:",
        "ret",
    )
}

/// `memset`.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn set() {
    naked_asm!(
        "mov x3, x0",
        "2:",
        "cbz x2, 3f",
        "strb w1, [x3], #1",
        "sub x2, x2, #1",
        "b 2b",
        "3:",
        "ret",
    )
}

/// `memcmp`, and `bcmp` as well.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn compared() {
    naked_asm!(
        "mov x3, x0",
        "2:",
        "cbz x2, 3f",
        "ldrb w4, [x3], #1",
        "ldrb w5, [x1], #1",
        "sub x2, x2, #1",
        "subs w0, w4, w5",
        "b.eq 2b",
        "ret",
        "3:",
        "mov w0, #0",
        "ret",
    )
}

/// `strlen`.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn length() {
    naked_asm!("mov x1, #-1", "b {within}", within = sym length_within)
}

/// `strnlen`.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn length_within() {
    naked_asm!(
        "mov x2, x0",
        "mov x0, #0",
        "2:",
        "cmp x0, x1",
        "b.eq 3f",
        "ldrb w3, [x2, x0]",
        "cbz w3, 3f",
        "add x0, x0, #1",
        "b 2b",
        "3:",
        "ret",
    )
}
