//! Whether a thread is in a call of a layer: what that calls is its own.

use std::cell::Cell;
use std::thread::LocalKey;

/// Where on its stack a thread is in a call, 0 if in none.
pub type Frame = LocalKey<Cell<usize>>;

/// The thread is in a call, until this goes.
pub struct Inside(&'static Frame);

impl Inside {
    /// None if the thread is in one already. Stacks grow down: a call further up than the one before
    /// means that a handler of the guest's jumped out of that.
    pub fn enter(frame: &'static Frame) -> Option<Inside> {
        let here = 0u8;
        let here = &raw const here as usize;
        if here < frame.get() {
            return None;
        }
        frame.set(here);
        Some(Inside(frame))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.set(0);
    }
}

/// Does work that may ask the library, and keeps the program's number of its last error.
pub fn kept<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: this thread's own word; what is asked of the library may change it.
    let error = unsafe { *libc::__errno_location() };
    let done = work();
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = error };
    done
}
