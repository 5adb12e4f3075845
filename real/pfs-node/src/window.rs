//! Windows: memory that both ends of a connection have mapped, for payload.
//!
//! A server makes it, as a memory file that is sealed: nobody can cut off what the other is about to touch.
//! Who asks maps what it is given only if it is sealed and as large as was said. Pages are had before they
//! are touched, so that no memory is an answer and not a signal. What lies in a window may change at any
//! moment: bytes are copied out of it and in, and nothing is decided by them.
//!
//! Costs: address space; a page when it is used first. All windows of a node together have a budget. A forked
//! child does not have its parent's.

use iolab_pfs::window::{Slot, Slots, Window as Shape};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use rustix::process::Resource;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is had at once when some of it is touched first.
const CHUNK_BYTES: u64 = 64 << 10;
/// Which part of the host's memory the windows of a node may have.
const MEMORY_SHARE: u64 = 8;

/// Where address space is limited, a window takes at most this part of it: the program needs the rest, and may
/// have a window with each of dozens of servers.
const ADDRESS_SHARE: u64 = 256;

/// What is left for windows of all servers of a node.
#[derive(Debug)]
pub(crate) struct Budget(AtomicU64);

impl Budget {
    /// So many bytes; if nothing is said, an eighth of the memory of this host.
    pub(crate) fn of(bytes: Option<u64>) -> Arc<Budget> {
        let bytes = bytes.unwrap_or_else(|| {
            let host = rustix::system::sysinfo();
            (host.totalram as u64).saturating_mul(host.mem_unit.into()) / MEMORY_SHARE
        });
        Arc::new(Budget(AtomicU64::new(bytes)))
    }

    /// Takes what the next window has of it.
    fn share(self: &Arc<Budget>) -> Option<(Shape, Share)> {
        let mut shape = None;
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            shape = Shape::within(left);
            shape.map(|shape| left - shape.bytes())
        });
        taken.ok()?;
        let shape = shape?;
        Some((shape, Share { budget: self.clone(), bytes: shape.bytes() }))
    }
}

/// What a window has of the budget, until it goes.
#[derive(Debug)]
struct Share {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// The window of a connection, as one of its ends has it.
pub(crate) struct Window {
    memory: NonNull<u8>,
    shape: Shape,
    /// What requests have taken; on the side that serves, nothing.
    slots: Mutex<Slots>,
    /// Which chunks this process has.
    chunks: Box<[AtomicBool]>,
    _share: Option<Share>,
}

// SAFETY: a mapping belongs to the process. Bytes of it are used through stretches only; those of one
// side do not overlap, but where a peer wants it so, and then only one after the other.
unsafe impl Send for Window {}
// SAFETY: as above.
unsafe impl Sync for Window {}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl Window {
    /// A new one, and its descriptor for the other side; none if there is no room for more, or if this
    /// system has no such memory.
    pub(crate) fn make(budget: &Arc<Budget>) -> Option<(Arc<Window>, OwnedFd)> {
        let (shape, share) = budget.share()?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("iolab window", flags).ok()?;
        rustix::fs::ftruncate(&file, shape.bytes()).ok()?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&file, seals).ok()?;
        let window = Window::map(&file, shape, Some(share))?;
        Some((Arc::new(window), file))
    }

    /// That of the other side, if it is one and this process has room for it.
    pub(crate) fn receive(file: &OwnedFd, shape: Shape) -> Option<Arc<Window>> {
        let limit = rustix::process::getrlimit(Resource::As).current.unwrap_or(u64::MAX);
        if shape.bytes() > limit / ADDRESS_SHARE {
            return None;
        }
        let seals = rustix::fs::fcntl_get_seals(file).ok()?;
        let size = rustix::fs::fstat(file).ok()?.st_size;
        let is_whole = seals.contains(SealFlags::SHRINK) && size as u64 >= shape.bytes();
        is_whole.then(|| Window::map(file, shape, None).map(Arc::new)).flatten()
    }

    fn map(file: impl AsFd, shape: Shape, share: Option<Share>) -> Option<Window> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let (length, anywhere) = (shape.bytes() as usize, std::ptr::null_mut());
        // SAFETY: a new mapping at an address of the kernel's choice.
        let memory =
            unsafe { rustix::mm::mmap(anywhere, length, access, MapFlags::SHARED, file, 0) };
        let memory = NonNull::<u8>::new(memory.ok()?.cast())?;
        // SAFETY: the mapping that was just made.
        let _ =
            unsafe { rustix::mm::madvise(memory.as_ptr().cast(), length, Advice::LinuxDontFork) };
        let chunks = (0..shape.bytes().div_ceil(CHUNK_BYTES)).map(|_| AtomicBool::new(false));
        let slots = Mutex::new(Slots::of(shape));
        Some(Window { memory, shape, slots, chunks: chunks.collect(), _share: share })
    }

    /// Its size and slots.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a slot for so many bytes, until the answer goes; none if none is free.
    pub(crate) fn take(self: &Arc<Window>, bytes: u32) -> Option<Stretch> {
        let slot = self.slots().take(bytes)?;
        let stretch = Stretch { window: self.clone(), slot, bytes };
        // Otherwise it is given back here.
        self.has(slot).then_some(stretch)
    }

    /// What is in a slot that the other side has taken, if there is memory for it.
    pub(crate) fn stretch(self: &Arc<Window>, slot: Slot) -> Option<Stretch> {
        let is_there = self.shape.holds(slot) && self.has(slot);
        is_there.then(|| Stretch { window: self.clone(), slot, bytes: slot.bytes })
    }

    /// Has the pages of a slot at hand, all that are touched for the first time together.
    fn has(&self, slot: Slot) -> bool {
        let (first, end) = (slot.offset / CHUNK_BYTES, slot.end().div_ceil(CHUNK_BYTES));
        let chunks = &self.chunks[first as usize..end as usize];
        if chunks.iter().all(|chunk| chunk.load(Ordering::Relaxed)) {
            return true;
        }
        let (from, to) = (first * CHUNK_BYTES, (end * CHUNK_BYTES).min(self.shape.bytes()));
        // SAFETY: pages of this mapping; what they hold stays as it is.
        let had = unsafe {
            let from_here = self.memory.as_ptr().add(from as usize).cast();
            rustix::mm::madvise(from_here, (to - from) as usize, Advice::LinuxPopulateWrite)
        };
        // Kernels before 5.14 do not know it: pages then come when they are touched.
        let has = matches!(had, Ok(()) | Err(Errno::INVAL));
        if has {
            chunks.iter().for_each(|chunk| chunk.store(true, Ordering::Relaxed));
        }
        has
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        let length = self.shape.bytes() as usize;
        // SAFETY: mapped with that length; stretches of it keep it from being dropped.
        let _ = unsafe { rustix::mm::munmap(self.memory.as_ptr().cast(), length) };
    }
}

