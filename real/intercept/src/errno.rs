//! The caller's `errno`: what libc's functions and the hooks in their place leave of a failure.
//!
//! It is touched only to report a call's own failure; what libc sets in work of ours is put back.

/// Its value.
pub(crate) fn get() -> i32 {
    // SAFETY: the address is the thread's own.
    unsafe { *libc::__errno_location() }
}

/// Sets it.
pub(crate) fn set(value: i32) {
    // SAFETY: the address is the thread's own.
    unsafe { *libc::__errno_location() = value }
}

/// Saves it around work of ours that goes through libc.
pub(crate) fn keeping<T>(work: impl FnOnce() -> T) -> T {
    let before = get();
    let value = work();
    set(before);
    value
}
