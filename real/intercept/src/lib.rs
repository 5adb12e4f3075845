//! The preloaded library: sees the calls a program makes on its files, records them, and hosts the
//! in-situ strategies.
//!
//! A call takes this way: a wrapper generated from the function table (`wrappers`) names its
//! arguments in a [`call::Call`]; the hook of its kind (`hook`) looks the descriptor up
//! (`descriptor`, at first `sight`), takes the time, lets the stage of strategies answer (`stage`) or does the system
//! call itself (`system`), and hands a 64-byte record to the `recorder`. Libc's own calls (stdio,
//! aio, `nftw`) reach the same wrappers because the entry points in libc are overwritten (`patch`);
//! calls by number reach functions of the same kind (`hook::number`). Before start, in a child nobody
//! saw being made and while one runs on borrowed memory, calls take another way (`hook::unusual`).
//!
//! What a guest may rely on: nothing here allocates, locks, unwinds or uses buffered output; state
//! is `.bss` atomics; a hook that runs before `start` or after the end passes through; `errno` is
//! touched only to report the call's own failure. Regular files are called by raw system calls;
//! whatever may block is called so that a thread can still be cancelled in it.
//!
//! Cost: 5 ns per call for the detour, two clock readings (18 ns with the time-stamp counter) and
//! about 2 ns for the record while its pages are warm.

/// Those of the system; the tests of orders put an explorer's in their place.
mod atomic {
    pub(crate) use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
}
mod bytes;
pub(crate) mod call;
mod chosen;
pub(crate) mod descriptor;
pub(crate) mod errno;
pub(crate) mod hook;
mod lending;
pub(crate) mod mapping;
pub(crate) mod mode;
pub(crate) mod moment;
pub(crate) mod next;
mod object;
mod patch;
pub(crate) mod path;
pub(crate) mod process;
mod processor;
pub(crate) mod recorder;
mod roomy;
pub(crate) mod scope;
pub(crate) mod sight;
pub(crate) mod stage;
mod start;
pub(crate) mod system;
pub(crate) mod thread;
mod unwinder;
mod wrappers;
