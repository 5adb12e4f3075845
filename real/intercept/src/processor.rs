//! What the library has to say in a processor's own words, and which of its system calls are not those
//! of others: one folder for each processor, all with the same names. What needs no hook stands in the crate
//! `iolab_processor`.
//!
//! `instructions` are short pieces in the midst of other code, `entry` the functions that Rust cannot
//! define (variadic ones, those that return twice), `calls` the system calls.

/// A function in a processor's own words by a name that only this library sees; the operands of its lines come last.
macro_rules! hidden_function {
    ($name:literal, [$($line:literal,)*], $($operands:tt)*) => {
        std::arch::global_asm!(
            ".text",
            ".p2align 4",
            concat!(".globl ", $name),
            concat!(".hidden ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            $($line,)*
            concat!(".size ", $name, ", . - ", $name),
            $($operands)*
        );
    };
}
pub(crate) use hidden_function;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::{bytes, calls, code, instructions, way_to_libc, way_to_unwinder};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{bytes, calls, code, instructions, way_to_libc, way_to_unwinder};
