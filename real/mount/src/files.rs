//! What processes have open, by the number the kernel calls it.

use crate::members::Snapshot;
use crate::tree::{Answer, Inode};
use iolab_policy::insitu::{Access, Handle};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// An open file.
pub(crate) struct OpenFile {
    pub(crate) inode: Arc<Inode>,
    pub(crate) fd: Arc<OwnedFd>,
    pub(crate) access: Access,
    /// What its stack calls it.
    pub(crate) handle: Option<Handle>,
    /// What a recording calls it; 0 before it was told of.
    pub(crate) told: AtomicU32,
    /// The thread that opened it.
    pub(crate) opener: u32,
}

/// An open directory; its position is that of the request under way.
pub(crate) struct OpenDirectory {
    pub(crate) inode: Arc<Inode>,
    pub(crate) fd: Mutex<OwnedFd>,
    /// The members it had when its listing began.
    pub(crate) members: Mutex<Snapshot>,
}

/// Things by number.
pub(crate) struct Numbered<T> {
    next: AtomicU64,
    things: RwLock<HashMap<u64, Arc<T>>>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Numbered<T> {
        Numbered { next: AtomicU64::new(1), things: RwLock::default() }
    }
}

impl<T> Numbered<T> {
    pub(crate) fn insert(&self, thing: T) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut things = self.things.write().unwrap_or_else(PoisonError::into_inner);
        things.insert(number, Arc::new(thing));
        number
    }

    pub(crate) fn get(&self, number: u64) -> Answer<Arc<T>> {
        let things = self.things.read().unwrap_or_else(PoisonError::into_inner);
        things.get(&number).cloned().ok_or(Errno::BADF)
    }

    pub(crate) fn remove(&self, number: u64) -> Option<Arc<T>> {
        let mut things = self.things.write().unwrap_or_else(PoisonError::into_inner);
        things.remove(&number)
    }

    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.things.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.things.read().unwrap_or_else(PoisonError::into_inner).len()
    }
}
