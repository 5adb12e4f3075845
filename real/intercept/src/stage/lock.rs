//! A lock that knows its owner: a signal handler that finds its own thread inside learns so instead
//! of waiting for itself. Uncontended it costs one compare-and-swap, and two plain accesses while
//! the process has one thread.
//!
//! Who waits sleeps until it is called: hundreds of threads that look again every now and then take
//! the cores from the one that is inside.

use super::kernel;
use crate::system;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// How long a sleeper sleeps that nobody calls. [`Lock::leave`] has no barrier, so it may overlook one
/// that is just lying down.
const SLEEP_NS: u64 = 10_000_000;

pub(super) struct Lock {
    /// Zero when free, else the thread pointer of the owner.
    owner: AtomicUsize,
    sleepers: AtomicU32,
    /// How often a sleeper has been called.
    calls: AtomicU32,
}

impl Lock {
    pub(super) const fn new() -> Lock {
        Lock { owner: AtomicUsize::new(0), sleepers: AtomicU32::new(0), calls: AtomicU32::new(0) }
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
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            self.call_sleeper();
        }
    }

    /// Whether this thread is inside.
    pub(super) fn is_mine(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == kernel::thread_pointer()
    }

    /// Takes the lock from threads that a fork left behind.
    pub(super) fn reset(&self) {
        self.sleepers.store(0, Ordering::Relaxed);
        self.owner.store(0, Ordering::Release);
    }

    /// The owner may be writing a megabyte: give the core away, then sleep.
    #[cold]
    fn wait(&self, this: usize) -> bool {
        for attempt in 0..80 {
            if self.comes_in(this) {
                return true;
            }
            match attempt {
                0..64 => std::hint::spin_loop(),
                _ => kernel::yield_now(),
            }
        }
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        loop {
            let calls = self.calls.load(Ordering::Acquire);
            if self.comes_in(this) {
                break;
            }
            kernel::sleep_while(&self.calls, calls, SLEEP_NS);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        true
    }

    fn comes_in(&self, this: usize) -> bool {
        self.owner.compare_exchange(0, this, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn call_sleeper(&self) {
        self.calls.fetch_add(1, Ordering::Release);
        kernel::wake_one(&self.calls);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::thread;

    #[test]
    fn hundreds_of_threads_come_in_one_after_the_other_and_nobody_is_left_asleep() {
        let lock = Lock::new();
        let count = AtomicU64::new(0);
        let come_by = || {
            for _ in 0..20 {
                assert!(lock.enter());
                assert!(!lock.enter(), "it is inside already");
                let before = count.load(Ordering::Relaxed);
                // The others find it taken.
                kernel::yield_now();
                count.store(before + 1, Ordering::Relaxed);
                lock.leave();
            }
        };
        thread::scope(|scope| {
            (0..200).for_each(|_| drop(scope.spawn(come_by)));
        });
        assert_eq!(count.into_inner(), 200 * 20);
        assert_eq!(lock.sleepers.into_inner(), 0);
    }

    #[test]
    fn who_waits_leaves_the_cores_to_the_one_inside() {
        const WAITING: u32 = 20;
        let lock = Lock::new();
        let come_back = || {
            assert!(lock.enter());
            lock.leave();
            // SAFETY: fills the structure it is given.
            unsafe {
                let mut usage = std::mem::zeroed::<libc::rusage>();
                libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
                usage.ru_nvcsw + usage.ru_nivcsw
            }
        };
        thread::scope(|scope| {
            assert!(lock.enter());
            let waiting: Vec<_> = (0..WAITING).map(|_| scope.spawn(come_back)).collect();
            while lock.sleepers.load(Ordering::Relaxed) < WAITING {
                thread::yield_now();
            }
            // Long enough to see who looks again and again.
            thread::sleep(std::time::Duration::from_millis(200));
            lock.leave();
            for thread in waiting {
                let switches = thread.join().unwrap();
                assert!(switches < 200, "{switches} times it took a core");
            }
        });
    }
}
