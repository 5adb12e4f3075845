//! Costs of carrying strategies in a program: the hook, a step, a copy, loading the library.
//!
//! The same probe runs bare, under a strategy for other files, under null, under a null that is stepped for
//! each call, under write-back, and recorded. It makes each call in batches by libc and, right after each, past
//! libc by the system call instruction, which nothing hosts: the difference is what the call's way costs in that
//! process at that moment, and neither neighbours nor the place of the process in memory are in it. It seeks,
//! since of all calls to a file that is the least work of the kernel's: what the second adds to a seek is the
//! hook, what null adds to that is coming as far as the stack, what recording adds is its row. And it appends
//! 64 bytes to a new file: the stepped null adds two steps to that; under write-back nothing is left but taking
//! the bytes in, a copy, and one large write at the end.

use super::bench::{Bench, rounded};
use super::stopwatch::{Counting, Effort, Sample, Stopwatch, once, sample, summary};
use super::{in_scratch, transfers};
use iolab_device::CostTable;
use iolab_device::local::{InterceptCosts, PAGE_BYTES, WriteCosts};
use iolab_processor::system_call;
use std::ffi::{CStr, CString};
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The probe makes this many calls of this size: together the default buffer of write-back.
const PROBE_CALLS: u64 = 16_384;
const PROBE_BYTES: u64 = 64;
/// What is appended, by either way from the same place: how fast the kernel takes bytes goes by their alignment.
static PROBE: [u8; PROBE_BYTES as usize] = [5; PROBE_BYTES as usize];
/// Batches of each call, each beside one past the library.
const BATCHES: usize = 15;
/// Seeks of a batch.
const SEEK_CALLS: u64 = 2048;
/// Opens of a batch.
const OPEN_CALLS: u64 = 64;
/// Processes of each kind, in turns.
const ROUNDS: usize = 5;
/// A small write that waits for nobody takes less. Strategies add tens of nanoseconds, which slower ones hide.
const QUICK_NS: f64 = 3_000.0;
/// A strategy for files nobody has.
const ELSEWHERE: &str = "null:paths=/nowhere/*";

/// How to run a probe inside a process that carries strategies. Each closure runs the calling
/// program again with some hidden argument, and reads the nanoseconds it prints.
pub struct InterceptProbe<'a> {
    /// Runs [`probe_guest`] on the file of that path in a process that carries something.
    pub guest: &'a dyn Fn(Carrying, &Path) -> io::Result<GuestCosts>,
    /// Runs [`probe_spawns`] of `true`.
    pub spawns: &'a dyn Fn(Spawning) -> io::Result<f64>,
}

/// What a guest carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrying<'a> {
    /// Nothing: it runs bare.
    Nothing,
    /// A strategy.
    Strategy(&'a str),
    /// The recorder.
    Recorder,
}

/// How the processes of [`probe_spawns`] are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spawning {
    /// As they are.
    Bare,
    /// With the preloaded library.
    Preloaded,
    /// Each by a launcher of its own, which preloads the library.
    Launched,
}

/// What calls cost inside a guest, nanoseconds of processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GuestCosts {
    /// A small append, the first time; its share of closing the file included.
    pub first_write_ns: f64,
    /// The same later.
    pub write_ns: f64,
    /// What such an append takes more than one past the library.
    pub write_more_ns: f64,
    /// The same of a seek.
    pub seek_more_ns: f64,
    /// The same of opening a file that exists, and closing it.
    pub open_more_ns: f64,
}

/// Measures small appends to a new file at `path`, seeks in it, and opening it. Runs in the guest.
pub fn probe_guest(path: &Path) -> io::Result<GuestCosts> {
    let past = path.with_extension("past");
    let first_write_ns = once(Counting::Call, |stopwatch| appends(path, stopwatch))?;
    let (write_ns, write_more_ns) =
        paired(|stopwatch| appends(path, stopwatch), |stopwatch| appends_past(&past, stopwatch))?;
    let file = File::create(path)?;
    let (_, seek_more_ns) = paired(
        |stopwatch| batch(stopwatch, SEEK_CALLS, |at| (&file).seek(SeekFrom::Start(at)).map(drop)),
        |stopwatch| {
            let fd = file.as_raw_fd() as usize;
            let seek = |at| past_library(libc::SYS_lseek, [fd, at as usize, 0]).map(drop);
            batch(stopwatch, SEEK_CALLS, seek)
        },
    )?;
    drop(file);
    let name = CString::new(path.as_os_str().as_bytes())?;
    let (_, open_more_ns) = paired(
        |stopwatch| {
            let open = |_| OpenOptions::new().write(true).open(path).map(drop);
            batch(stopwatch, OPEN_CALLS, open)
        },
        |stopwatch| {
            let open = |_| open_past(&name, libc::O_WRONLY).and_then(close_past);
            batch(stopwatch, OPEN_CALLS, open)
        },
    )?;
    std::fs::remove_file(path)?;
    Ok(GuestCosts { first_write_ns, write_ns, write_more_ns, seek_more_ns, open_more_ns })
}

