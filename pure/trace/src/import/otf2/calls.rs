//! Rows as events come: each location has its regions open, and what happens in them fills their rows.

use super::definitions::Definitions;
use super::operations::Operation;
use super::region::Region;
use super::text::{self, reference};
use crate::{Class, Event, Function, Header, Layer, ProcessEntry};
use iolab_vocab::{FileId, Nanos};
use std::collections::BTreeMap;

use crate::import::shared::{self, Files, TIME_END_NS};

/// All locations of an archive.
#[derive(Default)]
pub(super) struct Calls {
    pub(super) rows: Vec<Event>,
    pub(super) header: Header,
    pub(super) lanes: Vec<Lane>,
    lane_of: BTreeMap<u64, usize>,
    process_of: BTreeMap<Option<u64>, u32>,
    threads: Vec<u32>,
    files: Files,
    regions: BTreeMap<u64, Region>,
    communicators: BTreeMap<u64, i64>,
    /// What is open, by process and handle.
    pub(super) open: BTreeMap<(u32, u64), usize>,
    pub(super) descriptions: Vec<Description>,
    /// What has begun, by process, handle and the number both its events have.
    pub(super) pending: BTreeMap<(u32, u64, u64), Vec<Operation>>,
    /// Messages under way, by process and number.
    pub(super) requests: BTreeMap<(u32, u64), Request>,
    next_request: Vec<i64>,
    clock: Option<Clock>,
    pub(super) noticed: Noticed,
}

#[derive(Clone, Copy)]
struct Clock {
    first_ticks: u64,
    ticks_per_second: u64,
}

/// What is worth telling about how rows came to be.
#[derive(Default)]
pub(super) struct Noticed {
    pub before_zero: u64,
    pub without_end: u64,
    pub no_clock: bool,
    /// Operations outside of a call that could be theirs.
    pub outside: bool,
    pub collective_bytes: bool,
}

/// A location: a thread of a process.
pub(super) struct Lane {
    pub process: u32,
    thread: u32,
    /// The regions it is in, the innermost last.
    pub frames: Vec<Frame>,
    pub last: Nanos,
    pub collective_begun: Option<Nanos>,
}

pub(super) struct Frame {
    region: u64,
    pub kind: Region,
    row: Option<usize>,
    /// What its events were on so far.
    handle: Option<u64>,
    start: Nanos,
}

/// An open file.
pub(super) struct Description {
    pub file: FileId,
    /// None when it cannot be told.
    pub position: Option<i64>,
}

/// A message under way.
pub(super) struct Request {
    pub number: i64,
    /// The row that began it.
    pub row: usize,
}

/// The first descriptor that is given: those below are of the standard streams.
const FIRST_DESCRIPTOR: i32 = 3;

