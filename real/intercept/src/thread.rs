//! What belongs to one thread: a block of thread-local storage in the initial-exec model.
//!
//! Rust's own thread-locals cost a call to `__tls_get_addr` per access in a shared library (14 to
//! 24 ns per record, measured) and may not be touched in destructors. This block is zeroed
//! memory at a fixed distance from the thread pointer: two instructions, valid from the first to
//! the last instruction of the thread, signal handlers included.

use crate::processor::instructions;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The block. All zero when the thread starts. Atomics, since a signal handler may interrupt its
/// own thread anywhere; no other thread looks in.
#[repr(C, align(64))]
pub(crate) struct Block {
    /// Address of the next free record slot; a multiple of the chunk size when there is none.
    pub(crate) cursor: AtomicU64,
    /// Number of the thread within its process, plus one.
    pub(crate) number: AtomicU32,
    /// The process generation the cursor belongs to.
    pub(crate) generation: AtomicU32,
    /// How often the thread has lent the memory to a child and not run since.
    pub(crate) lent: AtomicU32,
    /// Calls on followed files that were made and not recorded by themselves.
    pub(crate) reached: AtomicU32,
    /// For the stage of strategies, to use as it likes; starts as 0.
    pub(crate) stage: [AtomicUsize; 8],
    /// Not 0 while a record that was written before is being added to.
    pub(crate) adding: AtomicU32,
    /// Number of the system call, plus one, that another library's function stands for which the
    /// thread is in; 0 for none.
    below: AtomicU32,
    /// The first argument of that function.
    below_first: AtomicUsize,
    /// Addresses of the records that count calls, 0 for none; all in the chunk of the cursor.
    pub(crate) runs: [AtomicU64; 16],
}

const _: () = assert!(size_of::<Block>() <= 256);

/// Has another library's function carry out a call, which that library may do by number.
#[cold]
pub(crate) fn below<T>(number: Option<i64>, first: usize, call: impl FnOnce() -> T) -> T {
    let number = number.map_or(0, |it| it as u32 + 1);
    let before = (
        block().below_first.swap(first, Ordering::Relaxed),
        block().below.swap(number, Ordering::Relaxed),
    );
    let answer = call();
    block().below_first.store(before.0, Ordering::Relaxed);
    block().below.store(before.1, Ordering::Relaxed);
    answer
}

/// Whether this system call is how another library's function carries out a call of the thread's.
pub(crate) fn is_below(number: i64, first: usize) -> bool {
    block().below.load(Ordering::Relaxed) == number as u32 + 1
        && block().below_first.load(Ordering::Relaxed) == first
}

impl Block {
    /// Ends all runs of the thread. The answer is whether their chunk may be handed on: not, when an
    /// addition was interrupted by what happens now.
    pub(crate) fn end_runs(&self) -> bool {
        for run in &self.runs {
            run.store(0, Ordering::Relaxed);
        }
        self.adding.swap(0, Ordering::Relaxed) == 0
    }
}

/// The calling thread's block.
#[inline(always)]
pub(crate) fn block() -> &'static Block {
    // SAFETY: the block lives as long as its thread.
    unsafe { &*instructions::thread_block() }
}
