//! Traces of HDTrace (Kunkel and others, Heidelberg 2005-2013), the recorder behind PIOsimHD.
//!
//! A project file (`.proj`) has the program's files, where its processes ran, communicators and
//! datatypes; each thread has a trace file (`.trc`) of the calls of MPI it made. What a call did
//! inside (the messages of a broadcast) stands in `<Nested>` before it and becomes rows with the
//! call as parent. File views become extents: an access in several pieces has a `piece` row for
//! each. Calls that this importer has no function for are left out and counted by name.
//!
//! Malformed and cut files are refused with file and line: a half trace would simulate as a
//! program that stops in the middle.

mod call;
mod datatype;
mod project;
mod xml;

pub(super) use call::function as function_of_mpi;

pub use project::Project;

use super::shared::{TIME_END_NS, end_processes};
use crate::datatype::View;
use crate::{Clock, Event, FileEntry, Function, Origin, ProcessEntry, Trace};
use datatype::Datatypes;
use iolab_vocab::{Extent, FileId, Nanos};
use project::Thread;
use std::collections::BTreeMap;
use std::fmt;
use xml::{Document, Element};

/// What is wrong with a file of HDTrace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HdtraceError {
    /// Which file.
    pub file: String,
    /// In which line, counted from 1.
    pub line: usize,
    /// What.
    pub what: String,
}

impl HdtraceError {
    fn at(file: &str, line: usize, what: String) -> HdtraceError {
        HdtraceError { file: file.to_owned(), line, what }
    }
}

impl fmt::Display for HdtraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}: {}", self.file, self.line, self.what)
    }
}

impl std::error::Error for HdtraceError {}

/// A trace file by its name.
pub struct TraceFile<'a> {
    /// Its name, for errors.
    pub name: &'a str,
    /// What is in it.
    pub bytes: &'a [u8],
}

/// The program's files by name.
struct Names {
    known: BTreeMap<String, FileId>,
    sizes: Vec<u64>,
    entries: Vec<FileEntry>,
}

/// A file that a process has open.
struct Opened {
    file: FileId,
    view: Option<View>,
}

/// The trace file of one thread on its way to rows.
struct Lane<'a> {
    file: String,
    process: u32,
    thread: &'a Thread,
    /// Unix time of the file's time zero.
    zero_unix_ns: u64,
    communicator_of: &'a BTreeMap<(u32, i64), usize>,
    datatypes: &'a Datatypes,
    names: &'a mut Names,
    opened: BTreeMap<i64, Opened>,
    left_out: &'a mut BTreeMap<String, u64>,
    /// Rows for the further requests of the wait just read.
    waits: Vec<Event>,
    /// Rows so far, with parents as indices into the same list and times as Unix time.
    rows: Vec<Event>,
}

impl Project {
    /// Makes a trace of the project and its trace files, which come in the order of
    /// [`Project::trace_names`].
    pub fn import(&self, traces: &[TraceFile]) -> Result<Trace, HdtraceError> {
        assert_eq!(traces.len(), self.threads.len(), "one trace file per thread");
        let mut trace = Trace::default();
        let mut names = Names::of(self);
        let none = Datatypes::default();
        for (thread, file) in self.threads.iter().zip(traces) {
            let process = process_of(&mut trace.header.processes, thread);
            let mut lane = Lane {
                file: file.name.to_owned(),
                process,
                thread,
                zero_unix_ns: 0,
                communicator_of: &self.communicator_of,
                datatypes: self.datatypes.get(&thread.rank).unwrap_or(&none),
                names: &mut names,
                opened: BTreeMap::new(),
                left_out: &mut trace.header.losses.left_out_calls,
                waits: Vec::new(),
                rows: Vec::new(),
            };
            lane.read(file.bytes)?;
            let rows = in_order(lane.rows);
            append(&mut trace.events, rows);
        }
        self.describe(&mut trace, names);
        Ok(trace)
    }

    fn describe(&self, trace: &mut Trace, names: Names) {
        let zero = trace.events.iter().map(|event| event.start.0).min().unwrap_or(0);
        for event in &mut trace.events {
            (event.start, event.end) = (Nanos(event.start.0 - zero), Nanos(event.end.0 - zero));
        }
        end_processes(&mut trace.header, &trace.events);
        let header = &mut trace.header;
        header.format_version = crate::FORMAT_VERSION;
        header.origin = Origin::Imported;
        header.interposer = "hdtrace".to_owned();
        header.command = vec![self.application.clone()];
        header.host = self.threads[0].host.clone();
        header.files = names.entries;
        header.communicators = self.communicators.clone();
        header.clock = Clock {
            source: "hdtrace".to_owned(),
            zero_unix_ns: zero,
            resolution_ns: 1_000,
            ..Clock::default()
        };
        header.losses.unseen.push("calls other than those of MPI".to_owned());
        header.inferred.push("bytes moved: what the calls asked for".to_owned());
    }
}

/// The index of the thread's process, which comes into the list with its first thread.
fn process_of(processes: &mut Vec<ProcessEntry>, thread: &Thread) -> u32 {
    if processes.last().is_none_or(|last| last.rank != thread.rank as i32) {
        processes.push(ProcessEntry {
            name: format!("rank {}", thread.rank),
            rank: thread.rank as i32,
            host: thread.host.clone(),
            ending: "exited".to_owned(),
            ..ProcessEntry::default()
        });
    }
    processes.len() as u32 - 1
}