impl Calls {
    pub(super) fn row_count(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn event(&mut self, definitions: &Definitions, event: &text::Event) {
        if self.clock.is_none() {
            self.begin(definitions, event.ticks);
        }
        let now = self.time(event.ticks);
        let lane = self.lane(definitions, event.location);
        self.lanes[lane].last = now.max(self.lanes[lane].last);
        match event.kind {
            "ENTER" => {
                let region = reference(event.said.value("Region")).unwrap_or(u64::MAX);
                self.enter(definitions, lane, region, now);
            }
            "LEAVE" => {
                let region = reference(event.said.value("Region")).unwrap_or(u64::MAX);
                self.leave(lane, region, now);
            }
            kind if kind.starts_with("IO_") => self.operate(definitions, lane, now, event),
            kind if kind.starts_with("MPI_") => self.communicate(definitions, lane, now, event),
            _ => {}
        }
    }

    fn begin(&mut self, definitions: &Definitions, ticks: u64) {
        self.noticed.no_clock = definitions.ticks_per_second.is_none();
        let first_ticks = definitions.first_ticks.filter(|first| *first > 0 && *first <= ticks);
        let ticks_per_second = definitions.ticks_per_second.unwrap_or(1_000_000_000);
        self.header.clock.resolution_ns = (1_000_000_000 / ticks_per_second).max(1);
        self.clock = Some(Clock { first_ticks: first_ticks.unwrap_or(ticks), ticks_per_second });
        let ranks = definitions.rank_of_groups();
        for (id, group) in &definitions.groups {
            let rank = ranks.get(id).copied().unwrap_or(-1);
            if group.is_process || rank >= 0 {
                let host = definitions.host(group);
                self.process(Some(*id), &group.name, rank, host);
            }
        }
    }

    fn process(&mut self, group: Option<u64>, name: &str, rank: i32, host: String) -> u32 {
        let process = self.header.processes.len() as u32;
        let name = if rank >= 0 { format!("rank {rank}") } else { name.to_owned() };
        let ending = "exited".to_owned();
        let entry = ProcessEntry { name, rank, host, ending, ..ProcessEntry::default() };
        self.header.processes.push(entry);
        self.threads.push(0);
        self.next_request.push(0);
        self.process_of.insert(group, process);
        process
    }

    /// Nanoseconds since the archive's zero.
    fn time(&mut self, ticks: u64) -> Nanos {
        let Some(clock) = self.clock else { return Nanos::ZERO };
        self.noticed.before_zero += u64::from(ticks < clock.first_ticks);
        let ticks = u128::from(ticks.saturating_sub(clock.first_ticks));
        let nanos = ticks * 1_000_000_000 / u128::from(clock.ticks_per_second);
        Nanos(nanos.min(u128::from(TIME_END_NS - 1)) as u64)
    }

    fn lane(&mut self, definitions: &Definitions, location: u64) -> usize {
        if let Some(lane) = self.lane_of.get(&location) {
            return *lane;
        }
        // Locations of no process are of one that is not defined.
        let group = definitions.locations.get(&location).copied().flatten();
        let process = match self.process_of.get(&group) {
            Some(process) => *process,
            None => {
                let known = group.and_then(|id| definitions.groups.get(&id));
                let name = known.map_or("a process that is not defined", |it| it.name.as_str());
                let host = known.map(|group| definitions.host(group)).unwrap_or_default();
                self.process(group, name, -1, host)
            }
        };
        let thread = self.threads[process as usize];
        self.threads[process as usize] += 1;
        let (frames, last) = (Vec::new(), Nanos::ZERO);
        self.lanes.push(Lane { process, thread, frames, last, collective_begun: None });
        self.lane_of.insert(location, self.lanes.len() - 1);
        self.lanes.len() - 1
    }

    fn enter(&mut self, definitions: &Definitions, lane: usize, region: u64, now: Nanos) {
        let known = self.regions.get(&region).copied();
        let kind = known.unwrap_or_else(|| {
            let kind = Region::of(definitions.region(region));
            self.regions.insert(region, kind);
            kind
        });
        let row = match kind {
            Region::Call(function) => {
                let row = self.push(lane, now, function);
                if function == Function::MPI_INIT {
                    self.rows[row].argument = self.rows[row].rank.into();
                }
                Some(row)
            }
            Region::LeftOut => {
                self.leave_out(definitions.region(region));
                None
            }
            Region::Test | Region::Program => None,
        };
        let frame = Frame { region, kind, row, handle: None, start: now };
        self.lanes[lane].frames.push(frame);
    }

    /// Leaves a region, and those inside it that nobody left.
    fn leave(&mut self, lane: usize, region: u64, now: Nanos) {
        let frames = &mut self.lanes[lane].frames;
        let Some(at) = frames.iter().rposition(|frame| frame.region == region) else { return };
        for frame in frames.drain(at..) {
            let Some(row) = frame.row else { continue };
            self.rows[row].end = now.max(self.rows[row].start);
        }
    }

    /// Ends what is open at the end of the archive, with its thread.
    pub(super) fn close(&mut self) {
        for lane in &mut self.lanes {
            if !lane.frames.is_empty() {
                self.header.processes[lane.process as usize].ending = "cut".to_owned();
            }
            for frame in lane.frames.drain(..) {
                let Some(row) = frame.row else { continue };
                self.rows[row].end = lane.last.max(self.rows[row].start);
                self.noticed.without_end += 1;
            }
        }
    }

    pub(super) fn leave_out(&mut self, rule: &str) {
        shared::leave_out(&mut self.header, rule, 1);
    }

    /// A new row, an instant until something ends it.
    pub(super) fn push(&mut self, lane: usize, now: Nanos, function: Function) -> usize {
        let Lane { process, thread, .. } = self.lanes[lane];
        let rank = self.header.processes[process as usize].rank;
        let row = Event { rank, process, thread, start: now, end: now, ..Event::of(function) };
        self.rows.push(row);
        self.rows.len() - 1
    }

    /// The row of the innermost call, if it is of that kind.
    pub(super) fn fitting(&self, lane: usize, fits: impl Fn(Function) -> bool) -> Option<usize> {
        let row = self.lanes[lane].frames.iter().rev().find_map(|frame| frame.row)?;
        fits(self.rows[row].function).then_some(row)
    }

    /// The same for a call on a handle, which from now on is on this one alone.
    pub(super) fn fitting_on(
        &mut self,
        lane: usize,
        handle: u64,
        layer: Layer,
        fits: impl Fn(Class) -> bool,
    ) -> Option<usize> {
        let frame = self.lanes[lane].frames.iter_mut().rev().find(|frame| frame.row.is_some())?;
        let row = frame.row?;
        let function = self.rows[row].function;
        let is_free = frame.handle.is_none_or(|other| other == handle);
        let found = is_free && function.layer() == layer && fits(function.class());
        found.then(|| {
            frame.handle = Some(handle);
            row
        })
    }

    /// When the innermost region began, if it tests requests.
    pub(super) fn test_begun(&self, lane: usize) -> Option<Nanos> {
        let frame = self.lanes[lane].frames.last()?;
        (frame.kind == Region::Test).then_some(frame.start)
    }

    pub(super) fn file(&mut self, path: String) -> FileId {
        self.files.id(&mut self.header, path)
    }

    /// The open file behind a handle; one that nobody was seen to open was open before.
    pub(super) fn description(
        &mut self,
        definitions: &Definitions,
        process: u32,
        handle: u64,
    ) -> usize {
        if let Some(at) = self.open.get(&(process, handle)) {
            return *at;
        }
        self.opened(definitions, process, handle, None)
    }

    pub(super) fn opened(
        &mut self,
        definitions: &Definitions,
        process: u32,
        handle: u64,
        position: Option<i64>,
    ) -> usize {
        let file = self.file(definitions.path(handle));
        self.descriptions.push(Description { file, position });
        self.open.insert((process, handle), self.descriptions.len() - 1);
        self.descriptions.len() - 1
    }

    /// Puts into a row what it is on.
    pub(super) fn touch(&mut self, row: usize, handle: u64, description: usize) {
        self.rows[row].fd = descriptor(handle);
        self.rows[row].file = self.descriptions[description].file;
    }

    pub(super) fn new_request(&mut self, process: u32) -> i64 {
        let next = &mut self.next_request[process as usize];
        *next += 1;
        *next - 1
    }

    /// The index of a communicator among those of the header; −1 for one whose ranks are not told.
    pub(super) fn communicator(&mut self, definitions: &Definitions, id: Option<u64>) -> i64 {
        let Some(id) = id else { return -1 };
        if let Some(index) = self.communicators.get(&id) {
            return *index;
        }
        let index = match definitions.communicator(id) {
            Some(ranks) => {
                self.header.communicators.push(ranks.clone());
                self.header.communicators.len() as i64 - 1
            }
            None => -1,
        };
        self.communicators.insert(id, index);
        index
    }
}

/// The descriptor that a handle stands for: the same each time, no two of an archive the same.
pub(super) fn descriptor(handle: u64) -> i32 {
    let fd = i32::try_from(handle).ok().and_then(|fd| fd.checked_add(FIRST_DESCRIPTOR));
    fd.unwrap_or(i32::MAX)
}
