//! Reads all records: first those the launcher took out, then those still in the process files.

use super::{Calibration, Side, Spools};
use crate::spool::{
    BELOW, CHUNK_BYTES, CHUNK_RECORDS, Drained, DrainedChunk, PROCESS_MAGIC, Record, SPOOL_VERSION,
    chunk, process as head, read_u32, read_u64, state, take_drained,
};
use crate::{Class, Event, Function};
use iolab_vocab::{FileId, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// The latest time that a trace can hold.
const TIME_MAX_NS: u64 = i64::MAX as u64;

/// A process image as its head tells.
#[derive(Clone, Debug, Default)]
pub(super) struct Process {
    pub(super) index: u32,
    pub(super) pid: u32,
    pub(super) parent: u32,
    pub(super) rank: i32,
    pub(super) host: String,
    pub(super) program: String,
    pub(super) command: Vec<String>,
    pub(super) start: Nanos,
    pub(super) end: Nanos,
    pub(super) ended: bool,
    pub(super) patched: bool,
    pub(super) forked: bool,
}

/// Everything that was read. Events still carry numbers where files belong.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) processes: Vec<Process>,
    pub(super) events: Vec<Event>,
    /// Parts of names by number, in the order they were read.
    pub(super) names: BTreeMap<u32, Vec<(usize, Vec<u8>)>>,
    /// Names that are no paths, by number; filled by `names`.
    pub(super) texts: BTreeMap<u32, String>,
    /// The file each number stands for; filled by `names`.
    pub(super) file_of: Vec<FileId>,
    /// Files that are no spools of this version.
    pub(super) damaged: u64,
    /// Records of functions that are none, or of times that no clock shows.
    pub(super) damaged_records: u64,
}

pub(super) fn gather(spools: &Spools<'_>, side: Side, calibration: &Calibration) -> Gathered {
    let mut gathered = Gathered::default();
    let mut files = BTreeMap::new();
    for bytes in &spools.processes {
        match read_head(bytes, calibration) {
            Some(process) => drop(files.insert(process.index, (process, *bytes))),
            // Without a chunk, its process was ended before it had made it.
            None if read_u32(bytes, head::CHUNKS) == 0 && read_u64(bytes, 0) == 0 => {}
            None => gathered.damaged += 1,
        }
    }
    let taken_out = [spools.drained, spools.told];
    let count: usize =
        taken_out.iter().map(|bytes| count_drained(bytes, calibration, &mut files)).sum();
    gathered
        .events
        .reserve_exact(count + files.values().map(|(_, bytes)| most(bytes)).sum::<usize>());
    let position: BTreeMap<u32, u32> =
        files.keys().zip(0..).map(|(&index, at)| (index, at)).collect();
    let mut sink = Sink { gathered: &mut gathered, side, calibration };
    let drained: BTreeSet<_> =
        taken_out.iter().flat_map(|bytes| sink.take_drained(bytes, &position)).collect();
    for (process, bytes) in files.values() {
        sink.take_file(process.index, position[&process.index], bytes, &drained);
    }
    gathered.processes = files.into_values().map(|(process, _)| process).collect();
    set_ranks_and_ends(&mut gathered);
    gathered
}

/// How many records there are in a drained file; of processes whose file is gone it has the heads, the last of each counts.
fn count_drained<'a>(
    mut bytes: &'a [u8],
    calibration: &Calibration,
    files: &mut BTreeMap<u32, (Process, &'a [u8])>,
) -> usize {
    let mut records = 0;
    while let Some((drained, rest)) = Drained::peek(bytes) {
        match drained {
            // A damaged frame may say any number; a record takes two bytes at least.
            Drained::Chunk { count, .. } => {
                records += (count as usize).min((bytes.len() - rest.len()) / 2);
            }
            Drained::Head(head) => {
                if let Some(process) = read_head(head, calibration) {
                    let file = files.get(&process.index).map_or(&[][..], |(_, file)| file);
                    files.insert(process.index, (process, file));
                }
            }
        }
        bytes = rest;
    }
    records
}

/// An upper bound of the records in a process file.
fn most(bytes: &[u8]) -> usize {
    let there = bytes.len().saturating_sub(CHUNK_BYTES) / CHUNK_BYTES;
    // The file may be larger than what was ever used of it.
    there.min(read_u32(bytes, head::CHUNKS) as usize) * CHUNK_RECORDS
}

fn read_head(bytes: &[u8], calibration: &Calibration) -> Option<Process> {
    let usable = read_u64(bytes, head::MAGIC) == PROCESS_MAGIC
        && read_u32(bytes, head::VERSION) == SPOOL_VERSION
        && read_u32(bytes, head::CHUNK_BYTES) as usize == CHUNK_BYTES;
    if !usable {
        return None;
    }
    let flags = read_u32(bytes, head::FLAGS);
    let start = calibration.nanos(read_u64(bytes, head::START));
    Some(Process {
        index: read_u32(bytes, head::INDEX),
        pid: read_u32(bytes, head::PID),
        parent: read_u32(bytes, head::PARENT),
        rank: read_u32(bytes, head::RANK) as i32,
        host: text(bytes, head::HOST, head::HOST_BYTES),
        program: text(bytes, head::PROGRAM, head::PROGRAM_BYTES),
        command: arguments(bytes),
        start,
        end: calibration.nanos(read_u64(bytes, head::END)).max(start),
        ended: flags & head::ENDED != 0,
        patched: flags & head::PATCHED != 0,
        forked: flags & head::FORKED != 0,
    })
}

