//! Makes a trace of what a run left in its spool directory, whether it ended well or was cut.
//!
//! Records become events (`gather`), numbers become files (`names`), calls that used the file
//! position get absolute offsets (`positions`), calls inside a call of a higher layer get their
//! parent, and what is missing is said (`missing`).
//!
//! Bytes in, a trace out: who reads the files (or maps them) is the caller's business. Memory is
//! that of the events (80 bytes each, half as much again while they are sorted) and of the names;
//! time is that of two sorts.

mod gather;
mod missing;
mod mpi;
mod names;
mod objects;
mod order;
mod positions;
mod served;
mod sizes;

pub(crate) use order::outer_first;

use crate::spool::{CONTROL_BYTES, CONTROL_MAGIC, SPOOL_VERSION, control, read_u32, read_u64};
use crate::{
    Class, Clock, Event, FORMAT_VERSION, Function, Header, Layer, Origin, ProcessEntry, Trace,
};
use iolab_vocab::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What a spool directory holds.
#[derive(Clone, Debug, Default)]
pub struct Spools<'a> {
    /// The file `control`.
    pub control: &'a [u8],
    /// The files `process-…`, in any order.
    pub processes: Vec<&'a [u8]>,
    /// The file `drained`; empty when there is none.
    pub drained: &'a [u8],
    /// The file `told`, of the same form; empty when there is none.
    pub told: &'a [u8],
    /// The file `launch.json`, parsed.
    pub launch: Launch,
}

/// What the launcher knew when it started the command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Launch {
    /// Command line.
    pub command: Vec<String>,
    /// Working directory.
    pub working_directory: String,
    /// Host it ran on.
    pub host: String,
    /// Variables that matter.
    pub environment: BTreeMap<String, String>,
    /// Mount points and their file system type.
    pub mounts: BTreeMap<String, String>,
    /// Strategies that were applied.
    pub strategies: Vec<String>,
    /// Process number of the command; 0 when it is not known.
    pub pid: u32,
    /// The machine since it was started.
    pub machine: String,
    /// Directories whose files were served by a mount that told of the calls on them; none where the library was
    /// preloaded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounted_over: Vec<String>,
}

/// Which calls to take: a run with strategies can record above and below them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The calls the program made.
    Program,
    /// The calls that came out below the strategies.
    Below,
}

/// Why no trace can be made of a spool directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishError {
    /// `control` is not one (too short, or other bytes).
    NoControl,
    /// It is of another version of the layout.
    Version(u32),
}

impl fmt::Display for FinishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FinishError::NoControl => f.write_str("its file `control` is not that of a recording"),
            FinishError::Version(found) => {
                write!(f, "its layout has version {found}, this iolab knows {SPOOL_VERSION}")
            }
        }
    }
}

impl std::error::Error for FinishError {}

/// Turns clock readings into nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug)]
struct Calibration {
    first: u64,
    /// Nanoseconds per unit of the clock, times 2^32.
    scale: u128,
}

impl Calibration {
    fn of(control: &[u8]) -> Calibration {
        let word = |at: usize, index: usize| read_u64(control, at + index * 8);
        let units = word(control::LATEST, 0).saturating_sub(word(control::CALIBRATION, 0));
        let ns = word(control::LATEST, 1).saturating_sub(word(control::CALIBRATION, 1));
        let monotonic = read_u32(control, control::CLOCK) == 1;
        let scale = match (monotonic, units) {
            (true, _) | (_, 0) => 1 << 32,
            (false, _) => (u128::from(ns) << 32) / u128::from(units),
        };
        Calibration { first: word(control::CALIBRATION, 0), scale }
    }

