//! The functions of libc, or of another preloaded library, behind those of this one.

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A function by name, looked up at its first call.
pub(crate) struct Next {
    name: &'static CStr,
    address: AtomicUsize,
}

impl Next {
    pub(crate) const fn new(name: &'static CStr) -> Next {
        Next { name, address: AtomicUsize::new(0) }
    }

    /// Its address. Whoever asks was called by that name, so there is one.
    pub(crate) fn address(&self) -> usize {
        let known = self.address.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        // SAFETY: a look-up by a terminated name.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) } as usize;
        let found = if found == 0 { nothing as *const () as usize } else { found };
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

/// Instead of a function that this libc does not have.
extern "C" fn nothing() -> isize {
    // SAFETY: the thread's own variable.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}