/// Bytes of payload in a window; the slot is free again when this goes.
#[derive(Debug)]
pub(crate) struct Stretch {
    window: Arc<Window>,
    slot: Slot,
    bytes: u32,
}

impl Stretch {
    /// Where it is.
    pub(crate) fn slot(&self) -> Slot {
        Slot { bytes: self.bytes, ..self.slot }
    }

    /// Whether it is in that window.
    pub(crate) fn is_in(&self, window: &Arc<Window>) -> bool {
        Arc::ptr_eq(&self.window, window)
    }

    /// Only the front of it, up to there.
    pub(crate) fn front(self, bytes: u32) -> Option<Stretch> {
        (bytes <= self.bytes).then(|| {
            let mut stretch = self;
            stretch.bytes = bytes;
            stretch
        })
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: all of it is in the mapping, which lives as long as this, and the pages are there. The
        // other side may change bytes meanwhile: they are only copied from here.
        unsafe { std::slice::from_raw_parts(self.first(), self.bytes as usize) }
    }

    /// Its bytes, to be filled.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; they are only copied to.
        unsafe { std::slice::from_raw_parts_mut(self.first(), self.bytes as usize) }
    }

    fn first(&self) -> *mut u8 {
        // SAFETY: the first byte of a slot is in the mapping.
        unsafe { self.window.memory.as_ptr().add(self.slot.offset as usize) }
    }
}

impl Drop for Stretch {
    fn drop(&mut self) {
        self.window.slots().give_back(self.slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_see_the_same_bytes_and_a_slot_is_free_when_its_stretch_goes() {
        let budget = Budget::of(Some(100 << 20));
        let (near, file) = Window::make(&budget).unwrap();
        let far = Window::receive(&file, near.shape()).unwrap();
        let mut first = far.take(300_000).unwrap();
        let second = far.take(10).unwrap();
        assert_eq!((first.slot().offset, second.slot().offset), (0, 512 << 10));
        first.bytes_mut().fill(7);
        let seen = near.stretch(first.slot()).unwrap();
        assert!(seen.bytes() == [7; 300_000] && seen.is_in(&near) && !seen.is_in(&far));
        drop(first.front(5));
        assert_eq!(far.take(1).unwrap().slot().offset, 0);
        assert!(near.stretch(Slot { offset: near.shape().bytes() - 1, bytes: 2 }).is_none());
    }

    #[test]
    fn what_can_be_cut_off_or_is_too_short_is_no_window() {
        let shape = Shape::new(2, 4096).unwrap();
        let file = |bytes, seals| {
            let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
            let file = rustix::fs::memfd_create("test", flags).unwrap();
            rustix::fs::ftruncate(&file, bytes).unwrap();
            rustix::fs::fcntl_add_seals(&file, seals).unwrap();
            Window::receive(&file, shape).is_some()
        };
        assert!(file(8192, SealFlags::SHRINK));
        assert!(!file(8192, SealFlags::empty()));
        assert!(!file(8192, SealFlags::GROW));
        assert!(!file(8191, SealFlags::SHRINK));
        let plain = tempfile::tempfile().unwrap();
        plain.set_len(8192).unwrap();
        assert!(Window::receive(&plain.into(), shape).is_none());
    }

    #[test]
    fn nobody_can_cut_off_a_window_that_was_made_here() {
        let (window, file) = Window::make(&Budget::of(None)).unwrap();
        for bytes in [0, window.shape().bytes() - 1, window.shape().bytes() + 1] {
            assert_eq!(rustix::fs::ftruncate(&file, bytes), Err(Errno::PERM));
        }
        assert!(rustix::fs::fcntl_add_seals(&file, SealFlags::WRITE).is_err());
    }

    #[test]
    fn windows_together_have_no_more_than_their_budget_and_give_it_back() {
        let slot = u64::from(iolab_pfs::window::SLOT_BYTES);
        let budget = Budget::of(Some(3 * slot + 5));
        let all: Vec<_> = std::iter::from_fn(|| Window::make(&budget)).collect();
        assert_eq!(all.len(), 3);
        drop(all);
        assert_eq!(budget.0.load(Ordering::Relaxed), 3 * slot + 5);
        assert!(Window::make(&Budget::of(Some(0))).is_none());
    }
}