/// Rows by start, outer before inner; parents are renumbered.
fn in_order(rows: Vec<Event>) -> Vec<Event> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|&row| rows[row].start);
    let mut place = vec![0; rows.len()];
    order.iter().enumerate().for_each(|(new, &old)| place[old] = new);
    let moved = |&row: &usize| {
        let event = rows[row];
        let parent = usize::try_from(event.parent).map_or(-1, |parent| place[parent] as i64);
        Event { parent, ..event }
    };
    order.iter().map(moved).collect()
}

fn append(events: &mut Vec<Event>, rows: Vec<Event>) {
    let first = events.len() as i64;
    let shifted = |event: Event| match event.parent {
        -1 => event,
        parent => Event { parent: parent + first, ..event },
    };
    events.extend(rows.into_iter().map(shifted));
}

impl Names {
    fn of(project: &Project) -> Names {
        let mut names = Names { known: BTreeMap::new(), sizes: Vec::new(), entries: Vec::new() };
        for (name, size) in &project.files {
            let (file, _) = names.find(name);
            names.sizes[file.0 as usize] = *size;
        }
        names
    }

    /// A file and its size at the start; one the project does not declare starts empty.
    fn find(&mut self, name: &str) -> (FileId, u64) {
        let next = FileId(self.entries.len() as u32);
        let file = *self.known.entry(name.to_owned()).or_insert(next);
        if file == next {
            self.entries.push(FileEntry { path: name.to_owned(), ..FileEntry::default() });
            self.sizes.push(0);
        }
        (file, self.sizes[file.0 as usize])
    }
}

impl Lane<'_> {
    fn read(&mut self, bytes: &[u8]) -> Result<(), HdtraceError> {
        let file = self.file.clone();
        let mut document = Document::open(&file, bytes)?;
        let root = document.root();
        if root.name != "Program" {
            return Err(root.wrong(&file, "a trace file of HDTrace begins with <Program>"));
        }
        if let Some(text) = root.attribute("timeAdjustment") {
            self.zero_unix_ns = self.nanos(root, text)?;
        }
        let mut nested = Vec::new();
        while let Some(element) = document.child()? {
            self.take(element, -1, &mut nested)?;
        }
        Ok(())
    }

    /// An element among its siblings: `<Nested>` waits for the call it belongs to.
    fn take(
        &mut self,
        element: Element,
        parent: i64,
        nested: &mut Vec<Element>,
    ) -> Result<(), HdtraceError> {
        if element.name == "Nested" {
            nested.push(element);
            return Ok(());
        }
        let inside = std::mem::take(nested);
        let Some(function) = call::function(&element.name) else {
            self.leave_out(&element);
            inside.iter().flat_map(|nested| &nested.children).for_each(|one| self.leave_out(one));
            return Ok(());
        };
        let row = self.add(function, &element, parent)?;
        for outer in inside {
            let mut nested = Vec::new();
            for child in outer.children {
                self.take(child, row, &mut nested)?;
            }
        }
        Ok(())
    }

    /// Counts what is left out with all that happened inside it.
    fn leave_out(&mut self, element: &Element) {
        if element.name != "Nested" {
            *self.left_out.entry(element.name.clone()).or_default() += 1;
        }
        element
            .children
            .iter()
            .filter(|child| child.attribute("time").is_some())
            .for_each(|child| *self.left_out.entry(child.name.clone()).or_default() += 1);
    }

    fn add(
        &mut self,
        function: Function,
        element: &Element,
        parent: i64,
    ) -> Result<i64, HdtraceError> {
        let start = self.time(element, "time")?;
        let end = self.time(element, "end")?;
        if end < start {
            return Err(element.wrong(&self.file, "it ends before it begins"));
        }
        let event = Event {
            rank: self.thread.rank as i32,
            process: self.process,
            thread: self.thread.thread,
            start,
            end,
            parent,
            ..Event::of(function)
        };
        let mut pieces = Vec::new();
        let event = self.arguments(event, element, &mut pieces)?;
        let row = self.rows.len() as i64;
        self.rows.push(event);
        self.rows.extend(pieces.iter().map(|piece| piece_of(event, row, *piece)));
        self.rows.append(&mut self.waits);
        Ok(row)
    }

    fn time(&self, element: &Element, name: &str) -> Result<Nanos, HdtraceError> {
        let since = self.nanos(element, element.wanted(&self.file, name)?)?;
        Ok(Nanos(self.zero_unix_ns.saturating_add(since)))
    }

    fn nanos(&self, element: &Element, text: &str) -> Result<u64, HdtraceError> {
        seconds(text).ok_or_else(|| element.wrong(&self.file, format!("`{text}` is no time")))
    }

    /// Index of the communicator that the element names, -1 for one the project does not declare.
    fn communicator(&self, element: &Element) -> Result<i32, HdtraceError> {
        let key = (self.thread.rank, element.number(&self.file, "cid")?);
        Ok(self.communicator_of.get(&key).map_or(-1, |index| *index as i32))
    }
}

fn piece_of(event: Event, row: i64, piece: Extent) -> Event {
    Event {
        function: Function::VIEW_PIECE,
        offset: piece.offset as i64,
        length: piece.length as i64,
        argument: -1,
        result: 0,
        parent: row,
        ..event
    }
}

/// Decimal seconds in nanoseconds, exactly; what is below a nanosecond is cut off. None for a time that
/// no clock shows.
fn seconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction = format!("{:0<9}", &fraction[..fraction.len().min(9)]);
    let nanos = whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?;
    nanos.checked_add(fraction.parse().ok()?).filter(|&nanos| nanos < TIME_END_NS)
}
