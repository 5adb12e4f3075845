//! Who a file is made for. As root the server makes files for others; they must belong to who asked,
//! with the mode that process would have got, from the first moment on.
//!
//! Whether the process may is the kernel's decision (`default_permissions`), taken before the request
//! comes here and with all its groups, which a request does not name. So permissions do not count
//! again: of the capabilities that go with root's identity, the needed two are kept.

use fuser::Request;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
use rustix::fs::Mode;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::cell::Cell;

thread_local! {
    /// Whether this thread has a file mode mask of its own.
    static HAS_OWN_MASK: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, this thread makes files for somebody else.
pub(crate) struct Caller {
    is_other: bool,
}

impl Caller {
    /// The process behind a request, with its file mode mask.
    pub(crate) fn of(request: &Request, mask: u32) -> Caller {
        if !HAS_OWN_MASK.get() {
            HAS_OWN_MASK.set(unshare(CloneFlags::CLONE_FS).is_ok());
        }
        rustix::process::umask(Mode::from_raw_mode(mask));
        if !rustix::process::geteuid().is_root() {
            return Caller { is_other: false };
        }
        setfsgid(Gid::from_raw(request.gid()));
        if request.uid() != 0 {
            setfsuid(Uid::from_raw(request.uid()));
            if let Ok(mut sets) = capabilities(None) {
                let needed = CapabilitySet::DAC_OVERRIDE | CapabilitySet::MKNOD;
                sets.effective |= needed & sets.permitted;
                // Without them the source refuses what it would refuse that user anyway.
                let _ = set_capabilities(None, sets);
            }
        }
        Caller { is_other: true }
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if self.is_other {
            setfsuid(Uid::from_raw(0));
            setfsgid(Gid::from_raw(0));
        }
        rustix::process::umask(Mode::empty());
    }
}
