//! AArch64.

pub(crate) mod bytes;
pub(crate) mod calls;
pub(crate) mod code;
mod entry;
pub(crate) mod instructions;

/// A function of the unwinder by its name, which leads to where `$found` says, or asks `$find` first. It
/// jumps on with the registers it was called with, so that the unwinder takes its caller for its own.
macro_rules! way_to_unwinder {
    ($index:literal $name:literal, $found:ident, $find:ident) => {
        crate::processor::hidden_function!(
            $name,
            [
                "adrp x16, {found}",
                "add x16, x16, :lo12:{found}",
                "ldr x16, [x16, #8 * {index}]",
                "cbnz x16, 2f",
                "stp x29, x30, [sp, #-64]!",
                "mov x29, sp",
                "stp x0, x1, [sp, #16]",
                "stp x2, x3, [sp, #32]",
                "stp x4, x5, [sp, #48]",
                "mov w0, #{index}",
                "bl {find}",
                "mov x16, x0",
                "ldp x0, x1, [sp, #16]",
                "ldp x2, x3, [sp, #32]",
                "ldp x4, x5, [sp, #48]",
                "ldp x29, x30, [sp], #64",
                "2:",
                "br x16",
            ],
            found = sym $found,
            find = sym $find,
            index = const $index,
        );
    };
}
pub(crate) use way_to_unwinder;

/// A function of libc by its name, which leads to where `$way` says.
macro_rules! way_to_libc {
    ($name:literal, $way:ident) => {
        crate::processor::hidden_function!(
            $name,
            [
                "adrp x16, {way}",
                "add x16, x16, :lo12:{way}",
                "ldr x16, [x16]",
                "br x16",
            ],
            way = sym $way,
        );
    };
}
pub(crate) use way_to_libc;
