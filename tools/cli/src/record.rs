//! `iolab record`: runs a command and writes down what it does to files.

mod output;
mod parts;
mod patience;
mod streams;

use output::Tell;
pub(crate) use output::{Output, Saved};
pub(crate) use patience::Patience;
pub(crate) use streams::StdioName;

use crate::above::{self, Finder};
use crate::collective::Collective;
use crate::failure::Failure;
use crate::mount;
use crate::mounted::{self, Via};
use crate::output::{Kind, Output as Target};
use crate::say::number_of;
use clap::{Args, ValueEnum};
use iolab_host::launch::{self, LaunchError};
use iolab_host::recording::{ClockSource, Recording, RecordingError, Settings, StreamCalls};
use iolab_mount::outermost;
use iolab_trace::{Class, Layer, Once, Trace};
use iolab_vocab::{format_bytes, parse_bytes};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Reading the time-stamp counter takes 10 ns and `clock_gettime` 20, so finer times are noise; see
/// `benchmarks/trace-size` for what finer and coarser ones cost in size.
pub(crate) const RESOLUTION_NS: u64 = 16;

/// What raw records may take if nobody says it.
const SPOOL_BYTES: u64 = 2 << 30;

/// What a trace is called that nobody named.
const DEFAULT_TRACE: &str = "run.iot";

/// Record a command and its children, MPI or not, into a trace.
///
/// The exit code is the command's (128 + n when signal n ended it).
#[derive(Args)]
pub(crate) struct Arguments {
    /// Where the trace goes; `-` is stdout. [default: run.iot]
    #[arg(short, long, value_name = "RUN.iot")]
    output: Option<PathBuf>,
    /// Layers to record. Default: posix and stdio; of a program that lists HDF5 or NetCDF, and of
    /// Python, hdf5 and netcdf as well.
    #[arg(long = "layer", value_delimiter = ',', value_name = "LAYER,…")]
    layers: Vec<LayerName>,
    /// Calls on streams (stdio): every one (`calls`), or the number and bytes of those that reach no
    /// system call (`counts`), or the first 1000 on a file and then their number (`auto`), or `none`.
    #[arg(long, value_name = "HOW", default_value = "auto")]
    stdio: StdioName,
    /// The clock: `tsc` costs 9 ns a reading, `monotonic` 20. Default: tsc where it is reliable.
    #[arg(long)]
    clock: Option<ClockName>,
    /// Directory for the raw records while the command runs. Default: in memory if there is room.
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    /// The raw records take no more room than this.
    #[arg(long, value_name = "SIZE", default_value = "2g", value_parser = parse_bytes)]
    spool_limit: u64,
    /// What to do at that limit: stop recording, or overwrite the oldest records.
    #[arg(long, value_name = "POLICY", default_value = "stop")]
    when_full: WhenFull,
    /// Times are stored as multiples of this many nanoseconds. Reading a clock
    /// takes 10 to 20, and rounding saves up to a third of the trace; 1 keeps every nanosecond.
    #[arg(long, value_name = "NS", default_value_t = RESOLUTION_NS, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    resolution: u64,
    /// Say nothing of what was recorded, only what is missing.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    via: Via,
    #[command(flatten)]
    collective: Collective,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LayerName {
    Posix,
    Stdio,
    /// Messages, collective calls and MPI-IO, of any MPI
    Mpi,
    /// Files, groups, datasets and attributes of HDF5, with what below them is theirs
    Hdf5,
    /// Files, variables and attributes of NetCDF and PnetCDF, with what below them is theirs
    Netcdf,
}

#[derive(Clone, Copy, ValueEnum)]
enum ClockName {
    Tsc,
    Monotonic,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WhenFull {
    Stop,
    Ring,
}

impl Arguments {
    /// Whether a layer is to be recorded.
    fn has(&self, layer: LayerName) -> bool {
        if !self.layers.is_empty() {
            return self.layers.contains(&layer);
        }
        match layer {
            LayerName::Posix | LayerName::Stdio => true,
            LayerName::Mpi => false,
            LayerName::Hdf5 => launch::may_call_hdf5(Path::new(&self.command[0])),
            LayerName::Netcdf => launch::may_call_netcdf(Path::new(&self.command[0])),
        }
    }

    fn begin(&self, target: Target, settings: &Settings) -> Result<Recorder, Failure> {
        let tell: Tell = if self.quiet { |trace, _| warn(trace) } else { summarize };
        Recorder::begin(target, self.resolution, settings, &self.command, tell)
    }