/// How long one call takes, and how much longer than the other: medians of batches of both, made one after the
/// other.
fn paired(
    mut one: impl FnMut(&mut Stopwatch) -> io::Result<u64>,
    mut other: impl FnMut(&mut Stopwatch) -> io::Result<u64>,
) -> io::Result<(f64, f64)> {
    let (mut costs, mut differences) = (Vec::new(), Vec::new());
    for _ in 0..BATCHES {
        let one_ns = once(Counting::Call, &mut one)?;
        costs.push(one_ns);
        differences.push(one_ns - once(Counting::Call, &mut other)?);
    }
    Ok((summary(costs).cost_ns, summary(differences).cost_ns))
}

/// Times so many calls.
fn batch(
    stopwatch: &mut Stopwatch,
    calls: u64,
    call: impl FnMut(u64) -> io::Result<()>,
) -> io::Result<u64> {
    stopwatch.start();
    (0..calls).try_for_each(call)?;
    stopwatch.stop();
    Ok(calls)
}

fn appends(path: &Path, stopwatch: &mut Stopwatch) -> io::Result<u64> {
    let mut file = File::create(path)?;
    stopwatch.start();
    (0..PROBE_CALLS).try_for_each(|_| file.write_all(&PROBE))?;
    drop(file);
    stopwatch.stop();
    std::fs::remove_file(path)?;
    Ok(PROBE_CALLS)
}

fn appends_past(path: &Path, stopwatch: &mut Stopwatch) -> io::Result<u64> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    let file = open_past(&name, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC)?;
    let append = || past_library(libc::SYS_write, [file, PROBE.as_ptr() as usize, PROBE.len()]);
    stopwatch.start();
    (0..PROBE_CALLS).try_for_each(|_| append().map(drop))?;
    close_past(file)?;
    stopwatch.stop();
    std::fs::remove_file(path)?;
    Ok(PROBE_CALLS)
}

fn open_past(name: &CStr, flags: libc::c_int) -> io::Result<usize> {
    let (name, flags) = (name.as_ptr() as usize, flags | libc::O_CLOEXEC);
    past_library(libc::SYS_openat, [libc::AT_FDCWD as usize, name, flags as usize, 0o600])
}

fn close_past(fd: usize) -> io::Result<()> {
    past_library(libc::SYS_close, [fd]).map(drop)
}

/// A system call that no library sees.
fn past_library<const COUNT: usize>(
    number: libc::c_long,
    given: [usize; COUNT],
) -> io::Result<usize> {
    let mut arguments = [0; 6];
    arguments[..COUNT].copy_from_slice(&given);
    // SAFETY: the callers give descriptors of theirs, names that end and bytes that are there.
    let result = unsafe { system_call(number, arguments) };
    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result as i32))
}

/// Nanoseconds of elapsed time to start `command` and wait for its end: the least of some, since
/// other work on the machine can only make it longer.
pub fn probe_spawns(command: &mut Command) -> io::Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..25 {
        let started = Instant::now();
        let status = command.status()?;
        if !status.success() {
            return Err(io::Error::other(format!("{command:?} ended with {status}")));
        }
        least = least.min(started.elapsed().as_nanos() as f64);
    }
    Ok(least)
}

