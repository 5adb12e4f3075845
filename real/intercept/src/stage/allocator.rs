//! Memory for the strategies inside a stranger's process: never the program's `malloc`, which a
//! hook may have interrupted. Size classes on anonymous mappings behind a lock that knows its
//! owner; a signal handler that interrupted an allocation of its own thread gets a mapping of its
//! own instead. Allocation is rare here (opening a file, growing a map), so simplicity wins over
//! speed. When the system has no memory left, a reserve keeps the library going long enough to
//! give up in order (see `is_exhausted`).

use super::kernel;
use super::lock::Lock;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Classes of 16, 32, … bytes up to this; larger blocks are mappings of their own.
const CLASS_BYTES_MAX: usize = 32 << 10;
const CLASSES: usize = (CLASS_BYTES_MAX / 16).trailing_zeros() as usize + 1;
const CHUNK_BYTES: usize = 256 << 10;
const RESERVE_BYTES: usize = 256 << 10;

/// The allocator of the preloaded library.
#[cfg_attr(test, allow(dead_code, reason = "the tests run on the system's allocator"))]
pub(crate) struct Maps {
    lock: Lock,
    shelves: UnsafeCell<Shelves>,
    reserve: UnsafeCell<Reserve>,
    reserve_used: AtomicUsize,
    exhausted: AtomicBool,
}

#[repr(align(4096))]
struct Reserve {
    _bytes: [u8; RESERVE_BYTES],
}

struct Shelves {
    /// Freed blocks of each class, linked through their first word.
    free: [*mut u8; CLASSES],
    /// Unused rest of the chunk blocks are cut from.
    next: usize,
    end: usize,
}

// SAFETY: `shelves` is touched under `lock` only; `reserve` is handed out once, by `reserve_used`.
unsafe impl Sync for Maps {}

#[cfg_attr(test, allow(dead_code, reason = "the tests run on the system's allocator"))]
impl Maps {
    pub(crate) const fn new() -> Maps {
        Maps {
            lock: Lock::new(),
            shelves: UnsafeCell::new(Shelves { free: [null_mut(); CLASSES], next: 0, end: 0 }),
            reserve: UnsafeCell::new(Reserve { _bytes: [0; RESERVE_BYTES] }),
            reserve_used: AtomicUsize::new(0),
            exhausted: AtomicBool::new(false),
        }
    }

    /// Whether the system refused memory at some time: hold nothing back any more.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted.load(Ordering::Relaxed)
    }

    /// In a forked child: another thread may have been inside; what it was changing is given up.
    pub(crate) fn after_fork(&self) {
        // SAFETY: the child has this one thread, and it is not inside (it would be forking there).
        unsafe { *self.shelves.get() = Shelves { free: [null_mut(); CLASSES], next: 0, end: 0 } };
        self.lock.reset();
    }

    fn last_resort(&self, layout: Layout) -> *mut u8 {
        self.exhausted.store(true, Ordering::Relaxed);
        let align = layout.align().max(16);
        let bytes = layout.size() + align;
        let used = self.reserve_used.fetch_add(bytes, Ordering::Relaxed);
        if used + bytes > RESERVE_BYTES {
            return null_mut();
        }
        (self.reserve.get() as usize + used).next_multiple_of(align) as *mut u8
    }

    fn is_reserve(&self, block: *mut u8) -> bool {
        (block as usize).wrapping_sub(self.reserve.get() as usize) < RESERVE_BYTES
    }

    fn mapping(&self, layout: Layout) -> *mut u8 {
        match kernel::map(layout.size().next_multiple_of(4096)) {
            Some(block) if layout.align() <= 4096 => block,
            _ => self.last_resort(layout),
        }
    }
}

impl Shelves {
    /// A block of that class; null when the system has no memory.
    fn take(&mut self, class: usize) -> *mut u8 {
        let block = self.free[class];
        if !block.is_null() {
            // SAFETY: a freed block holds the link to the next one.
            self.free[class] = unsafe { block.cast::<*mut u8>().read() };
            return block;
        }
        let bytes = 16 << class;
        if self.end - self.next < bytes {
            let Some(chunk) = kernel::map(CHUNK_BYTES) else { return null_mut() };
            (self.next, self.end) = (chunk as usize, chunk as usize + CHUNK_BYTES);
        }
        self.next += bytes;
        (self.next - bytes) as *mut u8
    }

