//! One trace of the parts that the ranks of a job recorded each for itself.
//!
//! Headers are joined first; they tell how the rows of each part are to be read ([`Seat`]): files of
//! one path are one file, processes follow each other, times count from the earliest start. Rows then
//! pass one by one, so that a directory of parts is read in the memory of its largest row group.
//!
//! Parts of one machine share its monotonic clock and its files. Clocks of several machines are placed by
//! what their ranks said to each other, else by their wall clocks ([`crate::align`]); the joined header says
//! which, and what doubt is left. A path on a file system that every machine has for itself is a file
//! per machine.

mod choose;
mod clocks;
mod files;
mod missing;

use crate::align::Precedences;
use crate::{Class, Event, Function, Header, Layer, ObjectEntry, PhaseEntry, ProcessEntry};
pub use choose::{Chosen, Named, SESSION, choose};
use clocks::{Clocks, Times};
use files::Files;
use iolab_vocab::FileId;
use missing::with_missing;
use std::collections::BTreeMap;

/// How a part's rows become rows of the joined trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seat {
    files: Vec<FileId>,
    communicators: Vec<i64>,
    objects: Vec<i64>,
    first_process: u32,
    times: Times,
}

impl Seat {
    /// The row as one of the joined trace, in which the part begins at `first_row`.
    pub fn carry(&self, event: &Event, first_row: u64) -> Event {
        let file = |id: FileId| {
            id.index().and_then(|at| self.files.get(at)).copied().unwrap_or(FileId::NONE)
        };
        let names_file = matches!(event.function.class(), Class::Rename | Class::Copy);
        let argument = match event.argument {
            other if names_file && other >= 0 => {
                file(FileId(other as u32)).index().map_or(-1, |at| at as i64)
            }
            other => other,
        };
        let argument = match event.function.layer() {
            layer if layer.names_objects() => placed(&self.objects, argument),
            _ => argument,
        };
        let (mut fd, mut offset) = (event.fd, event.offset);
        if event.function.layer() == Layer::Mpi {
            fd = self.communicator(fd.into()) as i32;
        }
        if event.function == Function::MPI_FILE_OPEN {
            offset = self.communicator(offset);
        }
        Event {
            fd,
            offset,
            process: event.process + self.first_process,
            file: file(event.file),
            argument,
            start: self.times.of(event.start),
            end: self.times.of(event.end),
            parent: if event.parent < 0 { -1 } else { event.parent + first_row as i64 },
            ..*event
        }
    }

    fn communicator(&self, index: i64) -> i64 {
        placed(&self.communicators, index)
    }
}

/// Where an index of a part's list is in the joined list.
fn placed(places: &[i64], index: i64) -> i64 {
    let at = usize::try_from(index).ok();
    at.and_then(|at| places.get(at)).copied().unwrap_or(index)
}

/// Joins the headers of parts, in the order in which their rows will follow each other.
pub fn headers(parts: &[Header]) -> (Header, Vec<Seat>) {
    Joining::of(parts).finish()
}

/// Parts about to be one trace.
#[derive(Debug)]
pub struct Joining<'a> {
    parts: &'a [Header],
    joined: Header,
    seats: Vec<Seat>,
    clocks: Clocks,
    met: Precedences,
}

