//! Logs of Darshan, formats 3.00 to 3.41 in either byte order: as traces, as far as DXT kept single
//! accesses (`DXT_ENABLE_IO_TRACE=1`), and as what they count, which every log has.
//!
//! DXT has no opens, closes, seeks or syncs, and does not say what was collective; opens and closes are put
//! where a rank's accesses of a file begin and end, the rest is counted in the header.

mod accesses;
mod counted;
mod heat;
mod layout;
mod log;
mod module;
mod places;
mod rows;
mod stream;

pub use counted::{Counted, Extreme, Record, SIZE_BOUNDS, Way, darshan_counted};
pub use heat::Heat;
pub use log::{is_log_head as is_darshan, packed_version as old_darshan};
pub use module::Module;

use crate::{Clock, FileEntry, Header, Losses, Origin, ProcessEntry, Trace};
use accesses::Accesses;
use iolab_vocab::FileId;
use log::{Job, Log};
use std::collections::BTreeMap;
use std::fmt;

/// Why a log of Darshan could not become a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DarshanError {
    /// It does not begin as a log of Darshan 3 does.
    NotALog,
    /// A packed file, as logs of Darshan 2 are.
    Packed,
    /// A log of Darshan 1 or 2, of that version.
    Old(String),
    /// A version that nobody here knows, of the format or of a module.
    Format(String),
    /// It contradicts itself or is cut.
    Damaged(String),
    /// More accesses or records than are taken at once.
    TooLarge(usize),
    /// It has counters only: of so many reads and writes of POSIX.
    CountersOnly(u64),
}

impl DarshanError {
    /// A way out.
    pub fn hint(&self) -> &'static str {
        match self {
            DarshanError::NotALog => "logs of Darshan begin with the version of their format",
            DarshanError::Packed => {
                "logs are read from format 3.00 on: unpack it, or convert an older one"
            }
            DarshanError::Old(_) => "logs are read from format 3.00 on",
            DarshanError::Format(_) => "formats 3.00 to 3.41 are read",
            DarshanError::Damaged(_) => "see whether darshan-parser of its version reads it",
            DarshanError::TooLarge(_) => "cut it with darshan-merge, or record with a DXT trigger",
            DarshanError::CountersOnly(_) => {
                "`iolab report` tells what it counts, `iolab import --as workload` makes a workload of it to \
                 simulate; for single accesses set DXT_ENABLE_IO_TRACE=1 where the program runs"
            }
        }
    }
}

impl fmt::Display for DarshanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DarshanError::NotALog => write!(f, "this is no log of Darshan"),
            DarshanError::Packed => write!(f, "this looks like a packed log, or one of Darshan 2"),
            DarshanError::Old(version) => write!(f, "this looks like a log of Darshan {version}"),
            DarshanError::Format(version) => write!(f, "version {version} is not known"),
            DarshanError::Damaged(what) => write!(f, "the log is damaged: {what}"),
            DarshanError::TooLarge(most) => {
                write!(f, "it has more than {most} accesses or records")
            }
            DarshanError::CountersOnly(calls) => {
                write!(f, "it counts {calls} reads and writes, and has none of them by itself")
            }
        }
    }
}

impl std::error::Error for DarshanError {}

