//! Signals that came while their thread was inside a file's lock: they are kept here, and sent again
//! as soon as the thread is out of it. There is room for a few; what does not fit is not kept.

use super::table;
use crate::system;
use libc::{c_int, siginfo_t};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Signals that came at a bad moment, with what the system told about each.
struct Kept {
    number: [AtomicI32; 8],
    thread: [AtomicI32; 8],
    info: UnsafeCell<[MaybeUninit<siginfo_t>; 8]>,
}

// SAFETY: an element of `info` belongs to the thread that reserved its number.
unsafe impl Sync for Kept {}

static KEPT: Kept = Kept {
    number: [const { AtomicI32::new(0) }; 8],
    thread: [const { AtomicI32::new(0) }; 8],
    info: UnsafeCell::new([const { MaybeUninit::uninit() }; 8]),
};

/// Keeps a signal for later; false when there is no room for one more.
///
/// # Safety
/// `info` is what the system told of the signal.
pub(super) unsafe fn keep(number: c_int, info: *const siginfo_t) -> bool {
    let free = (0..KEPT.number.len())
        .find(|&at| KEPT.number[at].compare_exchange(0, -1, Acquire, Relaxed).is_ok());
    let Some(at) = free else { return false };
    // SAFETY: the element was reserved just now; the system's structure is copied whole.
    unsafe { (*KEPT.info.get())[at].write(*info) };
    KEPT.thread[at].store(thread_number(), Relaxed);
    KEPT.number[at].store(number, Release);
    table::files().filter(|file| file.is_mine()).for_each(|file| file.late.call_back());
    true
}

/// Sends this thread the signals that came while it was inside.
#[cold]
pub(super) fn send_kept() {
    let (pid, thread) = (system::process_number(), thread_number());
    for at in 0..KEPT.number.len() {
        let number = KEPT.number[at].load(Acquire);
        if number <= 0 || KEPT.thread[at].load(Relaxed) != thread {
            continue;
        }
        // SAFETY: the element was filled before its number was set. It is free again once it is
        // copied: the handler may not come back.
        unsafe {
            let info = (*KEPT.info.get())[at].assume_init();
            KEPT.number[at].store(0, Release);
            let arguments =
                [pid as usize, thread as usize, number as usize, &raw const info as usize, 0, 0];
            let sent = system::raw(libc::SYS_rt_tgsigqueueinfo, arguments);
            // The system lets nobody pretend to be the kernel (timers, terminal): send it plainly.
            if sent != 0 {
                system::raw3(libc::SYS_tgkill, pid as usize, thread as usize, number as usize);
            }
        }
    }
}

/// The calling thread, as the system counts them.
pub(super) fn thread_number() -> i32 {
    // SAFETY: takes no arguments.
    unsafe { system::raw3(libc::SYS_gettid, 0, 0, 0) as i32 }
}