impl<'a> Joining<'a> {
    /// Of their headers, in the order in which their rows will follow each other.
    pub fn of(parts: &'a [Header]) -> Joining<'a> {
        let clocks = Clocks::of(parts);
        let met = Precedences::new(clocks.machines_of_ranks(parts));
        let (joined, seats) = match parts {
            [] => (Header::default(), Vec::new()),
            [only] => (only.clone(), vec![seat_of_the_only(only)]),
            [first, ..] => places(parts, first, clocks.is_one()),
        };
        Joining { parts, joined, seats, clocks, met }
    }

    /// Whether the rows say more of the clocks than the headers do.
    pub fn wants_rows(&self) -> bool {
        !self.clocks.is_one() && !self.joined.communicators.is_empty()
    }

    /// Sees a row of a part, in the order of the part.
    pub fn see(&mut self, part: usize, row: &Event) {
        let seat = &self.seats[part];
        if row.function.layer() == Layer::Mpi {
            let of_joined = (row.process + seat.first_process, seat.communicator(row.fd.into()));
            self.met.see(row, of_joined, self.clocks.zero_of_part(part));
        }
    }

    /// The joined header, and how rows of each part are read.
    pub fn finish(self) -> (Header, Vec<Seat>) {
        let Joining { parts, mut joined, mut seats, clocks, met } = self;
        if parts.len() < 2 {
            return (with_missing(joined), seats);
        }
        let times = clocks.place(&met.found(), &mut joined);
        for ((part, seat), times) in parts.iter().zip(&mut seats).zip(times) {
            seat.times = times;
            joined.processes.extend(part.processes.iter().map(|it| later(it, &times)));
            joined.phases.extend(part.phases.iter().map(|it| PhaseEntry {
                start_ns: times.of_ns(it.start_ns),
                end_ns: times.of_ns(it.end_ns),
                ..it.clone()
            }));
        }
        (with_missing(joined), seats)
    }
}

/// The joined header but for times, and the seats of all parts.
fn places(parts: &[Header], first: &Header, one_machine: bool) -> (Header, Vec<Seat>) {
    let mut joined = Header {
        environment: common_environment(parts),
        processes: Vec::new(),
        files: Vec::new(),
        communicators: Vec::new(),
        objects: Vec::new(),
        phases: Vec::new(),
        clocks: Vec::new(),
        ..first.clone()
    };
    let mut files = Files::new(one_machine);
    let mut seats = Vec::new();
    let mut first_process = 0;
    for (at, part) in parts.iter().enumerate() {
        let machine = part.parts.first().map_or("", |it| it.host.as_str());
        let of_part: Vec<FileId> =
            part.files.iter().map(|it| files.place(it, machine, &mut joined)).collect();
        let in_joined = |object: &ObjectEntry| ObjectEntry {
            file: of_part.get(object.file as usize).map_or(u32::MAX, |file| file.0),
            ..object.clone()
        };
        seats.push(Seat {
            objects: (part.objects.iter())
                .map(|object| place_of(in_joined(object), &mut joined.objects))
                .collect(),
            files: of_part,
            communicators: (part.communicators.iter())
                .map(|members| place_of(members.clone(), &mut joined.communicators))
                .collect(),
            first_process,
            times: Times::default(),
        });
        first_process += part.processes.len() as u32;
        if at > 0 {
            add(&mut joined, part);
        }
    }
    (joined, seats)
}

/// Communicators of the same ranks are one, and objects of one name in one file.
fn place_of<T: PartialEq>(one: T, joined: &mut Vec<T>) -> i64 {
    let known = joined.iter().position(|listed| *listed == one);
    known.unwrap_or_else(|| {
        joined.push(one);
        joined.len() - 1
    }) as i64
}

fn seat_of_the_only(header: &Header) -> Seat {
    Seat { files: (0..header.files.len() as u32).map(FileId).collect(), ..Seat::default() }
}

fn later(process: &ProcessEntry, times: &Times) -> ProcessEntry {
    ProcessEntry {
        start_ns: times.of_ns(process.start_ns),
        end_ns: times.of_ns(process.end_ns),
        ..process.clone()
    }
}

/// Variables that all parts agree on; what differs is each rank's own (its number, its sockets).
fn common_environment(parts: &[Header]) -> BTreeMap<String, String> {
    let mut common = parts[0].environment.clone();
    common.retain(|name, value| parts.iter().all(|it| it.environment.get(name) == Some(value)));
    common
}

/// What is more in a later part.
fn add(joined: &mut Header, part: &Header) {
    for (point, kind) in &part.mounts {
        joined.mounts.entry(point.clone()).or_insert_with(|| kind.clone());
    }
    joined.clock.resolution_ns = joined.clock.resolution_ns.max(part.clock.resolution_ns);
    joined.overhead_ns = joined.overhead_ns.max(part.overhead_ns);
    if joined.interposer != part.interposer {
        joined.interposer = "plt-only".to_owned();
    }
    for (reason, count) in &part.losses.lost_calls {
        *joined.losses.lost_calls.entry(reason.clone()).or_default() += count;
    }
    for (reason, count) in &part.losses.left_out_calls {
        *joined.losses.left_out_calls.entry(reason.clone()).or_default() += count;
    }
    for unseen in &part.losses.unseen {
        if !joined.losses.unseen.contains(unseen) {
            joined.losses.unseen.push(unseen.clone());
        }
    }
    for fact in &part.inferred {
        if !joined.inferred.contains(fact) {
            joined.inferred.push(fact.clone());
        }
    }
    joined.parts.extend(part.parts.iter().cloned());
}

#[cfg(test)]
mod tests;
