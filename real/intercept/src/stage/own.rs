//! Descriptors of the stage's own: one for each staged description, so that nothing the program
//! does to its numbers cuts the stage off from the file. A stack that only passes calls has no use for one, and
//! a second descriptor makes the kernel lock the file position at each call: there the program's only descriptor stands in.
//!
//! They stand above the program's limit where the system allows it, so that the program can open as
//! many files as without us. Where the limit is the highest there is (`ulimit -n` sets it so), they stand in
//! the upper half below it, and go when the program comes near: its files pass from then on. The program cannot close them or put something else in their place:
//! for it they are not there. They are closed only together with the program's own last descriptor
//! of the description: closing any descriptor of a file drops the process's POSIX locks on it.

use super::kernel::{self, system_call};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::Relaxed};

/// As many as there are descriptions.
const ROOM: usize = 8_192;
/// A table of descriptors is as long as its largest number is high: 8 bytes each.
const HIGHEST: u64 = 49_152;

static OWN: [AtomicI32; ROOM] = [const { AtomicI32::new(0) }; ROOM];
/// No own descriptor is below this number.
static LOWEST: AtomicI32 = AtomicI32::new(c_int::MAX);
/// Places of `OWN` below this one have been used.
static USED: AtomicU32 = AtomicU32::new(0);

/// From this number on some may stand among those the program may use: its limit is the highest there is.
static LOWEST_AMONG: AtomicI32 = AtomicI32::new(c_int::MAX);
/// The program needs their numbers: none is taken any more.
static GIVEN_BACK: AtomicBool = AtomicBool::new(false);
/// The process has locked a part of a file that was not staged by then. To close a descriptor of that file
/// would unlock it, so none is closed.
static LOCKED: AtomicBool = AtomicBool::new(false);

/// Whether the program, which was just given the number `fd`, comes near to those of the stage's own.
#[inline]
pub(super) fn are_near(fd: c_int) -> bool {
    let lowest = LOWEST_AMONG.load(Relaxed);
    fd >= lowest - lowest / 4
}

/// Whether the program has their numbers.
#[inline]
pub(super) fn are_given_back() -> bool {
    GIVEN_BACK.load(Relaxed)
}

/// Takes no more from here on. True for the one call after which those there are have to be closed: they
/// stand among the program's, and to close them unlocks nothing.
pub(super) fn give_back() -> bool {
    LOWEST_AMONG.load(Relaxed) != c_int::MAX
        && !LOCKED.load(Relaxed)
        && !GIVEN_BACK.swap(true, Relaxed)
}

/// The process locks a part of a file that is not staged.
pub(super) fn note_lock() {
    LOCKED.store(true, Relaxed);
}

/// A second descriptor for the description of `fd`, out of the program's way; `None` when the
/// system has none. The caller is inside the tables.
pub(super) fn descriptor(fd: c_int) -> Option<c_int> {
    let limits = kernel::limits(libc::RLIMIT_NOFILE)?;
    let soft = limits.rlim_cur;
    let own = if soft < limits.rlim_max && soft <= HIGHEST {
        above_limit(fd, limits)
    } else {
        let lowest = soft.min(HIGHEST).saturating_sub(ROOM as u64).max(soft.min(HIGHEST) / 2);
        LOWEST_AMONG.fetch_min(lowest as c_int, Relaxed);
        // Where the limit is very low the program is there at once, and finds each number it expects.
        (!are_near(fd)).then(|| duplicate(fd, lowest)).flatten()
    }?;
    let place = OWN.iter().position(|number| {
        number.load(Relaxed) == 0 && number.compare_exchange(0, own, Relaxed, Relaxed).is_ok()
    });
    let Some(place) = place else {
        kernel::close(own);
        return None;
    };
    USED.fetch_max(place as u32 + 1, Relaxed);
    LOWEST.fetch_min(own, Relaxed);
    Some(own)
}

/// The limit is raised for the length of one call. A program that sets it at that very moment finds
/// its own value: ours is put back only if it still stands.
fn above_limit(fd: c_int, limits: libc::rlimit64) -> Option<c_int> {
    let raised_to = limits.rlim_max.min(limits.rlim_cur + ROOM as u64);
    let raised = libc::rlimit64 { rlim_cur: raised_to, rlim_max: limits.rlim_max };
    set_limits(&raised)?;
    let own = duplicate(fd, limits.rlim_cur);
    let found = set_limits(&limits);
    if let Some(found) = found.filter(|found| found.rlim_cur != raised_to) {
        set_limits(&found);
    }
    own
}

/// Sets the limits; the answer is what they were.
fn set_limits(limits: &libc::rlimit64) -> Option<libc::rlimit64> {
    let mut before = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    let new = &raw const *limits;
    // SAFETY: both structures live through the call.
    let done = unsafe { system_call!(SYS_prlimit64, 0, libc::RLIMIT_NOFILE, new, &raw mut before) };
    (done == 0).then_some(before)
}

fn duplicate(fd: c_int, lowest: u64) -> Option<c_int> {
    // SAFETY: no memory is involved.
    let own = unsafe { system_call!(SYS_fcntl, fd, libc::F_DUPFD_CLOEXEC, lowest) };
    (own >= 0).then_some(own as c_int)
}

/// Whether the number is one the program does not know of.
#[inline(always)]
pub(super) fn is_own(fd: c_int) -> bool {
    fd >= LOWEST.load(Relaxed) && numbers().any(|own| own == fd)
}

fn numbers() -> impl Iterator<Item = c_int> {
    let used = USED.load(Relaxed) as usize;
    OWN[..used].iter().map(|number| number.load(Relaxed)).filter(|&number| number > 0)
}

/// Gives one up.
pub(super) fn close(own: c_int) {
    if let Some(number) = OWN.iter().find(|number| number.load(Relaxed) == own) {
        number.store(0, Relaxed);
        kernel::close(own);
    }
}

/// Closes a range of the program's descriptors as the system does, but for ours.
pub(super) fn close_range(first: u32, last: u32, flags: u32) -> isize {
    let mut from = first;
    loop {
        let next = numbers().map(|own| own as u32).filter(|&own| own >= from && own <= last).min();
        let to = match next {
            Some(own) if own == from => {
                from += 1;
                if from > last {
                    return 0;
                }
                continue;
            }
            Some(own) => own - 1,
            None => last,
        };
        // SAFETY: closes what the program asked to close.
        let result = unsafe { system_call!(SYS_close_range, from, to, flags) };
        if result < 0 || to == last {
            return result;
        }
        from = to + 1;
    }
}

/// In a forked child: these copies are of no use.
pub(super) fn after_fork() {
    for number in &OWN[..USED.load(Relaxed) as usize] {
        let own = number.swap(0, Relaxed);
        if own > 0 {
            kernel::close(own);
        }
    }
    LOWEST.store(c_int::MAX, Relaxed);
}
