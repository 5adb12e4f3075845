//! Accesses of a log as rows of a trace: threads, opens and closes, and what lies inside what.

use super::accesses::Access;
use crate::{Event, Function, event};
use iolab_vocab::{Direction, FileId, Nanos};
use std::collections::{BTreeMap, BTreeSet};

const READ_ONLY: i64 = 0;
const WRITE_ONLY: i64 = 0o1;
const READ_WRITE: i64 = 0o2;
const CREATE: i64 = 0o100;

/// Modes of MPI, as traces write them.
const MPI_CREATE: i64 = 1;
const MPI_READ_ONLY: i64 = 2;
const MPI_WRITE_ONLY: i64 = 4;
const MPI_READ_WRITE: i64 = 8;

/// Calls of one rank on one file rarely overlap; more under way at once are not looked at.
const MOST_UNDER_WAY: usize = 64;

/// The threads of a rank: those that it named, each as often as its accesses overlap.
#[derive(Default)]
struct Lanes {
    /// The thread's number, and when its last access ended.
    ends: Vec<(u64, Nanos)>,
}

impl Lanes {
    fn of(&mut self, access: &Access) -> u32 {
        let free = |&(thread, end): &(u64, Nanos)| thread == access.thread && end <= access.start;
        let lane = self.ends.iter().position(free).unwrap_or_else(|| {
            self.ends.push((access.thread, Nanos::ZERO));
            self.ends.len() - 1
        });
        self.ends[lane].1 = access.end;
        lane as u32
    }
}

/// What a rank does with a file.
#[derive(Default)]
struct Use {
    /// Its descriptor; the handle of MPI is the number behind it.
    fd: i32,
    file: FileId,
    /// When and in which lane its first access begins.
    first: (Nanos, u32),
    /// When and in which lane its last access ends.
    last: (Nanos, u32),
    reads: bool,
    writes: bool,
    /// Places of accesses of MPI-IO, by their start.
    calls_mpi: Vec<usize>,
    calls_posix: bool,
}

/// All rows, in the order of traces. Files are numbered by `file`.
pub(super) fn rows(
    mpi: &[Access],
    posix: &[Access],
    mut file: impl FnMut(u64) -> FileId,
) -> Vec<Event> {
    let mut rows: Vec<Event> = Vec::with_capacity(mpi.len() + posix.len());
    // Accesses whose offset is that of the lowest one inside.
    let mut guessed: BTreeSet<usize> = BTreeSet::new();
    let mut lanes: BTreeMap<u32, Lanes> = BTreeMap::new();
    let mut uses: BTreeMap<(u32, u64), Use> = BTreeMap::new();
    let mut open_files: BTreeMap<u32, i32> = BTreeMap::new();
    let posix_calls = posix.iter().map(|access| (access, false));
    let mut calls: Vec<_> = mpi.iter().map(|access| (access, true)).chain(posix_calls).collect();
    // What others lie in comes before them: the longer one of two that begin together.
    calls.sort_by_key(|(access, is_mpi)| {
        (access.rank, access.start, !is_mpi, std::cmp::Reverse(access.end))
    });
    for (access, is_mpi) in calls {
        let used = uses.entry((access.rank, access.file)).or_insert_with(|| {
            let count = open_files.entry(access.rank).or_default();
            *count += 1;
            Use { fd: 1 + 2 * *count, file: file(access.file), ..Use::default() }
        });
        let outer = if is_mpi { None } else { around(&rows, &used.calls_mpi, access) };
        let thread = match outer {
            Some(row) => rows[row].thread,
            None => lanes.entry(access.rank).or_default().of(access),
        };
        if let Some(row) = outer.filter(|_| access.offset >= 0) {
            let known = &mut rows[row].offset;
            if *known < 0 || (guessed.contains(&row) && access.offset < *known) {
                *known = access.offset;
                guessed.insert(row);
            }
        }
        if !used.reads && !used.writes {
            used.first = (access.start, thread);
        }
        used.last = used.last.max((access.end, thread));
        used.reads |= access.direction == Direction::Read;
        used.writes |= access.direction == Direction::Write;
        used.calls_posix |= !is_mpi;
        if is_mpi {
            used.calls_mpi.push(rows.len());
        }
        rows.push(Event {
            thread,
            file: used.file,
            fd: used.fd + i32::from(is_mpi),
            offset: access.offset,
            length: access.length,
            start: access.start,
            end: access.end,
            result: access.length,
            parent: outer.map_or(-1, |row| row as i64),
            ..of_rank(function(access.direction, is_mpi), access.rank)
        });
    }
    let sizes = sizes(mpi, posix);
    for ((rank, number), used) in &uses {
        used.open_and_close(*rank, sizes.get(number).copied().unwrap_or(0), &mut rows);
    }
    event::sort(&mut rows);
    rows
}

