//! Calls that come too early: a signal handler writes to a file whose lock its own thread holds.
//! Waiting would wait for itself, and writing past the machine would be overwritten by older bytes
//! the machine holds. So the call is kept, bytes and all, and made as soon as the interrupted call
//! is over; the handler is told that it succeeded, as with any write that is written back. A
//! failure is reported by the next call that can. No memory but a mapping of its own is used.

use super::kernel;
use iolab_policy::insitu::{Call, Handle};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// One call that waits.
pub(super) struct LateCall {
    next: *mut LateCall,
    mapped_bytes: usize,
    pub(super) handle: Handle,
    pub(super) call: Call,
    pub(super) bytes: usize,
}

/// The calls that wait for one file, newest first.
pub(super) struct LateCalls {
    newest: AtomicPtr<LateCall>,
    /// Signals wait as well.
    signals: AtomicBool,
}

impl LateCall {
    /// Where the bytes of the call lie.
    pub(super) fn data(&mut self) -> *mut u8 {
        (&raw mut *self).wrapping_add(1).cast()
    }
}

impl LateCalls {
    pub(super) const fn new() -> LateCalls {
        LateCalls { newest: AtomicPtr::new(null_mut()), signals: AtomicBool::new(false) }
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.newest.load(Ordering::Relaxed).is_null() && !self.signals.load(Ordering::Relaxed)
    }

    /// Keeps a call; `fill` puts its bytes in place. False when there is no memory.
    pub(super) fn keep(
        &self,
        handle: Handle,
        call: Call,
        bytes: usize,
        fill: impl FnOnce(*mut u8),
    ) -> bool {
        let mapped_bytes = (size_of::<LateCall>() + bytes).next_multiple_of(4096);
        let Some(place) = kernel::map(mapped_bytes) else { return false };
        let late = place.cast::<LateCall>();
        let newest = self.newest.load(Ordering::Relaxed);
        // SAFETY: fresh memory, large enough, aligned to a page.
        unsafe {
            late.write(LateCall { next: newest, mapped_bytes, handle, call, bytes });
            fill((*late).data());
        }
        let mut next = newest;
        // A handler of another signal may have come in between, on this same thread.
        while let Err(now) =
            self.newest.compare_exchange(next, late, Ordering::Release, Ordering::Relaxed)
        {
            next = now;
            // SAFETY: not published yet.
            unsafe { (*late).next = now };
        }
        true
    }

    /// Takes all calls, oldest first, and gives their memory back afterwards.
    pub(super) fn take(&self, mut make: impl FnMut(&mut LateCall)) {
        let mut oldest = reversed(self.newest.swap(null_mut(), Ordering::Acquire));
        while !oldest.is_null() {
            // SAFETY: taken off the list, so it is ours alone; mapped with that size.
            unsafe {
                make(&mut *oldest);
                let (next, bytes) = ((*oldest).next, (*oldest).mapped_bytes);
                kernel::unmap(oldest.cast(), bytes);
                oldest = next;
            }
        }
    }

    /// Asks to be called back when the thread is outside: signals wait.
    pub(super) fn call_back(&self) {
        self.signals.store(true, Ordering::Relaxed);
    }

    /// Whether a call back was asked for; asks no longer.
    pub(super) fn is_called_back(&self) -> bool {
        self.signals.swap(false, Ordering::Relaxed)
    }

    /// Drops the list without looking at it: it belongs to the parent of a fork.
    pub(super) fn forget(&self) {
        self.newest.store(null_mut(), Ordering::Relaxed);
    }
}

fn reversed(mut list: *mut LateCall) -> *mut LateCall {
    let mut turned = null_mut();
    while !list.is_null() {
        // SAFETY: every element of the list is a live mapping.
        let next = unsafe { std::mem::replace(&mut (*list).next, turned) };
        (turned, list) = (list, next);
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_policy::insitu::At;

    #[test]
    fn late_calls_come_back_in_order_with_their_bytes() {
        let calls = LateCalls::new();
        for i in 0..5u8 {
            let call = Call::Write { at: At::Offset(u64::from(i)), length: 5000 };
            // SAFETY: the place has room for the 5000 bytes asked for.
            assert!(calls.keep(Handle(3), call, 5000, |to| unsafe { to.write_bytes(i, 5000) }));
        }
        let mut seen = 0;
        calls.take(|late| {
            assert_eq!(late.call, Call::Write { at: At::Offset(seen), length: 5000 });
            // SAFETY: the bytes were put there above.
            assert_eq!(unsafe { late.data().add(4999).read() }, seen as u8);
            seen += 1;
        });
        assert_eq!(seen, 5);
        assert!(calls.is_empty());
    }
}
