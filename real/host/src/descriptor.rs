//! Descriptors, where the standard library looks away.

use std::os::fd::{IntoRawFd, OwnedFd};

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
