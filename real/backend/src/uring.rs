//! io_uring: transfers queued to the kernel, several under way at once.
//!
//! A contiguous operation is one entry; the pieces of a non-contiguous one are queued together, as
//! many as the ring is deep. Short transfers are continued and counted.

use crate::direct::{alignment, is_aligned};
use crate::posix::{closed, open_file, verb};
use crate::{Arena, Backend, Direction, IoError, Moved, Opening, Verb};
use iolab_comm::Comm;
use iolab_host::uring::{Ring, works};
use iolab_pattern::{Access, Piece};
use std::io;
use std::path::PathBuf;

/// Whether the kernel lets this process use io_uring.
pub fn uring_works() -> bool {
    works()
}

/// A transfer under way.
#[derive(Clone, Copy)]
struct Flight {
    tag: u64,
    way: Direction,
    offset: u64,
    at: usize,
    length: u32,
    done: u32,
    short: u32,
}

pub(crate) struct Uring {
    ring: Ring,
    flights: Vec<Option<Flight>>,
    path: PathBuf,
    base: u64,
    alignment: Option<u64>,
    finished: Option<(u64, Moved)>,
}

impl Uring {
    pub(crate) fn new(arena: Arena, depth: usize) -> Result<Uring, IoError> {
        // Even one operation at a time may have many pieces.
        let depth = depth.max(16);
        let ring = Ring::new(arena, depth)
            .map_err(|error| IoError::Cannot(format!("io_uring does not work here: {error}")))?;
        let flights = vec![None; depth];
        let (path, base) = (PathBuf::new(), 0);
        Ok(Uring { ring, flights, path, base, alignment: None, finished: None })
    }

    fn failed(&self, flight: &Flight, error: &io::Error) -> IoError {
        let place = (flight.offset, flight.length.into());
        IoError::system(verb(flight.way), &self.path, place, error)
    }

    fn launch(&mut self, way: Direction, piece: Piece, at: usize, tag: u64) -> Result<(), IoError> {
        let offset = self.base + piece.file;
        if let Some(alignment) = self.alignment
            && !is_aligned(offset, piece.length, alignment)
        {
            return Err(IoError::Unaligned { offset, length: piece.length, alignment });
        }
        let length = u32::try_from(piece.length)
            .map_err(|_| IoError::Cannot("io_uring moves less than 4 GiB at once".to_owned()))?;
        let at = at + piece.memory as usize;
        let flight = Flight { tag, way, offset, at, length, done: 0, short: 0 };
        let slot = self.flights.iter().position(Option::is_none);
        let slot = slot.ok_or_else(|| IoError::Cannot("the ring is full".to_owned()))?;
        self.submit(slot, flight)
    }

    fn submit(&mut self, slot: usize, flight: Flight) -> Result<(), IoError> {
        let done = flight.done as usize;
        let (offset, length) = (flight.offset + done as u64, flight.length - flight.done);
        let write = flight.way == Direction::Write;
        self.ring
            .start(write, offset, flight.at + done, length, slot as u64)
            .map_err(|error| self.failed(&flight, &error))?;
        self.flights[slot] = Some(flight);
        Ok(())
    }

    /// Waits until one transfer is complete.
    fn land(&mut self) -> Result<(u64, Moved), IoError> {
        loop {
            let landed = self
                .ring
                .finish()
                .map_err(|error| IoError::system(Verb::Sync, &self.path, (0, 0), &error))?;
            let nothing = || IoError::Cannot("nothing was started".to_owned());
            let (slot, moved) = landed.ok_or_else(nothing)?;
            let mut flight = self.flights[slot as usize].take().ok_or_else(nothing)?;
            match moved {
                Ok(0) if flight.way == Direction::Read && flight.length > 0 => {
                    let offset = flight.offset + u64::from(flight.done);
                    let wanted = u64::from(flight.length - flight.done);
                    return Err(IoError::End { path: self.path.clone(), offset, wanted });
                }
                Ok(moved) => flight.done += moved,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(&flight, &error)),
            }
            if flight.done == flight.length {
                let moved = Moved { bytes: flight.length.into(), short: flight.short };
                return Ok((flight.tag, moved));
            }
            flight.short += 1;
            self.submit(slot as usize, flight)?;
        }
    }

    fn run_pieces(&mut self, way: Direction, access: &Access, at: usize) -> Result<Moved, IoError> {
        let mut moved = Moved::default();
        let mut add = |part: Moved| {
            moved = Moved { bytes: moved.bytes + part.bytes, short: moved.short + part.short };
        };
        for piece in access.pieces() {
            if self.flights.iter().all(Option::is_some) {
                add(self.land()?.1);
            }
            self.launch(way, piece, at, 0)?;
        }
        while self.flights.iter().any(Option::is_some) {
            add(self.land()?.1);
        }
        Ok(moved)
    }
}

impl Backend for Uring {
    fn arena(&mut self) -> &mut Arena {
        self.ring.arena()
    }

    fn open(&mut self, opening: &Opening, comm: &dyn Comm) -> Result<(), IoError> {
        let file = open_file(opening, comm)?;
        self.alignment = opening.direct.then(|| alignment(&file).unwrap_or(4096));
        self.ring.attach(file);
        self.flights.fill(None);
        self.base = opening.base;
        self.path.clone_from(&opening.path);
        Ok(())
    }

    fn run(&mut self, way: Direction, access: &Access, at: usize) -> Result<Moved, IoError> {
        match access.contiguous() {
            Some(extent) => {
                let piece = Piece { file: extent.offset, memory: 0, length: extent.length };
                self.launch(way, piece, at, 0)?;
                self.land().map(|(_, moved)| moved)
            }
            None => self.run_pieces(way, access, at),
        }
    }

    fn start(
        &mut self,
        way: Direction,
        access: &Access,
        at: usize,
        tag: u64,
    ) -> Result<(), IoError> {
        match access.contiguous() {
            Some(extent) => {
                let piece = Piece { file: extent.offset, memory: 0, length: extent.length };
                self.launch(way, piece, at, tag)
            }
            None if self.flights.iter().any(Option::is_some) || self.finished.is_some() => {
                let why =
                    "several non-contiguous operations under way are not offered; use depth 1";
                Err(IoError::Cannot(why.to_owned()))
            }
            None => {
                self.finished = Some((tag, self.run_pieces(way, access, at)?));
                Ok(())
            }
        }
    }

    fn finish(&mut self) -> Result<(u64, Moved), IoError> {
        match self.finished.take() {
            Some(finished) => Ok(finished),
            None => self.land(),
        }
    }

    fn sync(&mut self) -> Result<(), IoError> {
        let file = self.ring.file().ok_or_else(closed)?;
        file.sync_all().map_err(|error| IoError::system(Verb::Sync, &self.path, (0, 0), &error))
    }

    fn close(&mut self) -> Result<(), IoError> {
        let file = self.ring.detach().ok_or_else(closed)?;
        iolab_host::close(file.into())
            .map_err(|error| IoError::system(Verb::Close, &self.path, (0, 0), &error))
    }
}
