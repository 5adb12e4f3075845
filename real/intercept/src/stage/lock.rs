//! A lock that knows its owner: a signal handler that finds its own thread inside learns so instead
//! of waiting for itself. Uncontended it costs one compare-and-swap, and two plain accesses while
//! the process has one thread.

use super::kernel;
use crate::system;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Zero when free, else the thread pointer of the owner.
pub(super) struct Lock {
    owner: AtomicUsize,
}

impl Lock {
    pub(super) const fn new() -> Lock {
        Lock { owner: AtomicUsize::new(0) }
    }

    /// Waits for other threads; false when this very thread is inside already.
    #[inline]
    #[must_use]
    pub(super) fn enter(&self) -> bool {
        let this = kernel::thread_pointer();
        if system::is_single_threaded() {
            // Only a signal handler can come in between, and it leaves the lock as it found it.
            let is_free = self.owner.load(Ordering::Relaxed) == 0;
            if is_free {
                self.owner.store(this, Ordering::Relaxed);
            }
            return is_free;
        }
        match self.owner.compare_exchange(0, this, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => true,
            Err(owner) if owner == this => false,
            Err(_) => self.wait(this),
        }
    }

    /// Comes in if nobody is inside.
    #[must_use]
    pub(super) fn try_enter(&self) -> bool {
        let this = kernel::thread_pointer();
        self.owner.compare_exchange(0, this, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[inline]
    pub(super) fn leave(&self) {
        self.owner.store(0, Ordering::Release);
    }

    /// Whether this thread is inside.
    pub(super) fn is_mine(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == kernel::thread_pointer()
    }

    /// Takes the lock from threads that a fork left behind.
    pub(super) fn reset(&self) {
        self.owner.store(0, Ordering::Release);
    }

    /// The owner may be writing a megabyte: give the core away, then sleep in short naps.
    #[cold]
    fn wait(&self, this: usize) -> bool {
        for attempt in 0u64.. {
            if self
                .owner
                .compare_exchange_weak(0, this, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                break;
            }
            match attempt {
                0..64 => std::hint::spin_loop(),
                64..128 => kernel::yield_now(),
                _ => kernel::sleep_ns(20_000),
            }
        }
        true
    }
}