    fn settings(&self) -> Settings {
        Settings {
            clock: self.clock.map(|clock| match clock {
                ClockName::Tsc => ClockSource::Counter,
                ClockName::Monotonic => ClockSource::Monotonic,
            }),
            posix: self.has(LayerName::Posix),
            stdio: match self.has(LayerName::Stdio) {
                true => self.stdio.into(),
                false => StreamCalls::Nothing,
            },
            below: false,
            mpi: self.has(LayerName::Mpi),
            hdf5: self.has(LayerName::Hdf5),
            netcdf: self.has(LayerName::Netcdf),
            limit_bytes: self.spool_limit,
            ring: self.when_full == WhenFull::Ring,
            directory: self.spool.clone(),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let target = output(arguments.output.as_deref(), &named_in(&arguments.command))?;
    if arguments.via.is_mount(&arguments.command[0])? {
        return run_mounted(arguments, target);
    }
    let collective = arguments.collective.applied()?;
    let settings = arguments.settings();
    let hears_mpi = settings.mpi || collective.is_some();
    let layers: [(bool, Finder); 3] = [
        (hears_mpi, launch::find_mpi_library),
        (settings.hdf5, launch::find_hdf5_library),
        (settings.netcdf, launch::find_netcdf_library),
    ];
    let libraries = above::preloaded(&layers, &[])?;
    let mut recorder = arguments.begin(target, &settings)?;
    let mut command = Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]).envs(recorder.recording.environment());
    if let Some(collective) = &collective {
        collective.prepare(&mut command);
    }
    launch::preload(&mut command, &libraries);
    let ending = match launch::run(&mut command, &mut recorder.recording) {
        Ok(ending) => ending,
        Err(error) => {
            recorder.recording.discard();
            return Err(launch_failure(error));
        }
    };
    if let Some(collective) = collective {
        collective.end(&arguments.command[0]);
    }
    recorder.save()?;
    Ok(ExitCode::from(ending.code()))
}

/// By a mount over directories instead of the library.
fn run_mounted(arguments: &Arguments, target: Target) -> Result<ExitCode, Failure> {
    for (is_given, option) in [
        (
            arguments.layers.iter().any(|&layer| layer != LayerName::Posix),
            "a --layer other than posix",
        ),
        (arguments.when_full == WhenFull::Ring, "--when-full ring"),
        (arguments.collective.is_given(), "--collective"),
    ] {
        if is_given {
            let failure = format!("{option} needs the preloaded library, not a mount");
            return Err(Failure::new(failure).hint("leave it out, or choose --via preload"));
        }
    }
    let here = [PathBuf::from(".")];
    let over = &arguments.via.over;
    let directories = outermost(if over.is_empty() { &here } else { over });
    let directories = directories.map_err(mount::failure)?;
    let settings = Settings {
        stdio: StreamCalls::Nothing,
        hdf5: false,
        netcdf: false,
        ..arguments.settings()
    };
    let mut recorder = arguments.begin(target, &settings)?;
    match mounted::run(&[], &directories, &arguments.command, &mut recorder.recording) {
        Ok(ended) => {
            match ended.has_started {
                true => recorder.save()?,
                false => recorder.recording.discard(),
            }
            Ok(ExitCode::from(ended.ending.code()))
        }
        Err(failure) => {
            recorder.recording.discard();
            Err(failure)
        }
    }
}

/// A recording under way, and where its trace will go.
pub(crate) struct Recorder {
    pub(crate) recording: Recording,
    output: Output,
}

impl Recorder {
    fn begin(
        target: Target,
        resolution_ns: u64,
        settings: &Settings,
        command: &[OsString],
        tell: Tell,
    ) -> Result<Recorder, Failure> {
        let mut output = Output::reserve(target, resolution_ns, tell)?;
        let recording =
            Recording::begin(settings, command, &[]).map_err(|error| spool_failure(&error))?;
        output.recorded_in(recording.directory());
        Ok(Recorder { recording, output })
    }

    /// Of MPI's calls, into a trace that another command names.
    pub(crate) fn of_job(trace: &Path, command: &[OsString]) -> Result<Recorder, Failure> {
        let settings = Settings {
            clock: None,
            posix: false,
            stdio: StreamCalls::Nothing,
            below: false,
            mpi: true,
            hdf5: false,
            netcdf: false,
            limit_bytes: SPOOL_BYTES,
            ring: false,
            directory: None,
        };
        let target = output(Some(trace), &named_in(command))?;
        Recorder::begin(target, RESOLUTION_NS, &settings, command, summarize)
    }

