//! What makes an inode a member: its bytes in memory, and what of them the container has not.

use super::older::Origin;
use iolab_policy::insitu::defer_close::MemberId;
use iolab_processor::page_bytes;
use rustix::fs::Stat;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a block as `stat` counts them.
const BLOCK_BYTES: u64 = 512;

/// A file that is, or was, a member.
pub(crate) struct Member {
    pub(super) id: MemberId,
    /// Where its bytes are, if an earlier run has left it.
    pub(super) origin: Option<Arc<Origin>>,
    /// It is no more what its origin says.
    is_changed: AtomicBool,
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
    /// Its bytes are not in memory, but where they came from.
    pub(super) is_absent: bool,
}

impl Member {
    pub(super) fn new(id: MemberId) -> Member {
        let (is_real, has_name) = (AtomicBool::new(false), AtomicBool::new(true));
        let is_changed = AtomicBool::new(true);
        Member { id, origin: None, is_changed, is_real, has_name, body: Mutex::default() }
    }

    /// One that an earlier run has left.
    pub(super) fn of_older(id: MemberId, origin: Arc<Origin>) -> Member {
        let body = Body { is_absent: true, ..Body::default() };
        let (is_changed, body) = (AtomicBool::new(false), Mutex::new(body));
        Member { origin: Some(origin), is_changed, body, ..Member::new(id) }
    }

    /// Something about it changes.
    pub(super) fn changes(&self) {
        self.is_changed.store(true, Ordering::Release);
    }

    /// Whether it is what an earlier run has left.
    pub(super) fn is_unchanged(&self) -> bool {
        !self.is_changed.load(Ordering::Acquire) && !self.is_real()
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

    /// Memory has no names; programs see the one it has. Nor do they see when its bytes came into memory.
    pub(crate) fn shows(&self, stat: &mut Stat) {
        if !self.is_real() {
            stat.st_nlink = self.has_name().into();
        }
        if self.is_unchanged() {
            (stat.st_ctime, stat.st_ctime_nsec) = (stat.st_mtime, stat.st_mtime_nsec);
            // Memory comes in whole pages.
            let bytes = (stat.st_size as u64).next_multiple_of(page_bytes() as u64);
            stat.st_blocks = (bytes / BLOCK_BYTES) as i64;
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
