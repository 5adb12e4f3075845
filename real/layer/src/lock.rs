//! Locks that a forked child finds open: they are taken before a fork and given back on both sides.
//!
//! One is held for a look into a map, never around a call of another library.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// A value that threads share.
pub struct Locked<T> {
    is_taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through the lock only.
unsafe impl<T: Send> Sync for Locked<T> {}

impl<T> Locked<T> {
    /// Of this value.
    pub const fn new(value: T) -> Locked<T> {
        Locked { is_taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Takes it.
    pub fn lock(&self) -> Guard<'_, T> {
        self.wait();
        Guard(self)
    }

    fn wait(&self) {
        let free =
            || self.is_taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        while free().is_err() {
            std::thread::yield_now();
        }
    }

    fn open(&self) {
        self.is_taken.store(false, Ordering::Release);
    }
}

/// The value, while it is taken.
pub struct Guard<'a, T>(&'a Locked<T>);

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// A lock, whatever it holds.
pub trait Hold: Sync {
    /// Waits until it is free, and takes it.
    fn take(&self);
    /// Gives it back.
    fn give_back(&self);
}

impl<T: Send> Hold for Locked<T> {
    fn take(&self) {
        self.wait();
    }

    fn give_back(&self) {
        self.open();
    }
}

/// Has forks find these locks open, which are all that this library has. They are taken in their order.
pub fn survive_forks(locks: &'static [&'static dyn Hold]) {
    static LOCKS: OnceLock<&'static [&'static dyn Hold]> = OnceLock::new();
    extern "C" fn before() {
        LOCKS.get().into_iter().copied().flatten().for_each(|lock| lock.take());
    }
    extern "C" fn after() {
        LOCKS.get().into_iter().copied().flatten().for_each(|lock| lock.give_back());
    }
    LOCKS.get_or_init(|| {
        // SAFETY: functions of ours; this library is never unloaded. A fork before the list is there finds them open.
        unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
        locks
    });
}