/// Reads a whole log.
pub fn darshan(bytes: &[u8]) -> Result<Trace, DarshanError> {
    let log = Log::open(bytes)?;
    let posix = accesses::read(&log, Module::DxtPosix)?;
    let mpi = accesses::read(&log, Module::DxtMpiIo)?;
    let counted = counted::read(&log)?;
    if !counted.has_accesses {
        return Err(DarshanError::CountersOnly(accesses_of(&counted)));
    }
    let mut ids = BTreeMap::new();
    let mut files = Vec::new();
    let events = rows::rows(&mpi.list, &posix.list, |number| {
        *ids.entry(number).or_insert_with(|| {
            files.push(log.file(number));
            FileId(files.len() as u32 - 1)
        })
    });
    let losses = losses(&posix, &mpi, &counted);
    let mut inferred = vec![
        "opens and closes, where a rank's accesses of a file begin and end".to_owned(),
        "that no call was collective, and that every access moved what it asked for".to_owned(),
        "that clocks of ranks began together".to_owned(),
    ];
    if mpi.list.iter().any(|access| access.offset < 0) {
        inferred
            .push("offsets of MPI-IO, from accesses of POSIX inside, if there are any".to_owned());
    }
    let backwards = posix.backwards + mpi.backwards;
    if backwards > 0 {
        inferred.push(format!("ends of {backwards} accesses that ended before they began"));
    }
    let processes = processes(&log.job, &[&posix, &mpi]);
    let header = Header {
        origin: Origin::Imported,
        host: processes.first().map(|process| process.host.clone()).unwrap_or_default(),
        command: log.job.command.split_whitespace().map(str::to_owned).collect(),
        mounts: log.job.mounts.clone(),
        clock: Clock {
            source: "darshan".to_owned(),
            zero_unix_ns: log.job.start_ns,
            resolution_ns: 1,
            ..Clock::default()
        },
        interposer: "darshan".to_owned(),
        files,
        communicators: match mpi.list.is_empty() {
            true => Vec::new(),
            // Each rank by itself.
            false => (0..log.job.processes as u32).map(|rank| vec![rank]).collect(),
        },
        processes,
        losses,
        inferred,
        ..Header::default()
    };
    Ok(Trace { header, events, ..Trace::default() })
}

impl Log<'_> {
    /// What a file is called, and the file system that it is on.
    fn file(&self, number: u64) -> FileEntry {
        let path = self.names.get(&number).cloned();
        let path = path.unwrap_or_else(|| format!("record {number:016x}"));
        let is_above = |mount: &str| {
            let rest = path.strip_prefix(mount.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let above = self.job.mounts.iter().filter(|(mount, _)| is_above(mount));
        let nearest = above.max_by_key(|(mount, _)| mount.len());
        let file_system = nearest.map(|(_, kind)| kind.clone()).unwrap_or_default();
        FileEntry { path, file_system }
    }
}

fn processes(job: &Job, modules: &[&Accesses]) -> Vec<ProcessEntry> {
    let process = |rank: u64| ProcessEntry {
        name: format!("rank {rank}"),
        rank: rank as i32,
        end_ns: job.took_ns,
        ending: "exited".to_owned(),
        ..ProcessEntry::default()
    };
    let mut processes: Vec<_> = (0..job.processes).map(process).collect();
    for (rank, host) in modules.iter().flat_map(|module| &module.hosts) {
        processes[*rank as usize].host.clone_from(host);
    }
    processes
}

/// Reads and writes of POSIX.
fn accesses_of(counted: &Counted) -> u64 {
    let records = counted.records.iter().filter(|record| record.module == Module::Posix);
    records.map(|record| record.reads.calls + record.writes.calls).fold(0, u64::saturating_add)
}

/// What Darshan counted and is no row, and what it could not keep.
fn losses(posix: &Accesses, mpi: &Accesses, counted: &Counted) -> Losses {
    let mut losses = Losses::default();
    let impossible = posix.impossible + mpi.impossible;
    if impossible > 0 {
        let reason = "with times or lengths that cannot be".to_owned();
        losses.lost_calls.insert(reason, impossible);
    }
    let traced = posix.list.len() as u64 + posix.impossible;
    let lost = accesses_of(counted).saturating_sub(traced);
    if lost > 0 {
        losses.lost_calls.insert("counted, but not kept by DXT".to_owned(), lost);
    }
    let mut leave_out = |name: &str, count: u64| {
        let sum = losses.left_out_calls.entry(name.to_owned()).or_default();
        *sum = sum.saturating_add(count);
    };
    for record in &counted.records {
        match record.module {
            Module::Posix => {
                leave_out("seek", record.seeks);
                leave_out("stat", record.stats);
                leave_out("mmap", record.maps);
                leave_out("fsync", record.syncs);
            }
            Module::Stdio => {
                leave_out("fopen", record.opens);
                leave_out("fread", record.reads.calls);
                leave_out("fwrite", record.writes.calls);
            }
            _ => {}
        }
    }
    losses.left_out_calls.retain(|_, count| *count > 0);
    losses.unseen = counted.lacks.clone();
    losses
}