/// The access of MPI-IO that this one lies in: of several the last to begin.
fn around(rows: &[Event], calls_mpi: &[usize], access: &Access) -> Option<usize> {
    calls_mpi.iter().rev().take(MOST_UNDER_WAY).copied().find(|row| {
        let event = &rows[*row];
        event.start <= access.start && access.end <= event.end
    })
}

fn function(direction: Direction, is_mpi: bool) -> Function {
    match (direction, is_mpi) {
        (Direction::Read, true) => Function::MPI_FILE_READ,
        (Direction::Write, true) => Function::MPI_FILE_WRITE,
        (Direction::Read, false) => Function::PREAD,
        (Direction::Write, false) => Function::PWRITE,
    }
}

fn of_rank(function: Function, rank: u32) -> Event {
    Event { rank: rank as i32, process: rank, ..Event::of(function) }
}

impl Use {
    fn open_and_close(&self, rank: u32, size_bytes: i64, rows: &mut Vec<Event>) {
        let (flags, mode) = match (self.reads, self.writes) {
            (_, false) => (READ_ONLY, MPI_READ_ONLY),
            (false, true) => (WRITE_ONLY | CREATE, MPI_WRITE_ONLY | MPI_CREATE),
            (true, true) => (READ_WRITE | CREATE, MPI_READ_WRITE | MPI_CREATE),
        };
        let mut layer = |open: Event, close: Function, fd: i32| {
            let open = Event { length: size_bytes, result: fd.into(), ..open };
            let close = Event { fd, ..of_rank(close, rank) };
            for (event, (moment, thread)) in [(open, before(self.first)), (close, self.last)] {
                rows.push(Event { thread, file: self.file, start: moment, end: moment, ..event });
            }
        };
        if !self.calls_mpi.is_empty() {
            // The communicator of the rank by itself has its number.
            let open = of_rank(Function::MPI_FILE_OPEN, rank);
            let open = Event { fd: self.fd + 1, offset: rank.into(), argument: mode, ..open };
            layer(open, Function::MPI_FILE_CLOSE, self.fd + 1);
        }
        if self.calls_posix {
            let open = Event { argument: flags, ..of_rank(Function::OPEN, rank) };
            layer(open, Function::CLOSE, self.fd);
        }
    }
}

/// A file is open when its first access begins.
fn before((moment, thread): (Nanos, u32)) -> (Nanos, u32) {
    (Nanos(moment.0.saturating_sub(1)), thread)
}

/// How long files were before the run, at least: what was read of each before anything was written to it.
fn sizes(mpi: &[Access], posix: &[Access]) -> BTreeMap<u64, i64> {
    let all = || mpi.iter().chain(posix);
    let mut written: BTreeMap<u64, Nanos> = BTreeMap::new();
    for write in all().filter(|access| access.direction == Direction::Write) {
        let since = written.entry(write.file).or_insert(write.start);
        *since = (*since).min(write.start);
    }
    let mut sizes: BTreeMap<u64, i64> = BTreeMap::new();
    for read in all().filter(|access| access.direction == Direction::Read && access.offset >= 0) {
        if written.get(&read.file).is_none_or(|since| read.end <= *since) {
            let size = sizes.entry(read.file).or_default();
            *size = (*size).max(read.offset.saturating_add(read.length));
        }
    }
    sizes
}
