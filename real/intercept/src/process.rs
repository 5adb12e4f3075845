//! Which process this is: the one the state in memory belongs to, a forked copy, or a vfork child
//! that borrows the memory.
//!
//! A page that the kernel wipes in forked children (`MADV_WIPEONFORK`) holds a mark: zero means
//! "new process, nothing set up yet", also after a raw `clone`. Reading it costs one load.
//! A vfork child shares even that page; there only the process number tells.

use crate::system;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

static BEFORE_START: AtomicU32 = AtomicU32::new(1);
static MARK: AtomicPtr<AtomicU32> = AtomicPtr::new(&raw const BEFORE_START as *mut AtomicU32);
static NUMBER: AtomicU32 = AtomicU32::new(0);

fn mark() -> &'static AtomicU32 {
    // SAFETY: points to a static or to a page that is never unmapped.
    unsafe { &*MARK.load(Ordering::Relaxed) }
}

/// Sets the mark up; called once at start.
pub(crate) fn start() {
    NUMBER.store(system::process_number(), Ordering::Relaxed);
    // SAFETY: a fresh anonymous page; advice on it cannot harm.
    unsafe {
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let page = system::raw(libc::SYS_mmap, [0, 4096, protection, flags, usize::MAX, 0]);
        if !(-4095..0).contains(&page) {
            let advice = libc::MADV_WIPEONFORK as usize;
            system::raw3(libc::SYS_madvise, page as usize, 4096, advice);
            (*(page as *const AtomicU32)).store(1, Ordering::Relaxed);
            MARK.store(page as *mut AtomicU32, Ordering::Relaxed);
        }
    }
}

/// Whether this is a forked child in which nothing was set up yet.
#[inline(always)]
pub(crate) fn is_new() -> bool {
    mark().load(Ordering::Relaxed) == 0
}

/// Takes note that this is a process of its own.
pub(crate) fn settle() {
    NUMBER.store(system::process_number(), Ordering::Relaxed);
    mark().store(1, Ordering::Relaxed);
}

/// Number of the process the state belongs to.
pub(crate) fn number() -> u32 {
    NUMBER.load(Ordering::Relaxed)
}

/// Whether the caller is the process the state belongs to, and not a vfork child on borrowed
/// memory whose opens and closes are not ours. Sets a forked child up first. One system call:
/// for opens and closes, not for transfers.
pub(crate) fn owns_state() -> bool {
    if is_new() {
        crate::hook::process::enter_child();
    }
    number() == system::process_number() || number() == 0
}
