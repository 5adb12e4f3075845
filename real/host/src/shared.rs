//! Words that several processes see: an anonymous shared mapping, inherited over `fork`.
//!
//! Only atomics live in it, so no process can see a torn value; waiting is a futex on the low half
//! of a word, with a time limit so that a waiter can look whether its partners still live.

use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A shared array of atomic words, zero at first.
pub struct SharedWords {
    start: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: the mapping lives as long as the value and holds only atomics.
unsafe impl Send for SharedWords {}
// SAFETY: as above; every access goes through an atomic.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Maps `count` words.
    ///
    /// # Errors
    /// What `mmap` says when there is no memory.
    pub fn new(count: usize) -> io::Result<SharedWords> {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a fresh anonymous mapping at an address the kernel chooses.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), count * 8, protection, flags, -1, 0) };
        match NonNull::new(start.cast::<AtomicU64>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => {
                Ok(SharedWords { start, count })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Deref for SharedWords {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is `count` aligned words, readable and writable, until drop.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped; no reference outlives self.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.count * 8) };
    }
}

/// Sleeps until someone wakes the word, its value is no longer `seen`, or `limit` is over.
pub fn wait_for_change(word: &AtomicU64, seen: u64, limit: Duration) {
    let time =
        libc::timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
    let low = low_half(word);
    // SAFETY: the futex word is aligned and alive for the call; a spurious return is allowed.
    unsafe { libc::syscall(libc::SYS_futex, low, libc::FUTEX_WAIT, seen as u32, &raw const time) };
}

/// Sets the word and wakes everyone who sleeps on it.
pub fn change(word: &AtomicU64, value: u64) {
    word.store(value, Ordering::Release);
    // SAFETY: as in `wait_for_change`.
    unsafe { libc::syscall(libc::SYS_futex, low_half(word), libc::FUTEX_WAKE, i32::MAX) };
}

/// The 32 bits a futex compares: the low half of the word.
fn low_half(word: &AtomicU64) -> *const u32 {
    let start = word.as_ptr().cast::<u32>().cast_const();
    if cfg!(target_endian = "little") { start } else { start.wrapping_add(1) }
}

/// Lets another thread run.
pub fn give_way() {
    // SAFETY: sched_yield has no precondition.
    unsafe { libc::sched_yield() };
}