    /// # Safety
    /// `block` is of that class and no longer in use.
    unsafe fn put_back(&mut self, block: *mut u8, class: usize) {
        // SAFETY: the block is ours and at least 16 bytes.
        unsafe { block.cast::<*mut u8>().write(self.free[class]) };
        self.free[class] = block;
    }
}

/// The class a block belongs to; `None` for one with a mapping of its own. Blocks are aligned to
/// their size within a chunk only up to 16 bytes, so a larger alignment takes a mapping.
fn class_of(layout: Layout) -> Option<usize> {
    let bytes = layout.size().max(16).next_power_of_two();
    (bytes <= CLASS_BYTES_MAX && layout.align() <= 16)
        .then(|| (bytes / 16).trailing_zeros() as usize)
}

// SAFETY: every block is as large and aligned as its layout says, and handed to one owner.
unsafe impl GlobalAlloc for Maps {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(class) = class_of(layout) else { return self.mapping(layout) };
        if !self.lock.enter() {
            return kernel::map((16 << class).max(4096))
                .unwrap_or_else(|| self.last_resort(layout));
        }
        // SAFETY: under the lock.
        let block = unsafe { (*self.shelves.get()).take(class) };
        self.lock.leave();
        if block.is_null() { self.last_resort(layout) } else { block }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if self.is_reserve(block) {
            return;
        }
        let Some(class) = class_of(layout) else {
            // SAFETY: large blocks are mappings of their own.
            return unsafe { kernel::unmap(block, layout.size().next_multiple_of(4096)) };
        };
        // A handler that interrupted its own thread in here lets the block go rather than wait.
        if self.lock.enter() {
            // SAFETY: under the lock; the caller gives the block up.
            unsafe { (*self.shelves.get()).put_back(block, class) };
            self.lock.leave();
        }
    }
}

#[cfg(not(test))]
#[global_allocator]
static MEMORY: Maps = Maps::new();

/// Whether the system refused memory at some time: hold nothing back any more.
pub(super) fn is_exhausted() -> bool {
    #[cfg(not(test))]
    return MEMORY.is_exhausted();
    #[cfg(test)]
    false
}

/// In a forked child.
pub(super) fn after_fork() {
    #[cfg(not(test))]
    MEMORY.after_fork();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_distinct_and_used_again() {
        let maps = Maps::new();
        let layout = Layout::from_size_align(100, 16).unwrap();
        // SAFETY: blocks are used within their layout and given back once.
        unsafe {
            let blocks: Vec<_> = (0..1000).map(|_| maps.alloc(layout)).collect();
            for (i, block) in blocks.iter().enumerate() {
                assert_eq!(*block as usize % 16, 0);
                block.write_bytes(i as u8, 100);
            }
            for (i, block) in blocks.iter().enumerate() {
                assert_eq!(block.add(99).read(), i as u8);
                maps.dealloc(*block, layout);
            }
            assert_eq!(maps.alloc(layout), blocks[999]);
        }
    }

    #[test]
    fn an_allocation_inside_an_allocation_of_the_same_thread_does_not_wait_for_itself() {
        let maps = Maps::new();
        assert!(maps.lock.enter());
        let layout = Layout::from_size_align(40, 8).unwrap();
        // SAFETY: the block is used within its layout and given back once.
        unsafe {
            let block = maps.alloc(layout);
            block.write_bytes(7, 40);
            maps.dealloc(block, layout);
        }
        maps.lock.leave();
    }

    #[test]
    fn a_large_block_is_a_mapping_of_its_own() {
        let maps = Maps::new();
        let layout = Layout::from_size_align(1 << 20, 64).unwrap();
        // SAFETY: the block is used within its layout and given back once.
        unsafe {
            let block = maps.alloc(layout);
            assert_eq!(block as usize % 4096, 0);
            block.add((1 << 20) - 1).write(1);
            maps.dealloc(block, layout);
        }
    }
}