    /// Makes and writes the trace, and tells of it.
    pub(crate) fn save(self) -> Result<(), Failure> {
        save(self.recording, self.output)
    }
}

/// The program and the files it is given, as far as they are named: none of them is meant by a trace.
pub(crate) fn named_in(command: &[OsString]) -> Vec<&Path> {
    command.iter().map(Path::new).collect()
}

/// Makes and writes the trace. The spool directory goes only when the trace is safe.
fn save(recording: Recording, output: Output) -> Result<(), Failure> {
    let tell = output.tell;
    let patience = making(&recording);
    let trace = recording
        .finished(iolab_trace::finish::Side::Program)
        .map_err(|error| spool_failure(&error))?;
    patience.step(writing(&trace));
    let saved = output.save(trace).map_err(|failure| nothing_is_lost(&recording, failure))?;
    recording.discard();
    drop(patience);
    if let Saved::Whole(trace, place) = saved {
        tell(&trace, &place);
    }
    Ok(())
}

/// A trace that could not be written can be made of the raw records later.
pub(crate) fn nothing_is_lost(recording: &Recording, failure: Failure) -> Failure {
    failure.hint(format!(
        "nothing is lost: free some room, then `iolab recover {} -o RUN.iot`",
        recording.directory().display()
    ))
}

/// The trace of a recording is being made from here on.
pub(crate) fn making(recording: &Recording) -> Patience {
    let size = format_bytes(recording.raw_bytes());
    Patience::begin(format!("the command has ended; making the trace of {size} of raw records"))
}

/// What is done with a trace that was made.
pub(crate) fn writing(trace: &Trace) -> String {
    format!("writing the trace of {} rows", trace.events.len())
}

/// Where a trace goes that need not be named; found out before the command runs.
pub(crate) fn output(given: Option<&Path>, inputs: &[&Path]) -> Result<Target, Failure> {
    Target::named_or(given, Path::new(DEFAULT_TRACE), "-o RUN.iot", Kind::Trace, inputs)
}

pub(crate) fn launch_failure(error: LaunchError) -> Failure {
    let failure = Failure::new(&error).code(error.code());
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

pub(crate) fn spool_failure(error: &RecordingError) -> Failure {
    Failure::new(error).hint(
        "the raw records need room while the command runs: `iolab record --spool DIR`, or TMPDIR",
    )
}

/// What was recorded and what is missing, on standard error: standard output is the command's.
pub(crate) fn summarize(trace: &Trace, output: &Path) {
    let header = &trace.header;
    // A pipe or a device does not say how much went through.
    let size = fs::metadata(output).ok().filter(fs::Metadata::is_file);
    let size = size.map_or(String::new(), |data| format!(" ({})", format_bytes(data.len())));
    let Recorded { calls, messages, untimed, processes } = Recorded::of(trace);
    let messages = match messages {
        0 => String::new(),
        count => format!(" and {}", number_of(count, "call of MPI", "calls of MPI")),
    };
    eprintln!(
        "iolab: {} on {}{messages} by {} in {}{size}",
        number_of(calls, "call", "calls"),
        number_of(header.files.len() as u64, "file", "files"),
        number_of(processes, "process", "processes"),
        output.display(),
    );
    if untimed > 0 {
        eprintln!(
            "iolab: {untimed} of them on streams and without a system call: counted, not timed"
        );
    }
    if !header.losses.left_out_calls.is_empty() {
        eprintln!("iolab: left out by rule: {}", listed(&header.losses.left_out_calls));
    }
    warn(trace);
}

/// How much was recorded.
#[derive(Default)]
struct Recorded {
    /// Calls on files as a report counts them, those inside of others with these.
    calls: u64,
    /// Calls of MPI but on files.
    messages: u64,
    /// Calls on streams that were only counted.
    untimed: u64,
    /// Processes that made calls.
    processes: u64,
}

impl Recorded {
    fn of(trace: &Trace) -> Recorded {
        let (mut once, mut recorded) = (Once::default(), Recorded::default());
        let mut is_seen = vec![false; trace.header.processes.len()];
        for event in &trace.events {
            let calls = event.calls();
            let is_piece = event.function.class() == Class::Piece;
            if once.counts(event) {
                recorded.calls = recorded.calls.saturating_add(calls);
            }
            if event.function.layer() == Layer::Mpi {
                recorded.messages = recorded.messages.saturating_add(calls);
            }
            if event.is_counted() {
                recorded.untimed = recorded.untimed.saturating_add(calls);
            }
            if let Some(is_seen) = is_seen.get_mut(event.process as usize).filter(|_| !is_piece) {
                *is_seen = true;
            }
        }
        recorded.processes = is_seen.iter().filter(|&&is_seen| is_seen).count() as u64;
        recorded
    }
}

/// What is missing of what was recorded.
fn warn(trace: &Trace) {
    let losses = &trace.header.losses;
    if !losses.lost_calls.is_empty() {
        eprintln!("iolab: warning: events dropped: {}", listed(&losses.lost_calls));
    }
    for unseen in &losses.unseen {
        eprintln!("iolab: warning: not seen: {unseen}");
    }
}

fn listed(counts: &BTreeMap<String, u64>) -> String {
    counts.iter().map(|(why, count)| format!("{why} {count}")).collect::<Vec<_>>().join(", ")
}
