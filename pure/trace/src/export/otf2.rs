//! An archive of OTF2, as the words of a clerk who calls libotf2: one line for each definition and event.
//!
//! Libotf2 alone writes archives that tools of OTF2 read, and it is loaded by a process of its own (`iolab_host::otf2`);
//! this file says what is in one. A line is a word, numbers, and for names a text at its end, in which `\n` and `\\`
//! stand for an end of line and a backslash:
//!
//! ```text
//! string 4 /data/a                     what follows names it by 4
//! node ID NAME CLASS PARENT            a machine, a host
//! region ID NAME PARADIGM ROLE
//! paradigm ID IDENTIFICATION NAME CLASS FLAGS
//! file ID NAME NODE
//! group ID NAME NODE                   a process
//! handle ID FILE PARADIGM
//! location ID NAME GROUP               a thread; its events follow until `close ID`
//! enter LOCATION TIME REGION           and `leave`
//! create LOCATION TIME HANDLE ACCESS CREATION STATUS
//! destroy LOCATION TIME HANDLE
//! begin LOCATION TIME HANDLE MODE FLAGS BYTES ID OFFSET
//! complete LOCATION TIME HANDLE BYTES ID
//! cancel LOCATION TIME HANDLE ID
//! seek LOCATION TIME HANDLE OFFSET WHENCE RESULT
//! delete LOCATION TIME PARADIGM FILE
//! send LOCATION TIME PLACE COMMUNICATOR TAG BYTES REQUEST
//! sent LOCATION TIME REQUEST
//! expect LOCATION TIME REQUEST         a receive that is waited for
//! receive LOCATION TIME PLACE COMMUNICATOR TAG BYTES REQUEST
//! gather LOCATION TIME                 a collective call begins, and ends:
//! gathered LOCATION TIME OPERATION COMMUNICATOR ROOT SENT RECEIVED
//! ranks ID NAME LOCATION…              group 0 has the location of each rank, the others ranks
//! communicator ID NAME GROUP
//! clock LENGTH UNIX_NS
//! end                                  without it the archive is not whole
//! ```
//!
//! Numbers of modes, roles and flags are OTF2's. −1 is what is not known.

mod flags;
mod lanes;
mod messages;

use crate::{Class, Event, Header, Layer, function};
use flags::open_flags;
use lanes::Thread;
use messages::Messages;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What I/O of a layer is called there, with class and flags; a paradigm's number is its place.
const PARADIGMS: [(Layer, &str, &str, u64, u64); 3] = [
    (Layer::Posix, "POSIX", "POSIX I/O", 0, 1),
    (Layer::Stdio, "ISOC", "ISO C I/O", 0, 0),
    (Layer::Mpiio, "MPI-IO", "MPI-IO", 1, 0),
];

/// `OTF2_REGION_ROLE_FUNCTION` and `OTF2_REGION_ROLE_FILE_IO`.
const ROLES: [u64; 2] = [1, 27];
/// `OTF2_PARADIGM_UNKNOWN` and `OTF2_PARADIGM_MPI`.
const REGION_PARADIGMS: [u64; 2] = [0, 4];
/// `OTF2_IO_OPERATION_MODE_READ`, `_WRITE` and `_FLUSH`.
const MODES: [u64; 3] = [0, 1, 2];
/// The latest of `OTF2_IO_SEEK_FROM_START`, `_FROM_CURRENT`, `_FROM_END`, `_DATA`, `_HOLE`: as Linux numbers them.
const WHENCE_LAST: i64 = 4;

fn paradigm(layer: Layer) -> Option<usize> {
    PARADIGMS.iter().position(|row| row.0 == layer)
}

fn is_exported(layer: Layer) -> bool {
    paradigm(layer).is_some() || matches!(layer, Layer::Mpi | Layer::Hdf5 | Layer::Netcdf)
}

/// Writes the lines. Answers how many rows of servers, devices and networks were left out: what they did was no call.
///
/// # Errors
/// Those of the sink.
pub fn otf2(
    header: &Header,
    rows: impl IntoIterator<Item = Event>,
    sink: impl Write,
) -> io::Result<u64> {
    let mut archive = Archive {
        sink,
        header,
        strings: 0,
        locations: 0,
        operations: 0,
        handles: BTreeMap::new(),
        messages: Messages::new(header),
        length: 0,
    };
    archive.define()?;
    let mut left_out = 0;
    let mut thread: Option<Thread> = None;
    for (row, event) in (0_i64..).zip(rows) {
        let is_of_a_process = (event.process as usize) < header.processes.len();
        if !is_exported(event.function.layer()) || !is_of_a_process {
            left_out += 1;
            continue;
        }
        let of = (event.process, event.thread);
        if let Some(before) = thread.take_if(|thread| thread.of != of) {
            archive.close(before)?;
        }
        archive.call(thread.get_or_insert_with(|| Thread::new(of)), row, event)?;
    }
    thread.map_or(Ok(()), |last| archive.close(last))?;
    archive.define_ranks()?;
    writeln!(archive.sink, "clock {} {}", archive.length, header.clock.zero_unix_ns)?;
    writeln!(archive.sink, "end")?;
    archive.sink.flush()?;
    Ok(left_out)
}

