//! A lock that a forked child finds open: it is taken before a fork and given back on both sides.
//!
//! It is held for a look into a map, never around a call of another library.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// The one value of this library that threads share.
pub(crate) struct Locked<T> {
    is_taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through the lock only.
unsafe impl<T: Send> Sync for Locked<T> {}

impl<T> Locked<T> {
    pub(crate) const fn new(value: T) -> Locked<T> {
        Locked { is_taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.take();
        Guard(self)
    }

    fn take(&self) {
        let free =
            || self.is_taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        while free().is_err() {
            std::thread::yield_now();
        }
    }

    fn give_back(&self) {
        self.is_taken.store(false, Ordering::Release);
    }
}

/// The value, while it is taken.
pub(crate) struct Guard<'a, T>(&'a Locked<T>);

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
        self.0.give_back();
    }
}

/// Has forks find the lock of this library's state open.
pub(crate) fn survive_forks() {
    static DONE: Once = Once::new();
    extern "C" fn before() {
        crate::objects::STATE.take();
    }
    extern "C" fn after() {
        crate::objects::STATE.give_back();
    }
    DONE.call_once(|| {
        // SAFETY: functions of ours; this library is never unloaded.
        unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
    });
}