pub(super) fn costs(
    bench: &mut Bench,
    write: &WriteCosts,
    probe: Option<&InterceptProbe>,
) -> io::Result<InterceptCosts> {
    (bench.progress)("copies in memory");
    let copy = copies(bench)?;
    let Some(probe) = probe else { return Ok(unmeasured(copy)) };
    (bench.progress)("strategies in a program");
    let mut costs = if write.overwrite.at(PROBE_BYTES) <= QUICK_NS {
        guests(probe, &bench.path("guest"), copy, flush_ns(write) / PROBE_CALLS as f64)?
    } else {
        match elsewhere(probe, &copy)? {
            Some(costs) => costs,
            None => {
                (bench.progress)("no place here is quick enough for that: taking documented costs");
                unmeasured(copy)
            }
        }
    };
    (bench.progress)("starting processes");
    costs.process_ns = rounded((probe.spawns)(Spawning::Bare)?);
    let preloaded_ns = (probe.spawns)(Spawning::Preloaded)?;
    costs.load_ns = rounded((preloaded_ns - costs.process_ns).max(0.0));
    costs.launch_ns = rounded(((probe.spawns)(Spawning::Launched)? - preloaded_ns).max(0.0));
    for (parameter, cost_ns) in [
        ("intercept.hook_ns", costs.hook_ns),
        ("intercept.pass_ns", costs.passed_ns()),
        ("intercept.step_ns", costs.step_ns),
        ("intercept.absorb_ns", costs.absorb_ns),
        ("intercept.open_ns", costs.open_ns),
        ("intercept.open_passed_ns", costs.open_passed_ns),
        ("intercept.staging_page_ns", costs.staging_page_ns),
        ("intercept.process_ns", costs.process_ns),
        ("intercept.load_ns", costs.load_ns),
        ("intercept.launch_ns", costs.launch_ns),
        ("intercept.record_ns", costs.record_ns),
    ] {
        bench.note(parameter, Sample { cost_ns, spread: f64::NAN });
    }
    Ok(costs)
}

/// The same on another file system, where calls hardly wait: what strategies add there they add everywhere,
/// but among calls that wait for a server it cannot be seen.
fn elsewhere(probe: &InterceptProbe, copy: &CostTable) -> io::Result<Option<InterceptCosts>> {
    for place in [PathBuf::from("/dev/shm"), std::env::temp_dir()] {
        let measured = in_scratch(&place, |scratch| {
            let path = scratch.join("guest");
            if transfers::append(&path, PROBE_BYTES)?.cost_ns > QUICK_NS {
                return Ok(None);
            }
            let flush = transfers::append(&path, PROBE_CALLS * PROBE_BYTES)?;
            guests(probe, &path, copy.clone(), flush.cost_ns / PROBE_CALLS as f64).map(Some)
        });
        match measured {
            Ok(Some(costs)) => return Ok(Some(costs)),
            Err(error) if error.cause.kind() == io::ErrorKind::Unsupported => {
                return Err(error.cause);
            }
            Ok(None) | Err(_) => {}
        }
    }
    Ok(None)
}

/// Measures the probe with all that a guest may carry. Writing out what write-back held costs `flush_ns` per call.
fn guests(
    probe: &InterceptProbe,
    path: &Path,
    copy: CostTable,
    flush_ns: f64,
) -> io::Result<InterceptCosts> {
    let mut runs: [Vec<GuestCosts>; 6] = Default::default();
    // In turns, so that a disturbance of some seconds meets all of them.
    for _ in 0..ROUNDS {
        let strategies =
            [ELSEWHERE, "null", "null:hear=steps", "write-back"].map(Carrying::Strategy);
        let all = [Carrying::Nothing].into_iter().chain(strategies).chain([Carrying::Recorder]);
        for (run, carrying) in runs.iter_mut().zip(all) {
            run.push((probe.guest)(carrying, path)?);
        }
    }
    Ok(costs_of(runs.map(together), copy, flush_ns))
}

/// What strategies cost where nothing could be measured: the values of `docs/models/local.md`.
fn unmeasured(copy: CostTable) -> InterceptCosts {
    InterceptCosts {
        hook_ns: 30.0,
        pass_ns: Some(30.0),
        step_ns: 30.0,
        absorb_ns: 25.0,
        open_ns: 2000.0,
        open_passed_ns: 4500.0,
        staging_page_ns: 1000.0,
        copy,
        load_ns: 250e3,
        launch_ns: 2e6,
        record_ns: 25.0,
        process_ns: 550e3,
    }
}

