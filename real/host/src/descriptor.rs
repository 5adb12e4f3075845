//! Descriptors, where the standard library looks away.

use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};

/// Closes a descriptor and tells what `close` said, which dropping it would not.
///
/// # Errors
/// Late write errors, as network file systems report them here.
pub fn close(descriptor: OwnedFd) -> std::io::Result<()> {
    // SAFETY: the descriptor was owned, and ownership ends here.
    match unsafe { libc::close(descriptor.into_raw_fd()) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// What a descriptor leads to becomes what another one leads to, at once for everybody who uses it; it is closed when a
/// program is executed.
///
/// # Errors
/// What the system says; nothing has changed then.
pub fn replace(descriptor: BorrowedFd<'_>, by: BorrowedFd<'_>) -> std::io::Result<()> {
    let (number, other) = (descriptor.as_raw_fd(), by.as_raw_fd());
    // SAFETY: both are open. Whoever owns the first owns what is there under its number afterwards, too.
    match unsafe { libc::dup3(other, number, libc::O_CLOEXEC) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}