fn text(bytes: &[u8], at: usize, room: usize) -> String {
    let bytes = bytes.get(at..bytes.len().min(at + room)).unwrap_or_default();
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn arguments(bytes: &[u8]) -> Vec<String> {
    let room = bytes.len().min(head::COMMAND + head::COMMAND_BYTES);
    let bytes = bytes.get(head::COMMAND..room).unwrap_or_default();
    // Two NULs end the list; an empty argument in the middle would end it early, which costs a
    // name in a display and nothing else.
    let end = bytes.windows(2).position(|two| two == [0, 0]).unwrap_or(bytes.len());
    let list = &bytes[..end];
    if list.is_empty() {
        return Vec::new();
    }
    list.split(|&byte| byte == 0).map(|one| String::from_utf8_lossy(one).into_owned()).collect()
}

struct Sink<'a> {
    gathered: &'a mut Gathered,
    side: Side,
    calibration: &'a Calibration,
}

impl Sink<'_> {
    /// Takes the drained chunks; the answer is which uses of which chunks they were. Those of a process
    /// are taken in the order in which they were begun, not that in which they were drained: the
    /// records of a thread are then in order, and sorting them costs little.
    fn take_drained(
        &mut self,
        mut bytes: &[u8],
        position: &BTreeMap<u32, u32>,
    ) -> BTreeSet<(u32, u32, u32)> {
        let mut frames = Vec::new();
        while let Some((frame, rest)) = Drained::peek(bytes) {
            if let Drained::Chunk { process, chunk, tag, .. } = frame {
                frames.push((process, tag, chunk, bytes));
            }
            bytes = rest;
        }
        frames.sort_by_key(|&(process, tag, chunk, _)| (process, tag, chunk));
        let mut seen = BTreeSet::new();
        for (.., mut frame) in frames {
            let Some(Some(found)) = take_drained(&mut frame) else { continue };
            let DrainedChunk { process, chunk, tag, records } = found;
            let known = position.get(&process);
            if let (Some(&at), true) = (known, seen.insert((process, chunk, tag))) {
                records.iter().for_each(|record| self.take(at, record));
            }
        }
        seen
    }

    fn take_file(
        &mut self,
        process: u32,
        at: u32,
        bytes: &[u8],
        drained: &BTreeSet<(u32, u32, u32)>,
    ) {
        let chunks = (read_u32(bytes, head::CHUNKS) as usize).min(head::CHUNKS_MAX);
        for index in 0..chunks {
            // A chunk that was asked for on a full disk is a hole: looking at it could ask for room.
            if bytes.get(head::STATES + index).is_none_or(|&it| it <= state::FREE) {
                continue;
            }
            let start = (index + 1) * CHUNK_BYTES;
            let Some(body) = bytes.get(start..bytes.len().min(start + CHUNK_BYTES)) else { break };
            let tag = read_u32(body, chunk::TAG);
            if tag != 0 && !drained.contains(&(process, index as u32, tag)) {
                (1..=CHUNK_RECORDS)
                    .filter_map(|slot| Record::read(body, slot, tag))
                    .for_each(|record| self.take(at, &record));
            }
        }
    }

    fn take(&mut self, process: u32, record: &Record) {
        if record.is_text() {
            self.gathered.names.entry(record.number).or_default().push(record.text());
            return;
        }
        let below = record.function & BELOW != 0;
        // Opens are not repeated below; both sides need them to know the files.
        let opens = record.called().class() == Class::Open;
        if below != (self.side == Side::Below) && !opens {
            return;
        }
        let (start, end) =
            (self.calibration.nanos(record.start), self.calibration.nanos(record.end));
        if record.called().row().is_none() || start.0.max(end.0) > TIME_MAX_NS {
            self.gathered.damaged_records += 1;
            return;
        }
        self.gathered.events.push(Event {
            rank: -1,
            process,
            thread: u32::from(record.thread),
            function: record.called(),
            // A number for now; `names` puts the file in its place. 0 stands for none.
            file: FileId(record.number.wrapping_sub(1)),
            fd: record.fd,
            offset: record.offset,
            length: record.length,
            argument: record.argument,
            start,
            end,
            result: record.result,
            parent: -1,
        });
    }
}

fn set_ranks_and_ends(gathered: &mut Gathered) {
    // A process that was started without a launcher learns its rank from MPI.
    for event in gathered.events.iter().filter(|event| event.function == Function::MPI_INIT) {
        let process = &mut gathered.processes[event.process as usize];
        if let (true, Ok(rank)) = (process.rank < 0, i32::try_from(event.argument)) {
            process.rank = rank;
        }
    }
    for event in &mut gathered.events {
        let process = &mut gathered.processes[event.process as usize];
        event.rank = process.rank;
        process.end = process.end.max(event.end);
    }
}