/// An open file: process, paradigm, descriptor, file.
type HandleKey = (u32, usize, i32, u32);

struct Archive<'a, W> {
    sink: W,
    header: &'a Header,
    strings: u64,
    locations: u64,
    operations: u64,
    handles: BTreeMap<HandleKey, u64>,
    messages: Messages,
    length: u64,
}

impl<W: Write> Archive<'_, W> {
    fn string(&mut self, text: &str) -> io::Result<u64> {
        let id = self.strings;
        self.strings += 1;
        let text = text.replace('\\', "\\\\").replace('\n', "\\n").replace('\0', "?");
        writeln!(self.sink, "string {id} {text}")?;
        Ok(id)
    }

    /// What all events refer to: regions are numbered as functions are, files and processes as in the header.
    fn define(&mut self) -> io::Result<()> {
        let header = self.header;
        // What has no description has the first text.
        self.string("")?;
        let (machine, node) = (self.string("machine")?, self.string("node")?);
        writeln!(self.sink, "node 0 {machine} {machine} -1")?;
        let mut hosts: BTreeMap<&str, u64> = BTreeMap::new();
        for process in &header.processes {
            let host = if process.host.is_empty() { &header.host } else { &process.host };
            let next = hosts.len() as u64 + 1;
            let at = *hosts.entry(host).or_insert(next);
            if at == next {
                let name = self.string(host)?;
                writeln!(self.sink, "node {at} {name} {node} 0")?;
            }
        }
        for row in function::TABLE.iter().filter(|row| is_exported(row.layer)) {
            let name = self.string(row.name)?;
            let is_mpi = matches!(row.layer, Layer::Mpi | Layer::Mpiio);
            let paradigm = REGION_PARADIGMS[usize::from(is_mpi)];
            let role = ROLES[usize::from(row.layer != Layer::Mpi)];
            writeln!(self.sink, "region {} {name} {paradigm} {role}", row.function.0)?;
        }
        for (id, (_, identification, name, class, flags)) in PARADIGMS.into_iter().enumerate() {
            let (identification, name) = (self.string(identification)?, self.string(name)?);
            writeln!(self.sink, "paradigm {id} {identification} {name} {class} {flags}")?;
        }
        for (id, file) in header.files.iter().enumerate() {
            let name = self.string(&file.path)?;
            writeln!(self.sink, "file {id} {name} 0")?;
        }
        for (id, process) in header.processes.iter().enumerate() {
            let name = match process.rank {
                rank @ 0.. => self.string(&format!("MPI Rank {rank}"))?,
                _ => self.string(&process.name)?,
            };
            let host = if process.host.is_empty() { &header.host } else { &process.host };
            writeln!(self.sink, "group {id} {name} {}", hosts[host.as_str()])?;
        }
        Ok(())
    }

    /// Who the partners of messages are: known when all locations are.
    fn define_ranks(&mut self) -> io::Result<()> {
        for (group, (text, members)) in self.messages.definitions().into_iter().enumerate() {
            let name = self.string(&text)?;
            write!(self.sink, "ranks {group} {name}")?;
            for member in members {
                write!(self.sink, " {member}")?;
            }
            writeln!(self.sink)?;
            if let Some(communicator) = group.checked_sub(1) {
                writeln!(self.sink, "communicator {communicator} {name} {group}")?;
            }
        }
        Ok(())
    }

    /// A line of an event on a location.
    fn told(&mut self, word: &str, location: u64, time: u64, numbers: &[i64]) -> io::Result<()> {
        write!(self.sink, "{word} {location} {time}")?;
        for number in numbers {
            write!(self.sink, " {number}")?;
        }
        writeln!(self.sink)
    }

    /// Ends what is under way on a thread, and its locations.
    fn close(&mut self, mut thread: Thread) -> io::Result<()> {
        for at in 0..thread.lanes.len() {
            while let Some(ended) = thread.lanes[at].pop() {
                self.leave(thread.lanes[at].location, &ended)?;
            }
            writeln!(self.sink, "close {}", thread.lanes[at].location)?;
        }
        Ok(())
    }

    /// A row: what ended before it is left, then it is entered.
    fn call(&mut self, thread: &mut Thread, row: i64, event: Event) -> io::Result<()> {
        let event = Event { end: event.end.max(event.start), ..event };
        self.length = self.length.max(event.end.0);
        let at = match thread.lane_for(&event) {
            Some(at) => at,
            None => {
                let (location, lane) = (self.locations, thread.lanes.len());
                self.locations += 1;
                let beside = if lane == 0 { "" } else { ", at the same time" };
                let name = self.string(&format!("thread {}{beside}", event.thread))?;
                writeln!(self.sink, "location {location} {name} {}", event.process)?;
                self.messages.located(event.rank, location);
                thread.add(location)
            }
        };
        let location = thread.lanes[at].location;
        while let Some(ended) = thread.lanes[at].pop_before(&event) {
            self.leave(location, &ended)?;
        }
        let operation = self.enter(location, &event)?;
        thread.lanes[at].push(lanes::Open { row, event, operation });
        Ok(())
    }

    /// Answers what the operation is called that begins with the call, if one does.
    fn enter(&mut self, location: u64, event: &Event) -> io::Result<Option<u64>> {
        let (time, function) = (event.start.0, event.function);
        writeln!(self.sink, "enter {location} {time} {}", function.0)?;
        for (word, numbers) in self.messages.begun(event) {
            self.told(word, location, time, &numbers)?;
        }
        let mode = match function.class() {
            Class::Read => MODES[0],
            Class::Write => MODES[1],
            Class::Sync | Class::Flush => MODES[2],
            _ => return Ok(None),
        };
        let Some(handle) = self.handle(event)? else { return Ok(None) };
        self.operations += 1;
        let (id, bytes) = (self.operations, event.length.max(event.result).max(0));
        let bytes = if mode == MODES[2] { 0 } else { bytes };
        let offset = if mode == MODES[2] { -1 } else { event.offset.max(-1) };
        let flags = flags::of_operation(function);
        writeln!(
            self.sink,
            "begin {location} {time} {handle} {mode} {flags} {bytes} {id} {offset}"
        )?;
        Ok(Some(id))
    }

    fn leave(&mut self, location: u64, ended: &lanes::Open) -> io::Result<()> {
        let lanes::Open { event, operation, .. } = ended;
        let (time, function, result) = (event.end.0, event.function, event.result);
        if let Some((word, numbers)) = self.messages.ended(event) {
            self.told(word, location, time, &numbers)?;
        }
        let handle = match function.class() {
            _ if operation.is_some() => self.handle(event)?,
            Class::Open | Class::Close | Class::Seek if result >= 0 => self.handle(event)?,
            _ => None,
        };
        let sink = &mut self.sink;
        match (handle, operation) {
            (Some(handle), Some(id)) if result < 0 => {
                writeln!(sink, "cancel {location} {time} {handle} {id}")?;
            }
            (Some(handle), Some(id)) => {
                let bytes = if function.class().moves_data() { event.moved_bytes() } else { 0 };
                writeln!(sink, "complete {location} {time} {handle} {bytes} {id}")?;
            }
            (Some(handle), None) => match function.class() {
                Class::Open => {
                    let [access, creation, status] = open_flags(event);
                    writeln!(
                        sink,
                        "create {location} {time} {handle} {access} {creation} {status}"
                    )?;
                }
                Class::Close => writeln!(sink, "destroy {location} {time} {handle}")?,
                _ => {
                    let whence = event.argument.clamp(0, WHENCE_LAST);
                    let asked = event.offset;
                    writeln!(sink, "seek {location} {time} {handle} {asked} {whence} {result}")?;
                }
            },
            (None, _) => {
                let is_deleted = function.class() == Class::Unlink && result >= 0;
                let named = paradigm(function.layer()).zip(event.file.index());
                if let (true, Some((paradigm, file))) = (is_deleted, named) {
                    writeln!(sink, "delete {location} {time} {paradigm} {file}")?;
                }
            }
        }
        writeln!(sink, "leave {location} {time} {}", function.0)
    }

    /// The open file that a call is on, defined when it is met for the first time.
    fn handle(&mut self, event: &Event) -> io::Result<Option<u64>> {
        let known = self.header.files.len();
        let file = event.file.index().filter(|file| *file < known);
        let Some((paradigm, file)) = paradigm(event.function.layer()).zip(file) else {
            return Ok(None);
        };
        let opens = event.function.class() == Class::Open && event.result > 0;
        // What opens a file tells its descriptor as the result.
        let fd = if opens { i32::try_from(event.result).unwrap_or(-1) } else { event.fd };
        let key = (event.process, paradigm, fd, file as u32);
        if let Some(&handle) = self.handles.get(&key) {
            return Ok(Some(handle));
        }
        let handle = self.handles.len() as u64;
        self.handles.insert(key, handle);
        writeln!(self.sink, "handle {handle} {file} {paradigm}")?;
        Ok(Some(handle))
    }
}
