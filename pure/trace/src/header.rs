//! What a trace says about itself: origin, clock, files, processes, and what it lacks.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the header and the columns; readers refuse a larger one.
pub const FORMAT_VERSION: u32 = 2;

/// How a trace came to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A real program, by the preloaded library.
    #[default]
    Recorded,
    /// The simulator.
    Simulated,
    /// Reissued from another trace on real files.
    Replayed,
    /// A foreign format; what was inferred is listed in `Header::inferred`.
    Imported,
}

/// Which clock the times were read from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clock {
    /// `tsc`, `monotonic` or `virtual`.
    pub source: String,
    /// `CLOCK_MONOTONIC` nanoseconds at the trace's time zero; 0 for a virtual clock.
    pub zero_monotonic_ns: u64,
    /// Unix time in nanoseconds at the trace's time zero; 0 for a virtual clock.
    pub zero_unix_ns: u64,
    /// Times were rounded to multiples of this; 1 is exact.
    pub resolution_ns: u64,
    /// How far the Unix time is from the right one at most, as the system states it; `None` where it states
    /// nothing or its clock is not synchronised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unix_bound_ns: Option<u64>,
    /// The machine since it was started, where it is one: traces of one share their monotonic clock.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub machine: String,
}

/// Where the clock of a machine was put among those of others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineClock {
    /// Its node.
    pub host: String,
    /// The machine since it was started.
    pub machine: String,
    /// What was added to its times beside what its wall clock says, when the first of all clocks was read.
    pub offset_ns: i64,
    /// What was added to each second, in microseconds.
    pub rate_ppm: f64,
    /// How far its times may be from those of the first machine; `None` where nothing says it.
    pub bound_ns: Option<u64>,
    /// Whether messages and collective calls said it; else the wall clocks.
    pub by_messages: bool,
}

/// A file of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileEntry {
    /// Absolute path as the program named it.
    pub path: String,
    /// Type of the file system it is on (`ext4`, `tmpfs`, …), empty when not known.
    pub file_system: String,
}

/// What a process of the trace is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessKind {
    /// A process of a parallel program.
    Rank,
    /// Any other process.
    #[default]
    Process,
    /// Requests of a simulated server.
    Server,
    /// Its device.
    Device,
    /// What a simulated node sent.
    NicOut,
    /// What it received.
    NicIn,
}

/// A process of the trace, or a component of a simulated cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessEntry {
    /// What to call its rows: `rank 3`, `bash`, `server 2`.
    pub name: String,
    /// Process number the system gave it, 0 when simulated.
    pub pid: u32,
    /// Process number of its parent, 0 when not known.
    pub parent_pid: u32,
    /// Rank in its parallel program, -1 for none.
    pub rank: i32,
    /// Command line.
    pub command: Vec<String>,
    /// What it is, where that does not follow from `rank`; see [`ProcessEntry::kind`].
    #[serde(skip_serializing_if = "is_plain")]
    pub kind: ProcessKind,
    /// The application it belongs to, where several may run; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub application: String,
    /// Host it ran on; of a simulated cluster its node.
    pub host: String,
    /// First and last moment seen, nanoseconds since time zero.
    pub start_ns: u64,
    /// See `start_ns`.
    pub end_ns: u64,
    /// `exited`, or `cut` when the process ended without telling (a signal, a crash).
    pub ending: String,
}

fn is_plain(kind: &ProcessKind) -> bool {
    *kind == ProcessKind::Process
}

impl ProcessEntry {
    /// What it is: a process with a rank is one, though nobody said so.
    pub fn kind(&self) -> ProcessKind {
        match self.kind {
            ProcessKind::Process if self.rank >= 0 => ProcessKind::Rank,
            kind => kind,
        }
    }
}

/// A phase of an application, each time that its ranks came to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseEntry {
    /// Its name.
    pub name: String,
    /// The application.
    pub application: String,
    /// When the first rank came to it, nanoseconds since time zero.
    pub start_ns: u64,
    /// When the last rank left it.
    pub end_ns: u64,
}

/// An object in a file of HDF5 or NetCDF, as a program opened it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectEntry {
    /// Index of its file in [`Header::files`].
    pub file: u32,
    /// `dataset`, `group`, `attribute` or `other`.
    pub kind: String,
    /// Its name in the file (`/group/dataset`); of an attribute that of its object, `@` and its own.
    /// Empty when it has none.
    pub path: String,
    /// Bytes of an element in the file, 0 when it has none.
    pub element_bytes: u64,
    /// Elements of a chunk by dimension; empty when it is not stored in chunks.
    pub chunk: Vec<u64>,
}

/// A rank's part of a job that recorded each rank for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Part {
    /// Names the job; equal in all its parts of one node, and of all nodes where there is a name.
    pub job: String,
    /// The rank.
    pub rank: u32,
    /// Ranks of the job, 0 when not known.
    pub size: u32,
    /// Node it ran on.
    pub host: String,
    /// The machine since it was started: parts of one share their monotonic clock and their files.
    pub machine: String,
}

/// What is missing from a trace and why; all zero means nothing is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Losses {
    /// Calls that happened but were not kept, by reason (`spool full`, `spool limit`, …).
    pub lost_calls: BTreeMap<String, u64>,
    /// Calls left out by rule, by rule (`/dev`, `/proc`, `pipe`, `socket`, …).
    pub left_out_calls: BTreeMap<String, u64>,
    /// Things that cannot be seen this way and were noticed (`io_uring`, `mmap stores`, a program
    /// that did not load the library).
    pub unseen: Vec<String>,
}

/// The header of a trace. Stored as JSON in the metadata of the `.iot` file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// See `FORMAT_VERSION`.
    pub format_version: u32,
    /// How the trace came to be.
    pub origin: Origin,
    /// Version of iolab that wrote it.
    pub iolab_version: String,
    /// Host of the first process.
    pub host: String,
    /// Command line that was recorded or simulated.
    pub command: Vec<String>,
    /// Working directory of the command.
    pub working_directory: String,
    /// Variables that matter to I/O and MPI.
    pub environment: BTreeMap<String, String>,
    /// Mount points with their file system type.
    pub mounts: BTreeMap<String, String>,
    /// Clock of the times.
    pub clock: Clock,
    /// How calls were seen: `entry-patch`, `plt-only`, `mount`, `none`.
    pub interposer: String,
    /// Cost of recording one call, measured at start-up, nanoseconds; 0 when not recorded.
    pub overhead_ns: u64,
    /// Strategies that were applied, as written on the command line.
    pub strategies: Vec<String>,
    /// What of the files' semantics they give up (`weaker durability`, …).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub given_up: Vec<String>,
    /// Files by `FileId`.
    pub files: Vec<FileEntry>,
    /// Processes by `Event::process`.
    pub processes: Vec<ProcessEntry>,
    /// Phases of applications, where they are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseEntry>,
    /// The groups of processes that messages and collective calls name by index: ranks of the
    /// parallel program, in the communicator's own order. Empty where no such call is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub communicators: Vec<Vec<u32>>,
    /// Objects of HDF5 and NetCDF that rows of these layers name by index.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectEntry>,
    /// The parts this trace is made of, when its ranks were recorded each for itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// The clocks of its machines, where they are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<MachineClock>,
    /// What is missing.
    pub losses: Losses,
    /// Facts that were inferred instead of observed (`offsets of fd 3 of process 2`).
    pub inferred: Vec<String>,
}

impl Header {
    /// Processes that are ranks of a job; 0 for a program without MPI.
    pub fn rank_count(&self) -> u32 {
        self.processes.iter().filter(|process| process.rank >= 0).count() as u32
    }
}