/// What several runs of one guest come to.
fn together(runs: Vec<GuestCosts>) -> GuestCosts {
    let median = |of: fn(&GuestCosts) -> f64| summary(runs.iter().map(of).collect()).cost_ns;
    GuestCosts {
        first_write_ns: median(|run| run.first_write_ns),
        write_ns: median(|run| run.write_ns),
        write_more_ns: median(|run| run.write_more_ns),
        seek_more_ns: median(|run| run.seek_more_ns),
        open_more_ns: median(|run| run.open_more_ns),
    }
}

/// The costs that make the difference between bare, elsewhere, null, stepped, write-back and recorded.
fn costs_of(runs: [GuestCosts; 6], copy: CostTable, flush_ns: f64) -> InterceptCosts {
    let [bare, elsewhere, null, stepped, buffered, recorded] = runs;
    let more = |cost_ns: f64, than_ns: f64| rounded((cost_ns - than_ns).max(0.0));
    let hook_ns = more(elsewhere.seek_more_ns, bare.seek_more_ns);
    let calls_per_page = (PAGE_BYTES / PROBE_BYTES) as f64;
    InterceptCosts {
        hook_ns,
        pass_ns: Some(more(null.seek_more_ns, bare.seek_more_ns + hook_ns)),
        step_ns: more(stepped.write_more_ns, bare.write_more_ns + hook_ns) / 2.0,
        absorb_ns: more(buffered.write_ns, copy.at(PROBE_BYTES) + flush_ns),
        open_ns: more(null.open_more_ns, bare.open_more_ns),
        open_passed_ns: more(elsewhere.open_more_ns, bare.open_more_ns),
        staging_page_ns: more(buffered.first_write_ns, buffered.write_ns) * calls_per_page,
        copy,
        load_ns: 0.0,
        launch_ns: 0.0,
        record_ns: more(recorded.seek_more_ns, bare.seek_more_ns),
        process_ns: 0.0,
    }
}

/// What writing a whole buffer of the probe to a new file costs.
fn flush_ns(write: &WriteCosts) -> f64 {
    let bytes = PROBE_BYTES * PROBE_CALLS;
    let pages = (bytes / PAGE_BYTES) as f64;
    write.overwrite.at(bytes) + write.extend_ns + pages * write.fresh_page.at(bytes)
}

/// Copies of each size into successive places of a buffer of the size strategies use.
fn copies(bench: &mut Bench) -> io::Result<CostTable> {
    const BUFFER_BYTES: usize = 1 << 20;
    let mut buffer = vec![0_u8; BUFFER_BYTES];
    let mut samples = Vec::new();
    for size in [64, 256, 1024, 4096, 16384, 65536, BUFFER_BYTES] {
        let source = vec![9_u8; size];
        let effort = Effort::new(9, (65_536 / size).max(4) as u64);
        let measured = sample(Counting::Call, effort, |stopwatch, rounds| {
            stopwatch.start();
            for round in 0..rounds as usize {
                let at = round * size % BUFFER_BYTES;
                buffer[at..at + size].copy_from_slice(black_box(&source));
                black_box(&mut buffer);
            }
            stopwatch.stop();
            Ok(rounds)
        })?;
        samples.push((size as u64, measured));
    }
    Ok(bench.note_table("intercept.copy", &samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_the_differences_between_the_runs() {
        let run =
            |first_write_ns, write_ns, [write_more_ns, seek_more_ns, open_more_ns]: [f64; 3]| {
                GuestCosts { first_write_ns, write_ns, write_more_ns, seek_more_ns, open_more_ns }
            };
        let runs = [
            run(500.0, 450.0, [2.0, 1.0, 10.0]),
            run(540.0, 420.0, [9.0, 31.0, 4510.0]),
            run(590.0, 530.0, [88.0, 81.0, 2010.0]),
            run(620.0, 560.0, [112.0, 161.0, 2010.0]),
            run(60.0, 40.0, [-400.0, 91.0, 2110.0]),
            run(500.0, 435.0, [30.0, 26.0, 110.0]),
        ];
        let costs = costs_of(runs, CostTable::constant(2.0), 12.0);
        assert_eq!((costs.hook_ns, costs.step_ns, costs.absorb_ns), (30.0, 40.0, 26.0));
        assert_eq!(costs.pass_ns, Some(50.0));
        assert_eq!((costs.open_ns, costs.open_passed_ns), (2000.0, 4500.0));
        assert_eq!((costs.staging_page_ns, costs.record_ns), (20.0 * 64.0, 25.0));
    }
}
