//! Nobody else may use what a stage believes to own. As long as bytes are held the file below must
//! stay as it was when the first of them came; whoever writes to it past the library (a system call
//! made by hand) changes its size or its time. That cannot be put in order again, but it can be
//! told. Costs a status when the first byte is held and one before bytes go out.

use super::kernel::{self, system_call};
use std::ffi::c_int;

/// See the module.
#[derive(Default)]
pub(super) struct Tripwire {
    seen: Option<Seen>,
    is_tripped: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    bytes: i64,
    modified: (i64, i64),
}

impl Seen {
    fn of(fd: c_int) -> Option<Seen> {
        kernel::status(fd).map(|status| Seen {
            bytes: status.st_size,
            modified: (status.st_mtime, status.st_mtime_nsec),
        })
    }
}

impl Seen {
    /// A write sets the time to now; a program that sets it means some other time.
    fn is_written_after(&self, before: &Seen) -> bool {
        self.modified > before.modified && self.modified.0 <= kernel::real_seconds()
    }
}

impl Tripwire {
    #[inline]
    pub(super) fn is_set(&self) -> bool {
        self.seen.is_some()
    }

    pub(super) fn is_tripped(&self) -> bool {
        self.is_tripped
    }

    /// Bytes are held from now on.
    pub(super) fn set(&mut self, fd: c_int) {
        self.seen = Seen::of(fd);
    }

    /// The file is about to be changed by the stage itself, or others look: now it must be as it
    /// was.
    pub(super) fn take(&mut self, fd: c_int) {
        let Some(before) = self.seen.take() else { return };
        let Some(now) = Seen::of(fd).filter(|now| *now != before) else { return };
        let is_written = now.bytes != before.bytes
            || (now.is_written_after(&before) && has_times_of_its_own(fd));
        if self.is_tripped || !is_written {
            return;
        }
        self.is_tripped = true;
        let mut buffer = crate::path::Buffer::new();
        let path = crate::path::of_descriptor(fd, &mut buffer);
        let what: &[u8] = b" was written to past the library while bytes of it were held; it may be wrong, and passes from now on";
        kernel::tell(&[path, what]);
    }

    /// Another process has written out what was held.
    pub(super) fn forget(&mut self) {
        self.seen = None;
    }
}

/// Whether a file system keeps times by this machine's writes alone. Elsewhere a server may set
/// them later, and only the size tells.
fn has_times_of_its_own(fd: c_int) -> bool {
    const EXT: i64 = 0xef53;
    const XFS: i64 = 0x5846_5342;
    const BTRFS: i64 = 0x9123_683e;
    const TMPFS: i64 = 0x0102_1994;
    let mut status = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the kernel fills the structure on success.
    let kind = unsafe {
        match system_call!(SYS_fstatfs, fd, status.as_mut_ptr()) {
            0 => status.assume_init().f_type,
            _ => return false,
        }
    };
    [EXT, XFS, BTRFS, TMPFS].contains(&kind)
}
