//! Transfers that go on by themselves: io_uring in the kernel, POSIX aio in threads of the C library.
//!
//! A contiguous operation is one transfer; the pieces of a non-contiguous one are queued together, as
//! many as the queue is deep, the next whenever the caller looks or waits. Short transfers are
//! continued and counted.

use crate::direct::{alignment, is_aligned};
use crate::posix::{closed, open_file, verb};
use crate::{Arena, Backend, Direction, IoError, Moved, Opening, Verb};
use iolab_comm::Comm;
use iolab_host::aio::Aio;
use iolab_host::queue::Queue;
use iolab_host::uring::{Ring, works};
use iolab_pattern::{Access, Piece};
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

/// The most one transfer moves; larger operations are continued. The kernel stops at 2 GiB.
const TRANSFER_MAX: u64 = 1 << 30;
/// Even one operation at a time may have many pieces.
const DEPTH_MIN: usize = 16;

/// Whether the kernel lets this process use io_uring.
pub fn uring_works() -> bool {
    works()
}

/// A piece under way.
#[derive(Clone, Copy)]
struct Flight {
    tag: u64,
    way: Direction,
    offset: u64,
    at: usize,
    length: u64,
    done: u64,
    short: u32,
}

impl Flight {
    /// What the next transfer of it is to move.
    fn part(&self) -> u64 {
        (self.length - self.done).min(TRANSFER_MAX)
    }
}

/// A non-contiguous operation under way: its pieces, and which is to be launched next.
#[derive(Default)]
struct Group {
    tag: u64,
    at: usize,
    pieces: Vec<Piece>,
    next: usize,
    moved: Moved,
    active: bool,
}

pub(crate) struct Queued<Q> {
    queue: Q,
    flights: Vec<Option<Flight>>,
    group: Group,
    way: Direction,
    path: PathBuf,
    base: u64,
    alignment: Option<u64>,
    landed: VecDeque<(u64, Moved)>,
}

impl Queued<Ring> {
    pub(crate) fn uring(arena: Arena, depth: usize) -> Result<Queued<Ring>, IoError> {
        let depth = depth.max(DEPTH_MIN);
        let ring = Ring::new(arena, depth)
            .map_err(|error| IoError::Cannot(format!("io_uring does not work here: {error}")))?;
        Ok(Queued::new(ring, depth))
    }
}

impl Queued<Aio> {
    pub(crate) fn aio(arena: Arena, depth: usize) -> Queued<Aio> {
        let depth = depth.max(DEPTH_MIN);
        Queued::new(Aio::new(arena, depth), depth)
    }
}

impl<Q: Queue> Queued<Q> {
    fn new(queue: Q, depth: usize) -> Queued<Q> {
        Queued {
            queue,
            flights: vec![None; depth],
            group: Group::default(),
            way: Direction::Read,
            path: PathBuf::new(),
            base: 0,
            alignment: None,
            landed: VecDeque::new(),
        }
    }

    fn failed(&self, flight: &Flight, error: &io::Error) -> IoError {
        let place = (flight.offset, flight.length);
        IoError::system(verb(flight.way), &self.path, place, error)
    }

    fn busy(&self) -> bool {
        self.flights.iter().any(Option::is_some)
    }

    fn launch(&mut self, way: Direction, piece: Piece, at: usize, tag: u64) -> Result<(), IoError> {
        let offset = self.base + piece.file;
        let length = piece.length;
        if let Some(alignment) = self.alignment
            && !is_aligned(offset, length, alignment)
        {
            return Err(IoError::Unaligned { offset, length, alignment });
        }
        let at = at + piece.memory as usize;
        let flight = Flight { tag, way, offset, at, length, done: 0, short: 0 };
        let slot = self.flights.iter().position(Option::is_none);
        let full = || IoError::Cannot(format!("the queue of {} is full", Q::NAME));
        self.submit(slot.ok_or_else(full)?, flight)
    }

    fn submit(&mut self, slot: usize, flight: Flight) -> Result<(), IoError> {
        let write = flight.way == Direction::Write;
        let (offset, at) = (flight.offset + flight.done, flight.at + flight.done as usize);
        self.queue
            .start(write, offset, at, flight.part() as u32, slot as u64)
            .map_err(|error| self.failed(&flight, &error))?;
        self.flights[slot] = Some(flight);
        Ok(())
    }

    /// Launches pieces of the group while there is room.
    fn launch_group(&mut self) -> Result<(), IoError> {
        while self.group.next < self.group.pieces.len() && self.flights.iter().any(Option::is_none)
        {
            let piece = self.group.pieces[self.group.next];
            self.group.next += 1;
            self.launch(self.way, piece, self.group.at, self.group.tag)?;
        }
        Ok(())
    }

