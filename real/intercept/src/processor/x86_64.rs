//! x86-64.

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
                "mov rax, qword ptr [rip + {found} + 8 * {index}]",
                "test rax, rax",
                "jnz 2f",
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                "mov edi, {index}",
                "call {find}",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "2:",
                "jmp rax",
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
                "jmp qword ptr [rip + {way}]",
            ],
            way = sym $way,
        );
    };
}
pub(crate) use way_to_libc;