    /// The end of time for a reading that is not one.
    fn nanos(&self, reading: u64) -> Nanos {
        let units = u128::from(reading.saturating_sub(self.first));
        let nanos = units.checked_mul(self.scale).map_or(u128::MAX, |nanos| nanos >> 32);
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Makes the trace.
pub fn finish(spools: &Spools<'_>, side: Side) -> Result<Trace, FinishError> {
    check(spools.control)?;
    let calibration = Calibration::of(spools.control);
    let mut gathered = gather::gather(spools, side, &calibration);
    let mut header = header(spools, &gathered);
    // Stable, here and below: what happened at one tick of the clock stays in its order.
    gathered.events.sort_by_key(|event| (event.start, event.process, event.thread));
    names::resolve(&mut gathered, &mut header);
    mpi::resolve(&mut gathered, &mut header);
    objects::resolve(&mut gathered, &mut header);
    positions::derive(&mut gathered, &mut header);
    if !spools.launch.mounted_over.is_empty() {
        served::resolve(&mut gathered.events, &mut header);
    }
    missing::tell(spools, &gathered, &mut header);
    missing::forget(&mut gathered.events);
    let mut events = gathered.events;
    outer_first(&mut events);
    adopt(&mut events);
    Ok(Trace { header, events, ..Trace::default() })
}

fn check(control: &[u8]) -> Result<(), FinishError> {
    if control.len() < CONTROL_BYTES || read_u64(control, control::MAGIC) != CONTROL_MAGIC {
        return Err(FinishError::NoControl);
    }
    match read_u32(control, control::VERSION) {
        SPOOL_VERSION => Ok(()),
        other => Err(FinishError::Version(other)),
    }
}

fn header(spools: &Spools<'_>, gathered: &gather::Gathered) -> Header {
    let launch = &spools.launch;
    let monotonic = read_u32(spools.control, control::CLOCK) == 1;
    let patched = gathered.processes.iter().all(|process| process.patched);
    Header {
        format_version: FORMAT_VERSION,
        origin: Origin::Recorded,
        iolab_version: env!("CARGO_PKG_VERSION").to_owned(),
        host: launch.host.clone(),
        command: launch.command.clone(),
        working_directory: launch.working_directory.clone(),
        environment: launch.environment.clone(),
        mounts: launch.mounts.clone(),
        clock: Clock {
            source: if monotonic { "monotonic" } else { "tsc" }.to_owned(),
            zero_monotonic_ns: read_u64(spools.control, control::CALIBRATION + 8),
            zero_unix_ns: read_u64(spools.control, control::CALIBRATION + 16),
            resolution_ns: 1,
            unix_bound_ns: read_u64(spools.control, control::UNIX_BOUND).checked_sub(1),
            machine: launch.machine.clone(),
        },
        interposer: match (launch.mounted_over.is_empty(), patched) {
            (false, _) => "mount",
            (true, true) => "entry-patch",
            (true, false) => "plt-only",
        }
        .to_owned(),
        strategies: launch.strategies.clone(),
        processes: gathered.processes.iter().map(entry).collect(),
        ..Header::default()
    }
}

fn entry(process: &gather::Process) -> ProcessEntry {
    let program = process.program.rsplit('/').next().unwrap_or_default();
    let name = match process.rank {
        -1 => program.to_owned(),
        rank => format!("rank {rank}"),
    };
    ProcessEntry {
        name,
        pid: process.pid,
        parent_pid: process.parent,
        rank: process.rank,
        command: process.command.clone(),
        host: process.host.clone(),
        start_ns: process.start.0,
        end_ns: process.end.0,
        ending: if process.ended { "exited" } else { "cut" }.to_owned(),
        ..ProcessEntry::default()
    }
}

/// Gives each call inside calls of higher layers of the same thread its parent, the innermost of
/// them. Outer calls come first.
pub(crate) fn adopt(events: &mut [Event]) {
    let mut around: Vec<usize> = Vec::new();
    for index in 0..events.len() {
        let event = events[index];
        let is_inside = |it: &Event| {
            (it.process, it.thread) == (event.process, event.thread)
                && it.start <= event.start
                && event.end <= it.end
        };
        // Of system calls only a copy has a part, where the bytes went.
        let holds = |it: &Event| {
            it.function.class() != Class::Copy || event.function == Function::COPY_TARGET
        };
        while around.pop_if(|at| !is_inside(&events[*at]) || !holds(&events[*at])).is_some() {}
        let own = height(&event);
        if let Some(&at) = around.iter().rev().find(|&&at| height(&events[at]) > own) {
            set_size_before(events, at, index);
            events[index].parent = at as i64;
        }
        let is_lower = around.last().is_none_or(|&at| height(&events[at]) > own);
        let has_parts = own > 1 || event.function.class() == Class::Copy;
        if has_parts && is_lower && !event.is_counted() {
            around.push(index);
        }
    }
}

/// A call has calls of lower layers inside.
fn height(event: &Event) -> u8 {
    match event.function.layer() {
        _ if event.function.class() == Class::Piece => 0,
        Layer::Netcdf => 5,
        Layer::Hdf5 => 4,
        Layer::Mpi | Layer::Mpiio => 3,
        Layer::Stdio => 2,
        _ => 1,
    }
}

/// An open of MPI-IO says how large the file was: as large as the first open inside found it.
fn set_size_before(events: &mut [Event], outer: usize, inner: usize) {
    let (open, inside) = (events[outer], events[inner]);
    let is_open = open.function == Function::MPI_FILE_OPEN && open.length < 0;
    if is_open && inside.function.class() == Class::Open && inside.file == open.file {
        events[outer].length = inside.length;
    }
}

#[cfg(test)]
mod tests;
