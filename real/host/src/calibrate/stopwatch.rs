//! Timing of many short repetitions: batches, processor and elapsed time, medians.
//!
//! The machine may be busy with other things, so elapsed time lies; what a call costs is taken
//! from the thread's processor clock, and only what waits (a sync, a cold read, a new process)
//! from the wall clock.

use std::io;
use std::time::Instant;

/// Which clock counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    /// Processor time of this thread.
    Processor,
    /// Elapsed time.
    Wall,
}

/// What a batch is timed with; only what happens between `start` and `stop` counts.
pub(super) struct Stopwatch {
    counting: Counting,
    started_ns: u64,
    origin: Instant,
    counted_ns: u64,
}

impl Stopwatch {
    fn new(counting: Counting) -> Stopwatch {
        Stopwatch { counting, started_ns: 0, origin: Instant::now(), counted_ns: 0 }
    }

    fn now_ns(&self) -> u64 {
        match self.counting {
            Counting::Processor => thread_processor_ns(),
            Counting::Wall => self.origin.elapsed().as_nanos() as u64,
        }
    }

    pub(super) fn start(&mut self) {
        self.started_ns = self.now_ns();
    }

    pub(super) fn stop(&mut self) {
        self.counted_ns += self.now_ns() - self.started_ns;
    }
}

/// Processor time of the calling thread so far.
pub(super) fn thread_processor_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of this frame, and this clock always exists on Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A measured cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    /// Median over batches, nanoseconds per call.
    pub(super) cost_ns: f64,
    /// Half the distance between the quartiles, relative to the median.
    pub(super) spread: f64,
}

/// Times `batches` batches; `batch` does one and tells how many calls it made.
pub(super) fn sample(
    counting: Counting,
    batches: usize,
    mut batch: impl FnMut(&mut Stopwatch) -> io::Result<u64>,
) -> io::Result<Sample> {
    let mut costs = Vec::with_capacity(batches);
    for _ in 0..batches {
        let mut stopwatch = Stopwatch::new(counting);
        let calls = batch(&mut stopwatch)?;
        costs.push(stopwatch.counted_ns as f64 / calls.max(1) as f64);
    }
    Ok(summary(costs))
}

/// Median and quartile spread.
pub(super) fn summary(mut costs: Vec<f64>) -> Sample {
    costs.sort_by(f64::total_cmp);
    let quantile = |share: f64| costs[((costs.len() - 1) as f64 * share).round() as usize];
    let cost_ns = quantile(0.5);
    let spread = (quantile(0.75) - quantile(0.25)) / 2.0 / cost_ns.max(1e-9);
    Sample { cost_ns, spread }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_disturbed_batch_does_not_move_the_summary() {
        let quiet = summary(vec![10.0, 11.0, 9.0, 10.0, 10.0]);
        let disturbed = summary(vec![10.0, 11.0, 9.0, 10.0, 9000.0]);
        assert_eq!(quiet.cost_ns, 10.0);
        assert_eq!(disturbed.cost_ns, 10.0);
        assert!(disturbed.spread < 0.1);
    }

    #[test]
    fn only_what_lies_between_start_and_stop_counts() {
        let sample = sample(Counting::Wall, 3, |stopwatch| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            stopwatch.start();
            stopwatch.stop();
            Ok(1)
        });
        assert!(sample.unwrap().cost_ns < 10e6);
    }
}