    /// Takes one transfer that is done, waiting for it if so told. Whether there was one.
    fn advance(&mut self, wait: bool) -> Result<bool, IoError> {
        let landed = if wait { self.queue.finish() } else { self.queue.look() };
        let landed =
            landed.map_err(|error| IoError::system(Verb::Sync, &self.path, (0, 0), &error))?;
        let Some((slot, moved)) = landed else { return Ok(false) };
        let taken = self.flights[slot as usize].take();
        let mut flight = taken.ok_or_else(|| IoError::Cannot("nothing was started".to_owned()))?;
        let wanted = flight.part();
        match moved {
            Ok(0) if flight.way == Direction::Read && wanted > 0 => {
                let offset = flight.offset + flight.done;
                let wanted = flight.length - flight.done;
                return Err(IoError::End { path: self.path.clone(), offset, wanted });
            }
            Ok(moved) => {
                flight.done += u64::from(moved);
                flight.short += u32::from(u64::from(moved) < wanted);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(self.failed(&flight, &error)),
        }
        match flight.done == flight.length {
            true => self.piece_is_done(&flight)?,
            false => self.submit(slot as usize, flight)?,
        }
        Ok(true)
    }

    fn piece_is_done(&mut self, flight: &Flight) -> Result<(), IoError> {
        if !self.group.active {
            let moved = Moved { bytes: flight.length, short: flight.short };
            self.landed.push_back((flight.tag, moved));
            return Ok(());
        }
        self.group.moved.bytes += flight.length;
        self.group.moved.short += flight.short;
        self.launch_group()?;
        self.end_group();
        Ok(())
    }

    /// The group has landed when its last piece has.
    fn end_group(&mut self) {
        if self.group.next == self.group.pieces.len() && !self.busy() {
            self.group.active = false;
            self.landed.push_back((self.group.tag, self.group.moved));
        }
    }

    fn begin_group(&mut self, access: &Access, at: usize, tag: u64) -> Result<(), IoError> {
        if self.busy() || !self.landed.is_empty() {
            let why = "several non-contiguous operations under way are not offered; use depth 1";
            return Err(IoError::Cannot(why.to_owned()));
        }
        let mut pieces = std::mem::take(&mut self.group.pieces);
        pieces.clear();
        pieces.extend(access.pieces());
        self.group = Group { tag, at, pieces, next: 0, moved: Moved::default(), active: true };
        self.launch_group()?;
        self.end_group();
        Ok(())
    }

    /// After an error the rest of what was under way means nothing.
    fn forget(&mut self, error: IoError) -> IoError {
        self.queue.drain();
        self.flights.fill(None);
        self.landed.clear();
        self.group.active = false;
        error
    }

    fn wait(&mut self) -> Result<(u64, Moved), IoError> {
        loop {
            if let Some(landed) = self.landed.pop_front() {
                return Ok(landed);
            }
            if !self.advance(true).map_err(|error| self.forget(error))? {
                return Err(IoError::Cannot("nothing was started".to_owned()));
            }
        }
    }
}

impl<Q: Queue> Backend for Queued<Q> {
    fn arena(&mut self) -> &mut Arena {
        self.queue.arena()
    }

    fn spare(&mut self) -> &mut [u8] {
        self.queue.spare()
    }

    fn open(&mut self, opening: &Opening, comm: &dyn Comm) -> Result<(), IoError> {
        let file = open_file(opening, comm)?;
        self.alignment = opening.direct.then(|| alignment(&file).unwrap_or(4096));
        self.queue.attach(file);
        self.flights.fill(None);
        self.landed.clear();
        self.group.active = false;
        self.base = opening.base;
        self.path.clone_from(&opening.path);
        Ok(())
    }

    fn run(&mut self, way: Direction, access: &Access, at: usize) -> Result<Moved, IoError> {
        self.start(way, access, at, 0)?;
        self.wait().map(|(_, moved)| moved)
    }

    fn start(
        &mut self,
        way: Direction,
        access: &Access,
        at: usize,
        tag: u64,
    ) -> Result<(), IoError> {
        self.way = way;
        let started = match access.contiguous() {
            Some(extent) => {
                let piece = Piece { file: extent.offset, memory: 0, length: extent.length };
                self.launch(way, piece, at, tag)
            }
            None => self.begin_group(access, at, tag),
        };
        started.map_err(|error| match self.group.active {
            true => self.forget(error),
            false => error,
        })
    }

    fn poll(&mut self) -> Result<bool, IoError> {
        while self.advance(false).map_err(|error| self.forget(error))? {}
        Ok(!self.landed.is_empty())
    }

    fn finish(&mut self) -> Result<(u64, Moved), IoError> {
        self.wait()
    }

    fn sync(&mut self) -> Result<(), IoError> {
        let file = self.queue.file().ok_or_else(closed)?;
        file.sync_all().map_err(|error| IoError::system(Verb::Sync, &self.path, (0, 0), &error))
    }

    fn close(&mut self) -> Result<(), IoError> {
        let file = self.queue.detach().ok_or_else(closed)?;
        iolab_host::close(file.into())
            .map_err(|error| IoError::system(Verb::Close, &self.path, (0, 0), &error))
    }
}
