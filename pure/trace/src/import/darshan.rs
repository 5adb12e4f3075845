//! Logs of Darshan, formats 3.00 to 3.41 in either byte order, as far as DXT kept single accesses
//! (`DXT_ENABLE_IO_TRACE=1`).
//!
//! DXT has no opens, closes, seeks or syncs, and does not say what was collective; opens and closes are put
//! where a rank's accesses of a file begin and end, the rest is counted in the header.

mod accesses;
mod counters;
mod log;
mod rows;

pub use log::is_log_head as is_darshan;

use crate::{Clock, FileEntry, Header, Losses, Origin, ProcessEntry, Trace};
use accesses::Accesses;
use counters::Counts;
use iolab_vocab::FileId;
use log::{Job, Log, Module};
use std::collections::BTreeMap;
use std::fmt;

/// Why a log of Darshan could not become a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DarshanError {
    /// It does not begin as a log of Darshan 3 does.
    NotALog,
    /// A packed file, as logs of Darshan 2 are.
    Packed,
    /// A version that nobody here knows, of the format or of a module.
    Format(String),
    /// It contradicts itself or is cut.
    Damaged(String),
    /// More accesses than are taken at once.
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
            DarshanError::Format(_) => "formats 3.00 to 3.41 are read",
            DarshanError::Damaged(_) => "see whether darshan-parser of its version reads it",
            DarshanError::TooLarge(_) => "cut it with darshan-merge, or record with a DXT trigger",
            DarshanError::CountersOnly(_) => {
                "set DXT_ENABLE_IO_TRACE=1 where the program runs, or record it with `iolab record`"
            }
        }
    }
}

impl fmt::Display for DarshanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DarshanError::NotALog => write!(f, "this is no log of Darshan"),
            DarshanError::Packed => write!(f, "this looks like a packed log, or one of Darshan 2"),
            DarshanError::Format(version) => write!(f, "version {version} is not known"),
            DarshanError::Damaged(what) => write!(f, "the log is damaged: {what}"),
            DarshanError::TooLarge(most) => write!(f, "it has more than {most} accesses"),
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
    let counts = counters::posix(&log)?.unwrap_or_default();
    if [Module::DxtPosix, Module::DxtMpiIo].iter().all(|module| log.version(*module).is_none()) {
        let counted = |name| counts.get(name).copied().unwrap_or(0);
        return Err(DarshanError::CountersOnly(counted("read").saturating_add(counted("write"))));
    }
    let mut ids = BTreeMap::new();
    let mut files = Vec::new();
    let events = rows::rows(&mpi.list, &posix.list, |number| {
        *ids.entry(number).or_insert_with(|| {
            files.push(log.file(number));
            FileId(files.len() as u32 - 1)
        })
    });
    let losses = losses(&log, &posix, &mpi, &counts)?;
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

/// What Darshan counted and is no row, and what it could not keep.
fn losses(
    log: &Log<'_>,
    posix: &Accesses,
    mpi: &Accesses,
    counts: &Counts,
) -> Result<Losses, DarshanError> {
    let mut losses = Losses::default();
    let impossible = posix.impossible + mpi.impossible;
    if impossible > 0 {
        let reason = "with times or lengths that cannot be".to_owned();
        losses.lost_calls.insert(reason, impossible);
    }
    let traced = posix.list.len() as u64 + posix.impossible;
    let counted = ["read", "write"].map(|name| counts.get(name).copied().unwrap_or(0));
    let counted = counted[0].saturating_add(counted[1]);
    if counted > traced {
        losses.lost_calls.insert("counted, but not kept by DXT".to_owned(), counted - traced);
    }
    let no_rows = ["seek", "stat", "mmap", "fsync", "fdatasync"];
    let counts = no_rows.iter().filter_map(|name| Some((*name, *counts.get(name)?)));
    let counts: Counts = counts.chain(counters::stdio(log)?).collect();
    let left_out = counts.into_iter().filter(|(_, count)| *count > 0);
    losses.left_out_calls = left_out.map(|(name, count)| (name.to_owned(), count)).collect();
    for module in Module::ALL.into_iter().filter(|module| log.is_partial(*module)) {
        losses.unseen.push(format!("a part of {}: Darshan's memory was full", module.name()));
    }
    Ok(losses)
}
