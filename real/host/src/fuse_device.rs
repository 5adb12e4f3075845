//! The device by which file systems are served by programs (`/dev/fuse`).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `FUSE_DEV_IOC_CLONE`: the file asked becomes a second one of the connection whose file is named.
const CLONE: libc::Ioctl = 0x8004_e500_u32 as libc::Ioctl;

/// Whether the threads of a server can have a file of the device each, which keeps them out of each other's way.
/// Linux lets them since 4.5; who runs programs in its stead (QEMU's user mode) may know nothing of it.
pub fn can_clone_fuse_device() -> bool {
    let Ok(device) = File::options().read(true).write(true).open("/dev/fuse") else { return false };
    let number = device.as_raw_fd();
    // SAFETY: the request reads one number, which is there. The device has no connection, so nothing comes of it.
    let answer = unsafe { libc::ioctl(number, CLONE, &raw const number) };
    answer == 0 || is_known(&io::Error::last_os_error())
}

/// Whether a request was refused for what it asked, not for being one that nobody knows.
fn is_known(refusal: &io::Error) -> bool {
    !matches!(refusal.raw_os_error(), Some(libc::ENOTTY | libc::ENOSYS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_nobody_knows_is_told_from_one_that_is_refused() {
        let known = |errno| is_known(&io::Error::from_raw_os_error(errno));
        // QEMU and gVisor; Linux before 6.16, and since.
        assert!(!known(libc::ENOSYS) && !known(libc::ENOTTY));
        assert!(known(libc::EINVAL) && known(libc::EPERM));
    }
}
