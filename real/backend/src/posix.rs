//! POSIX: `pread` and `pwrite`, optionally vectored, optionally around the page cache.
//!
//! A non-contiguous operation becomes one call per piece that is contiguous on both sides; with
//! `vectored`, one `preadv`/`pwritev` per contiguous range of the file that gathers its pieces of
//! memory. Short transfers are continued and counted. What is not aligned for direct I/O is
//! refused before the call, as file systems differ in what they make of it.

use crate::direct::{alignment, is_aligned};
use crate::{Arena, Backend, Direction, IoError, Moved, Opening, Ran, Verb};
use iolab_comm::Comm;
use iolab_pattern::{Access, Piece};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;

/// What one vectored call takes (IOV_MAX).
const VECTOR: usize = 1024;

pub(crate) struct Posix {
    arena: Arena,
    vectored: bool,
    file: Option<File>,
    path: PathBuf,
    base: u64,
    alignment: Option<u64>,
    ran: Ran,
}

impl Posix {
    pub(crate) fn new(arena: Arena, vectored: bool) -> Posix {
        let (path, base) = (PathBuf::new(), 0);
        Posix { arena, vectored, file: None, path, base, alignment: None, ran: None }
    }

    fn aligned(&self, offset: u64, length: u64) -> Result<(), IoError> {
        match self.alignment {
            Some(alignment) if !is_aligned(offset, length, alignment) => {
                Err(IoError::Unaligned { offset, length, alignment })
            }
            _ => Ok(()),
        }
    }

    /// One contiguous piece, continued until it is complete.
    #[inline]
    fn piece(&mut self, way: Direction, piece: Piece, at: usize) -> Result<Moved, IoError> {
        let offset = self.base + piece.file;
        if self.alignment.is_some() {
            self.aligned(offset, piece.length)?;
        }
        let file = self.file.as_ref().ok_or_else(closed)?;
        let start = at + piece.memory as usize;
        let buffer = &mut self.arena[start..start + piece.length as usize];
        let first = one_call(file, way, buffer, offset);
        match first {
            Ok(done) if done == buffer.len() => Ok(Moved { bytes: piece.length, short: 0 }),
            first => self.continue_piece(way, offset, start, piece.length as usize, first),
        }
    }

    #[cold]
    fn continue_piece(
        &mut self,
        way: Direction,
        offset: u64,
        start: usize,
        length: usize,
        first: io::Result<usize>,
    ) -> Result<Moved, IoError> {
        let file = self.file.as_ref().ok_or_else(closed)?;
        let (mut result, mut done, mut short) = (first, 0, 0);
        loop {
            let place = (offset + done as u64, (length - done) as u64);
            match result {
                Ok(0) if way == Direction::Read => {
                    let (offset, wanted) = place;
                    return Err(IoError::End { path: self.path.clone(), offset, wanted });
                }
                Ok(moved) => done += moved,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(IoError::system(verb(way), &self.path, place, &error)),
            }
            if done == length {
                return Ok(Moved { bytes: length as u64, short });
            }
            short += 1;
            let buffer = &mut self.arena[start + done..start + length];
            result = one_call(file, way, buffer, offset + done as u64);
        }
    }

    /// One contiguous range of the file from many pieces of memory, in as few calls as possible.
    fn vector(&mut self, way: Direction, pieces: &[Piece], at: usize) -> Result<Moved, IoError> {
        let offset = self.base + pieces[0].file;
        let wanted: u64 = pieces.iter().map(|piece| piece.length).sum();
        self.aligned(offset, wanted)?;
        let file = self.file.as_ref().ok_or_else(closed)?;
        let done = vector_call(file, way, &mut self.arena[at..], pieces, offset)
            .map_err(|error| IoError::system(verb(way), &self.path, (offset, wanted), &error))?;
        if done as u64 == wanted {
            return Ok(Moved { bytes: wanted, short: 0 });
        }
        self.rest_of_vector(way, pieces, at, done as u64)
    }

    /// After a short vectored call: the rest piece by piece.
    #[cold]
    fn rest_of_vector(
        &mut self,
        way: Direction,
        pieces: &[Piece],
        at: usize,
        mut done: u64,
    ) -> Result<Moved, IoError> {
        let mut moved = Moved { bytes: done, short: 1 };
        for piece in pieces {
            let skip = done.min(piece.length);
            done -= skip;
            if skip == piece.length {
                continue;
            }
            let rest = Piece {
                file: piece.file + skip,
                memory: piece.memory + skip,
                length: piece.length - skip,
            };
            let part = self.piece(way, rest, at)?;
            moved = Moved { bytes: moved.bytes + part.bytes, short: moved.short + part.short };
        }
        Ok(moved)
    }

    fn run_pieces(&mut self, way: Direction, access: &Access, at: usize) -> Result<Moved, IoError> {
        let mut moved = Moved::default();
        for piece in access.pieces() {
            let part = self.piece(way, piece, at)?;
            moved = Moved { bytes: moved.bytes + part.bytes, short: moved.short + part.short };
        }
        Ok(moved)
    }

    fn run_vectors(
        &mut self,
        way: Direction,
        access: &Access,
        at: usize,
    ) -> Result<Moved, IoError> {
        let mut moved = Moved::default();
        let mut group: Vec<Piece> = Vec::new();
        for piece in access.pieces() {
            let continues = group.last().is_none_or(|last| last.file + last.length == piece.file);
            if !continues || group.len() == VECTOR {
                let part = self.vector(way, &group, at)?;
                moved = Moved { bytes: moved.bytes + part.bytes, short: moved.short + part.short };
                group.clear();
            }
            group.push(piece);
        }
        if !group.is_empty() {
            let part = self.vector(way, &group, at)?;
            moved = Moved { bytes: moved.bytes + part.bytes, short: moved.short + part.short };
        }
        Ok(moved)
    }
}

