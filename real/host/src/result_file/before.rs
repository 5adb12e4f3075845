//! What lay where results are to go, so that nothing else is replaced.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// A file that is to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Before {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) mode: u32,
    pub(super) owner: (u32, u32),
}

impl Before {
    pub(super) fn of(facts: &Metadata) -> Before {
        Before {
            device: facts.dev(),
            inode: facts.ino(),
            mode: facts.mode() & 0o7777,
            owner: (facts.uid(), facts.gid()),
        }
    }

    pub(super) fn is(&self, facts: &Metadata) -> bool {
        (self.device, self.inode) == (facts.dev(), facts.ino())
    }
}
