//! The two clocks: the processor's counter (9 ns) and `CLOCK_MONOTONIC` (20 ns).
//!
//! The counter is stored raw; readings of both clocks taken together let the finisher turn it into
//! nanoseconds.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static COUNTER: AtomicBool = AtomicBool::new(true);

/// Chooses the clock, once at start: the counter only where it ticks at one rate on all cores.
pub(super) fn choose(counter: bool) {
    COUNTER.store(counter, Ordering::Relaxed);
}

/// The time in units of the chosen clock.
#[inline(always)]
pub(crate) fn now() -> u64 {
    if COUNTER.load(Ordering::Relaxed) {
        iolab_processor::counter()
    } else {
        nanoseconds(libc::CLOCK_MONOTONIC)
    }
}

/// A clock of the system, by the page the kernel shares (no system call).
pub(super) fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: filled by the call, which cannot fail for these clocks.
    unsafe {
        libc::clock_gettime(clock, time.as_mut_ptr());
        let time = time.assume_init();
        // A clock that was set to before 1970 has no time since then.
        let seconds = time.tv_sec.max(0) as u64;
        seconds.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
    }
}

/// Stores the three clocks, read together.
pub(super) fn calibrate<'a>(word: impl Fn(usize) -> &'a AtomicU64) {
    word(0).store(now(), Ordering::Relaxed);
    word(1).store(nanoseconds(libc::CLOCK_MONOTONIC), Ordering::Relaxed);
    word(2).store(nanoseconds(libc::CLOCK_REALTIME), Ordering::Relaxed);
}
