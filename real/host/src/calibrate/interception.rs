//! Costs of carrying strategies in a program: the hook, a step, a copy, loading the library.
//!
//! The same probe, 64 byte appends, runs bare, under the null strategy and under write-back. Null
//! adds a hook and two steps to each call; write-back puts a hook, one step and a copy in its
//! place, and one large write at the end. The second sum is small and therefore known well; the
//! first is a small difference of large numbers and only tells how to share the second one.

use super::stopwatch::{Counting, Sample, sample, summary};
use super::{Bench, rounded, unmeasured_intercept};
use iolab_device::CostTable;
use iolab_device::local::{InterceptCosts, PAGE_BYTES, WriteCosts};
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// The probe makes this many calls of this size: together the default buffer of write-back.
const PROBE_CALLS: u64 = 16_384;
const PROBE_BYTES: u64 = 64;

/// How to run a probe inside a process that carries strategies. Each closure runs the calling
/// program again with some hidden argument, and reads the nanoseconds it prints.
pub struct InterceptProbe<'a> {
    /// Runs [`probe_writes`] on the file of that path under a strategy (`None`: bare).
    pub writes: &'a dyn Fn(Option<&str>, &Path) -> io::Result<f64>,
    /// Runs [`probe_spawns`], with or without the library in the spawned processes.
    pub spawns: &'a dyn Fn(Spawning) -> io::Result<f64>,
}

/// How the processes of [`probe_spawns`] are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spawning {
    /// As they are.
    Bare,
    /// With the preloaded library.
    Preloaded,
}

/// Nanoseconds of processor time for one small append to a new file at `path`, the median of
/// some batches, the closing of the file included. Runs in the guest.
pub fn probe_writes(path: &Path) -> io::Result<f64> {
    let measured = sample(Counting::Processor, 9, |stopwatch| {
        let mut file = File::create(path)?;
        stopwatch.start();
        (0..PROBE_CALLS).try_for_each(|_| file.write_all(&[5; PROBE_BYTES as usize]))?;
        drop(file);
        stopwatch.stop();
        std::fs::remove_file(path)?;
        Ok(PROBE_CALLS)
    })?;
    Ok(measured.cost_ns)
}

/// Nanoseconds of elapsed time to start `true` and wait for its end.
pub fn probe_spawns() -> io::Result<f64> {
    let mut times = Vec::new();
    for _ in 0..15 {
        let started = Instant::now();
        let status = Command::new("true").status()?;
        if !status.success() {
            return Err(io::Error::other(format!("`true` ended with {status}")));
        }
        times.push(started.elapsed().as_nanos() as f64);
    }
    Ok(summary(times).cost_ns)
}

pub(super) fn costs(
    bench: &mut Bench,
    write: &WriteCosts,
    probe: Option<&InterceptProbe>,
) -> io::Result<InterceptCosts> {
    (bench.progress)("copies in memory");
    let copy = copies(bench)?;
    let Some(probe) = probe else { return Ok(unmeasured_intercept(copy)) };
    (bench.progress)("strategies in a program");
    let path = bench.path("guest");
    let (mut bare, mut null, mut buffered) = (Vec::new(), Vec::new(), Vec::new());
    // In turns, so that a disturbance of some seconds meets all three.
    for _ in 0..3 {
        bare.push((probe.writes)(None, &path)?);
        null.push((probe.writes)(Some("null"), &path)?);
        buffered.push((probe.writes)(Some("write-back"), &path)?);
    }
    let [bare, null, buffered] = [bare, null, buffered].map(summary);
    let around_ns = buffered.cost_ns - copy.at(PROBE_BYTES) - flush_ns(write) / PROBE_CALLS as f64;
    let (hook_ns, step_ns) = split(around_ns.max(0.0), null.cost_ns - bare.cost_ns);
    bench.note("intercept.hook_ns", Sample { cost_ns: hook_ns, ..buffered });
    bench.note("intercept.step_ns", Sample { cost_ns: step_ns, ..buffered });
    (bench.progress)("starting processes");
    let process_ns = (probe.spawns)(Spawning::Bare)?;
    let load_ns = ((probe.spawns)(Spawning::Preloaded)? - process_ns).max(0.0);
    for (parameter, cost_ns) in
        [("intercept.process_ns", process_ns), ("intercept.load_ns", load_ns)]
    {
        bench.note(parameter, Sample { cost_ns, spread: 0.0 });
    }
    Ok(InterceptCosts {
        hook_ns: rounded(hook_ns),
        step_ns: rounded(step_ns),
        copy,
        load_ns: rounded(load_ns),
        process_ns: rounded(process_ns),
    })
}

/// What writing a whole buffer of the probe to a new file costs.
fn flush_ns(write: &WriteCosts) -> f64 {
    let bytes = PROBE_BYTES * PROBE_CALLS;
    let pages = (bytes / PAGE_BYTES) as f64;
    write.overwrite.at(bytes) + write.extend_ns + pages * write.fresh_page.at(bytes)
}

/// Shares what stands around a buffered call (a hook and a step) by what the null strategy adds
/// to a call (a hook and two steps).
fn split(around_ns: f64, added_ns: f64) -> (f64, f64) {
    let step_ns = (added_ns - around_ns).clamp(0.1 * around_ns, 0.5 * around_ns);
    (around_ns - step_ns, step_ns)
}

/// Copies of each size into successive places of a buffer of the size strategies use.
fn copies(bench: &mut Bench) -> io::Result<CostTable> {
    const BUFFER_BYTES: usize = 1 << 20;
    let mut buffer = vec![0_u8; BUFFER_BYTES];
    let mut samples = Vec::new();
    for size in [64, 256, 1024, 4096, 16384, 65536, BUFFER_BYTES] {
        let source = vec![9_u8; size];
        let measured = sample(Counting::Processor, 9, |stopwatch| {
            let rounds = (65_536 / size).max(4);
            stopwatch.start();
            for round in 0..rounds {
                let at = round * size % BUFFER_BYTES;
                buffer[at..at + size].copy_from_slice(black_box(&source));
                black_box(&mut buffer);
            }
            stopwatch.stop();
            Ok(rounds as u64)
        })?;
        samples.push((size as u64, measured));
    }
    Ok(bench.note_table("intercept.copy", &samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_and_a_step_add_up_to_what_stands_around_a_buffered_call() {
        assert_eq!(split(10.0, 14.0), (6.0, 4.0));
        // A null run that was disturbed, either way, moves the shares but not the sum.
        assert_eq!(split(10.0, 500.0), (5.0, 5.0));
        assert_eq!(split(10.0, -30.0), (9.0, 1.0));
    }
}
