//! What the library has to say in a processor's own words, and which of its system calls are not those
//! of others: one folder for each processor, all with the same names. What needs no hook stands in the crate
//! `iolab_processor`.
//!
//! `instructions` are short pieces in the midst of other code, `entry` the functions that Rust cannot
//! define (variadic ones, those that return twice), `calls` the system calls.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::{bytes, calls, code, instructions, way_to_libc, way_to_unwinder};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{bytes, calls, code, instructions, way_to_libc, way_to_unwinder};
