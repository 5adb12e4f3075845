//! Timing of many short repetitions: batches, processor and elapsed time, medians.
//!
//! The machine may be busy with other things, so elapsed time lies; what a call costs is taken
//! from the thread's processor clock as long as the calls do not sleep. Where they do, since another
//! machine, a device or a server of files answers them, elapsed time counts, without what the thread
//! waited for a processor. Slow calls make fewer and shorter batches.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

/// Which clock counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    /// Processor time of this thread, and the time that it sleeps.
    Call,
    /// Elapsed time.
    Wall,
}

/// What a batch is timed with; only what happens between `start` and `stop` counts.
pub(super) struct Stopwatch {
    counting: Counting,
    started: Reading,
    counted_ns: u64,
}

impl Stopwatch {
    fn new(counting: Counting) -> Stopwatch {
        Stopwatch { counting, started: Reading::first(), counted_ns: 0 }
    }

    pub(super) fn start(&mut self) {
        self.started = Reading::first();
    }

    pub(super) fn stop(&mut self) {
        self.counted_ns += self.started.until_now_ns(self.counting);
    }
}

/// What the clocks and counters of a thread say at one moment.
struct Reading {
    elapsed: Instant,
    processor_ns: u64,
    sleeps: u64,
    queued_ns: u64,
}

impl Reading {
    /// Clocks last, so that reading the counters is not timed.
    fn first() -> Reading {
        let (sleeps, queued_ns) = (sleeps(), queued_ns());
        Reading { sleeps, queued_ns, elapsed: Instant::now(), processor_ns: thread_processor_ns() }
    }

    /// What counts of the time since this reading.
    fn until_now_ns(&self, counting: Counting) -> u64 {
        let processor_ns = thread_processor_ns() - self.processor_ns;
        let elapsed_ns = self.elapsed.elapsed().as_nanos() as u64;
        match counting {
            Counting::Wall => elapsed_ns,
            Counting::Call if sleeps() == self.sleeps => processor_ns,
            Counting::Call => {
                elapsed_ns.saturating_sub(queued_ns() - self.queued_ns).max(processor_ns)
            }
        }
    }
}

/// Processor time of the calling thread so far.
pub(super) fn thread_processor_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of this frame, and this clock always exists on Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// How often the calling thread gave its processor up, to wait for something.
fn sleeps() -> u64 {
    // SAFETY: an rusage is numbers only, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to an rusage of this frame.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
    usage.ru_nvcsw as u64
}

/// How long the calling thread was ready to run and had no processor; 0 where the kernel does not tell.
fn queued_ns() -> u64 {
    let told = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// A measured cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    /// Median over batches, nanoseconds per call.
    pub(super) cost_ns: f64,
    /// Half the distance between the quartiles, relative to the median.
    pub(super) spread: f64,
}

/// How much is done for one cost, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Effort {
    pub(super) batches: u64,
    /// Calls of a batch.
    pub(super) calls: u64,
}

impl Effort {
    /// Calls of one cost take about this long together, or as long as three of them.
    const BUDGET: Duration = Duration::from_millis(100);
    const LEAST_BATCHES: u64 = 3;
    /// So many calls tell what one costs, where the first of them was slow.
    const TRIAL_CALLS: u64 = 16;

    pub(super) fn new(batches: u64, calls: u64) -> Effort {
        Effort { batches, calls }
    }

    /// What fits into the budget when a call takes so long.
    fn within_budget(self, call: Duration) -> Effort {
        let affordable = (Self::BUDGET.as_nanos() / call.as_nanos().max(1)) as u64;
        let batches = affordable.clamp(Self::LEAST_BATCHES.min(self.batches), self.batches);
        Effort { batches, calls: (affordable / batches).clamp(1, self.calls) }
    }

    /// The effort for calls that turn out to take as long as those of `trial`, which does some.
    fn tried(self, mut trial: impl FnMut(u64) -> io::Result<Duration>) -> io::Result<Effort> {
        let first = self.within_budget(trial(1)?);
        if first == self {
            return Ok(first);
        }
        // A first call may be the slow one.
        let calls = Self::TRIAL_CALLS.min(first.batches * first.calls).min(self.calls);
        Ok(self.within_budget(trial(calls)? / calls as u32))
    }
}

/// Times batches; `batch` does one of about so many calls and tells how many it made.
pub(super) fn sample(
    counting: Counting,
    effort: Effort,
    mut batch: impl FnMut(&mut Stopwatch, u64) -> io::Result<u64>,
) -> io::Result<Sample> {
    let effort = effort.tried(|calls| {
        let call_ns = once(Counting::Wall, |stopwatch| batch(stopwatch, calls))?;
        Ok(Duration::from_nanos((call_ns * calls as f64) as u64))
    })?;
    (0..effort.batches)
        .map(|_| once(counting, |stopwatch| batch(stopwatch, effort.calls)))
        .collect::<io::Result<Vec<f64>>>()
        .map(summary)
}

/// Times one batch: nanoseconds per call.
pub(super) fn once(
    counting: Counting,
    batch: impl FnOnce(&mut Stopwatch) -> io::Result<u64>,
) -> io::Result<f64> {
    let mut stopwatch = Stopwatch::new(counting);
    let calls = batch(&mut stopwatch)?;
    Ok(stopwatch.counted_ns as f64 / calls.max(1) as f64)
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
        let sample = sample(Counting::Wall, Effort::new(3, 1), |stopwatch, calls| {
            std::thread::sleep(Duration::from_millis(20));
            stopwatch.start();
            stopwatch.stop();
            Ok(calls)
        });
        assert!(sample.unwrap().cost_ns < 10e6);
    }

    #[test]
    fn calls_that_sleep_cost_the_time_they_sleep() {
        let sample = sample(Counting::Call, Effort::new(3, 1), |stopwatch, calls| {
            stopwatch.start();
            (0..calls).for_each(|_| std::thread::sleep(Duration::from_millis(2)));
            stopwatch.stop();
            Ok(calls)
        });
        assert!(sample.unwrap().cost_ns >= 2e6);
    }

    #[test]
    fn slow_calls_are_made_less_often() {
        let whole = Effort::new(9, 3000);
        let within = |call| whole.within_budget(call);
        assert_eq!(within(Duration::from_nanos(200)), whole);
        assert_eq!(within(Duration::from_millis(1)), Effort::new(9, 11));
        assert_eq!(within(Duration::from_millis(20)), Effort::new(5, 1));
        assert_eq!(within(Duration::from_secs(2)), Effort::new(3, 1));
        assert_eq!(Effort::new(1, 16).within_budget(Duration::from_secs(2)), Effort::new(1, 1));
    }

    #[test]
    fn a_slow_first_call_does_not_decide() {
        let mut trials = Vec::new();
        let effort = Effort::new(9, 3000).tried(|calls| {
            trials.push(calls);
            Ok(Duration::from_micros(if trials.len() == 1 { 90 } else { calls / 4 }))
        });
        assert_eq!((effort.unwrap(), trials), (Effort::new(9, 3000), vec![1, 16]));
    }
}
