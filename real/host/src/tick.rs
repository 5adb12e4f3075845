//! Time stamps for single operations: the processor's counter where it is steady, else the clock.
//!
//! A stamp costs about 9 ns with the counter and 20 ns with CLOCK_MONOTONIC. Whether the counter is
//! steady is not believed but measured: over two windows its rate against CLOCK_MONOTONIC must
//! agree within 0.1 %, else the clock itself is used.

use iolab_processor::{COUNTER_NAME, counter};
use std::time::{Duration, Instant};

/// A source of stamps with the factor that turns their differences into nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct TickClock {
    /// Nanoseconds per tick, in units of 2⁻³².
    scale: u64,
    counter: bool,
}

impl TickClock {
    /// Measures the counter against the clock for `window` twice and chooses.
    pub fn calibrate(window: Duration) -> TickClock {
        let rates = (measure(window), measure(window));
        match rates {
            (Some(first), Some(second)) if (first / second - 1.0).abs() < 1e-3 => {
                let scale = (f64::midpoint(first, second) * 4_294_967_296.0) as u64;
                TickClock { scale, counter: true }
            }
            _ => TickClock { scale: 1 << 32, counter: false },
        }
    }

    /// A stamp. Only differences of stamps of one clock mean anything.
    #[inline(always)]
    pub fn stamp(&self) -> u64 {
        if self.counter { counter() } else { monotonic() }
    }

    /// The nanoseconds between two stamps.
    #[inline(always)]
    pub fn nanos(&self, from: u64, to: u64) -> u64 {
        ((u128::from(to.saturating_sub(from)) * u128::from(self.scale)) >> 32) as u64
    }

    /// How many ticks a duration has.
    pub fn ticks(&self, duration: Duration) -> u64 {
        let nanos = duration.as_nanos().min(u128::from(u64::MAX));
        ((nanos << 32) / u128::from(self.scale.max(1))) as u64
    }

    /// Which source it is, for the result.
    pub fn source(&self) -> &'static str {
        if self.counter { COUNTER_NAME } else { "CLOCK_MONOTONIC" }
    }

    /// What one stamp costs, in nanoseconds: the smallest of some batches.
    pub fn cost(&self) -> f64 {
        const BATCH: u32 = 1000;
        let batch = || {
            let start = Instant::now();
            for _ in 0..BATCH {
                std::hint::black_box(self.stamp());
            }
            start.elapsed().as_nanos() as f64 / f64::from(BATCH)
        };
        (0..8).map(|_| batch()).fold(f64::MAX, f64::min)
    }
}

/// Nanoseconds per tick over one window, if there is a counter that moves.
fn measure(window: Duration) -> Option<f64> {
    let (start, first) = (Instant::now(), counter());
    while start.elapsed() < window {
        std::hint::spin_loop();
    }
    let (last, elapsed) = (counter(), start.elapsed());
    (last > first).then(|| elapsed.as_nanos() as f64 / (last - first) as f64)
}

/// CLOCK_MONOTONIC in nanoseconds.
#[inline]
pub fn monotonic() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec, which lives on this stack.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time of this process, user and system, in nanoseconds.
pub fn cpu_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as in `monotonic`.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_never_run_backwards_and_a_duration_survives_the_round_trip() {
        let clock = TickClock::calibrate(Duration::from_millis(2));
        let stamps: Vec<_> = (0..1000).map(|_| clock.stamp()).collect();
        assert!(stamps.is_sorted(), "{}", clock.source());
        let second = clock.nanos(0, clock.ticks(Duration::from_secs(1)));
        assert!(second.abs_diff(1_000_000_000) < 1000, "{second}");
    }
}