#[inline]
fn one_call(file: &File, way: Direction, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    match way {
        Direction::Read => file.read_at(buffer, offset),
        Direction::Write => file.write_at(buffer, offset),
    }
}

fn vector_call(
    file: &File,
    way: Direction,
    memory: &mut [u8],
    pieces: &[Piece],
    offset: u64,
) -> io::Result<usize> {
    let range = |piece: &Piece| piece.memory as usize..(piece.memory + piece.length) as usize;
    match way {
        Direction::Write => {
            let slices: Vec<_> = pieces.iter().map(|p| IoSlice::new(&memory[range(p)])).collect();
            Ok(rustix::io::pwritev(file, &slices, offset)?)
        }
        Direction::Read => {
            let mut slices = split(memory, pieces);
            Ok(rustix::io::preadv(file, &mut slices, offset)?)
        }
    }
}

/// Disjoint mutable slices of memory in the order of the pieces.
fn split<'a>(memory: &'a mut [u8], pieces: &[Piece]) -> Vec<IoSliceMut<'a>> {
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by_key(|&index| pieces[index].memory);
    let mut slices: Vec<Option<IoSliceMut>> = pieces.iter().map(|_| None).collect();
    let (mut rest, mut position) = (memory, 0);
    for index in order {
        let piece = pieces[index];
        let (_, from) = rest.split_at_mut((piece.memory - position) as usize);
        let (slice, after) = from.split_at_mut(piece.length as usize);
        slices[index] = Some(IoSliceMut::new(slice));
        (rest, position) = (after, piece.memory + piece.length);
    }
    slices.into_iter().flatten().collect()
}

pub(crate) fn verb(way: Direction) -> Verb {
    match way {
        Direction::Read => Verb::Read,
        Direction::Write => Verb::Write,
    }
}

pub(crate) fn closed() -> IoError {
    IoError::Cannot("no file is open".to_owned())
}

/// Opens as asked; only rank 0 makes and truncates, before the others open.
pub(crate) fn open_file(opening: &Opening, comm: &dyn Comm) -> Result<File, IoError> {
    let mut options = OpenOptions::new();
    let direct = if opening.direct { libc::O_DIRECT } else { 0 };
    let follow = if opening.identity.is_some() { libc::O_NOFOLLOW } else { 0 };
    options.read(true).write(opening.write).custom_flags(direct | follow);
    let first = !opening.shared || comm.rank().0 == 0;
    let mut result = Ok(None);
    if first {
        let create = opening.write && opening.create;
        options.create(create).create_new(create && opening.exclusive);
        result = open_known(&options, opening).and_then(|file| {
            let cut = opening.write && opening.truncate && file.metadata()?.is_file();
            if cut { file.set_len(0).map(|()| Some(file)) } else { Ok(Some(file)) }
        });
    }
    if opening.shared {
        // A lost partner shows at the next agreement; the file itself is not to blame.
        let _ = comm.barrier();
    }
    if !first {
        options.create(false).create_new(false);
        result = open_known(&options, opening).map(Some);
    }
    let failed = |error: &io::Error| IoError::system(Verb::Open, &opening.path, (0, 0), error);
    match result {
        Ok(Some(file)) => Ok(file),
        Ok(None) => Err(closed()),
        Err(error) => Err(failed(&error)),
    }
}

/// Opens the file; it must be the one that is known, where one is.
fn open_known(options: &OpenOptions, opening: &Opening) -> io::Result<File> {
    let file = options.open(&opening.path)?;
    match opening.identity {
        Some(identity) if !identity.is(&file.metadata()?) => Err(replaced()),
        _ => Ok(file),
    }
}

/// Somebody put another file in the place of the one that was made.
pub(crate) fn replaced() -> io::Error {
    io::Error::other("it is no longer the file that this run made")
}

impl Backend for Posix {
    fn arena(&mut self) -> &mut Arena {
        &mut self.arena
    }

    fn open(&mut self, opening: &Opening, comm: &dyn Comm) -> Result<(), IoError> {
        let file = open_file(opening, comm)?;
        self.alignment = match opening.direct {
            true => Some(alignment(&file).unwrap_or(4096)),
            false => None,
        };
        (self.file, self.base) = (Some(file), opening.base);
        self.path.clone_from(&opening.path);
        Ok(())
    }

    #[inline]
    fn run(&mut self, way: Direction, access: &Access, at: usize) -> Result<Moved, IoError> {
        match access.contiguous() {
            Some(extent) => {
                let piece = Piece { file: extent.offset, memory: 0, length: extent.length };
                self.piece(way, piece, at)
            }
            None if self.vectored => self.run_vectors(way, access, at),
            None => self.run_pieces(way, access, at),
        }
    }

    fn ran(&mut self) -> Option<&mut Ran> {
        Some(&mut self.ran)
    }

    fn sync(&mut self) -> Result<(), IoError> {
        let file = self.file.as_ref().ok_or_else(closed)?;
        file.sync_all().map_err(|error| IoError::system(Verb::Sync, &self.path, (0, 0), &error))
    }

    fn close(&mut self) -> Result<(), IoError> {
        // std closes without looking; close(2) reports late errors of network file systems.
        let file = self.file.take().ok_or_else(closed)?;
        iolab_host::close(file.into())
            .map_err(|error| IoError::system(Verb::Close, &self.path, (0, 0), &error))
    }
}
