//! What makes an inode a member: its bytes in memory, and what of them the container has not.

use iolab_policy::insitu::defer_close::MemberId;
use rustix::fs::Stat;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file that is, or was, a member.
pub(crate) struct Member {
    pub(super) id: MemberId,
    /// A real file has taken its place.
    is_real: AtomicBool,
    has_name: AtomicBool,
    body: Mutex<Body>,
}

/// What is done with a member's bytes is done while this is held.
#[derive(Default)]
pub(crate) struct Body {
    /// Bytes that the container has not.
    pub(super) unwritten: Option<Range<u64>>,
    /// Its length as it was last counted.
    pub(super) size: u64,
}

impl Member {
    pub(super) fn new(id: MemberId) -> Member {
        let body = Mutex::default();
        Member { id, is_real: AtomicBool::new(false), has_name: AtomicBool::new(true), body }
    }

    /// Holds its bytes; nothing if it is a real file by now.
    pub(crate) fn body(&self) -> Option<MutexGuard<'_, Body>> {
        let body = self.body.lock().unwrap_or_else(PoisonError::into_inner);
        (!self.is_real.load(Ordering::Acquire)).then_some(body)
    }

    /// A real file has its bytes; who comes after the holder of the body finds that.
    pub(super) fn become_real(&self) {
        self.is_real.store(true, Ordering::Release);
    }

    pub(crate) fn is_real(&self) -> bool {
        self.is_real.load(Ordering::Acquire)
    }

    pub(super) fn lose_name(&self) {
        self.has_name.store(false, Ordering::Release);
    }

    pub(super) fn has_name(&self) -> bool {
        self.has_name.load(Ordering::Acquire)
    }

    /// Memory has no names; programs see the one it has.
    pub(crate) fn shows_links(&self, stat: &mut Stat) {
        if !self.is_real() {
            stat.st_nlink = self.has_name().into();
        }
    }
}

impl Body {
    /// These bytes came.
    pub(super) fn came(&mut self, range: Range<u64>) {
        self.unwritten = Some(match self.unwritten.take() {
            Some(known) => known.start.min(range.start)..known.end.max(range.end),
            None => range,
        });
    }
}
