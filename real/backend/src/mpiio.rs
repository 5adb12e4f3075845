//! MPI-IO in all its access modes: independent, collective, split collective, non-blocking.
//!
//! A contiguous operation goes to an explicit offset. A non-contiguous one gets a file view made of
//! its nested-strided sets (one derived datatype, never a list) or, with `view`, the whole rank's
//! pattern is one view set when the file is opened, and operations are positions in it. Memory that
//! is not contiguous becomes a datatype of its own. Setting a view is collective; so whether an
//! operation sets one is decided for all ranks alike when the file is opened.

use crate::posix::replaced;
use crate::{Arena, Backend, Direction, IoError, Moved, Opening, Verb};
use iolab_comm::{Comm, gather_numbers};
use iolab_host::mpi::{Kind, MpiFile, MpiOpening, Part, Sets};
use iolab_pattern::{Access, Strided};
use std::collections::VecDeque;
use std::path::PathBuf;

/// Why a target cannot be opened through MPI-IO.
pub const COLON: &str = "MPI libraries take what stands before a colon in a file's name for a file \
                         system; choose a target without a colon";

/// How an operation is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Blocking(Kind),
    NonBlocking { collective: bool },
}

/// An operation that was started, oldest first as in the library's queue.
struct UnderWay {
    way: Direction,
    offset: u64,
    at: usize,
    wanted: u64,
    moved: Moved,
    /// One range here and there, and nobody else takes part: what is short can be continued.
    continues: bool,
}

pub(crate) struct MpiIo {
    file: MpiFile,
    mode: Mode,
    path: PathBuf,
    base: u64,
    whole: Option<Strided>,
    /// Every operation sets a view of its own.
    views: bool,
    view: Sets,
    memory: Sets,
    depth: usize,
    under_way: VecDeque<UnderWay>,
    done: Option<(u64, Moved)>,
}

impl MpiIo {
    pub(crate) fn new(arena: Arena, depth: usize, mode: Mode) -> MpiIo {
        MpiIo {
            file: MpiFile::new(arena),
            mode,
            path: PathBuf::new(),
            base: 0,
            whole: None,
            views: false,
            view: Sets::default(),
            memory: Sets::default(),
            depth,
            under_way: VecDeque::new(),
            done: None,
        }
    }

    fn failed(&self, verb: Verb, error: String) -> IoError {
        IoError::Mpi { verb, path: self.path.clone(), error }
    }

    /// Brings the view into place and says where in it the operation starts.
    fn aim(&mut self, access: &Access) -> Result<u64, IoError> {
        self.memory.clear();
        let start = access.file().first().map_or(0, |first| first.offset);
        if let Some(whole) = &self.whole {
            push_all(&mut self.memory, access.memory(), 0);
            return Ok(if access.file().is_empty() { 0 } else { whole.position_of(start) });
        }
        if !self.views {
            push_all(&mut self.memory, access.memory(), 0);
            return Ok(self.base + start);
        }
        self.view.clear();
        let mut displacement = self.base + start;
        if access.file().len() > 1 {
            displacement = self.base + self.sorted_sets(access);
        } else {
            push_all(&mut self.view, access.file(), start);
            push_all(&mut self.memory, access.memory(), 0);
        }
        let view = std::mem::take(&mut self.view);
        let set = self.file.view(displacement, &view);
        self.view = view;
        set.map_err(|error| self.failed(Verb::Open, error))?;
        Ok(0)
    }

    /// Several sets may interleave, but a view must not go backwards: piece by piece in the order
    /// of the file, the memory in the same order. Gives the lowest offset.
    fn sorted_sets(&mut self, access: &Access) -> u64 {
        let mut pieces: Vec<_> = access.pieces().collect();
        pieces.sort_by_key(|piece| piece.file);
        let start = pieces.first().map_or(0, |piece| piece.file);
        for piece in pieces {
            self.view.push(piece.file - start, piece.length, std::iter::empty());
            self.memory.push(piece.memory, piece.length, std::iter::empty());
        }
        start
    }

    /// Sees that the file is the one that is known, where one is; together, as opening is.
    fn look(&self, opening: &Opening, comm: &dyn Comm) -> Result<(), IoError> {
        let Some(identity) = opening.identity else { return Ok(()) };
        let found = std::fs::symlink_metadata(&opening.path);
        let known = found.is_ok_and(|found| identity.is(&found));
        let lost = match opening.shared {
            true => gather_numbers(comm, u64::from(!known)).map_or(1, |all| all.iter().sum()),
            false => u64::from(!known),
        };
        match lost {
            0 => Ok(()),
            _ => Err(IoError::system(Verb::Open, &self.path, (0, 0), &replaced())),
        }
    }

    fn short(&self, way: Direction, offset: u64, bytes: u64, wanted: u64) -> IoError {
        let offset = offset + bytes;
        match way {
            Direction::Read => {
                IoError::End { path: self.path.clone(), offset, wanted: wanted - bytes }
            }
            Direction::Write => {
                self.failed(Verb::Write, format!("only {bytes} of {wanted} bytes were written"))
            }
        }
    }

    fn begin(
        &mut self,
        way: Direction,
        access: &Access,
        at: usize,
        tag: u64,
        collective: bool,
    ) -> Result<(), IoError> {
        let offset = self.aim(access)?;
        let continues = !collective && !self.views && access.contiguous().is_some();
        let (wanted, moved) = (access.bytes(), Moved::default());
        let one = UnderWay { way, offset, at, wanted, moved, continues };
        self.launch(one, tag, collective)
    }

    /// Starts what is left of an operation.
    fn launch(&mut self, one: UnderWay, tag: u64, collective: bool) -> Result<(), IoError> {
        let part = Part {
            write: one.way == Direction::Write,
            offset: one.offset + one.moved.bytes,
            at: one.at + one.moved.bytes as usize,
            memory: &self.memory,
            bytes: one.wanted - one.moved.bytes,
        };
        let started = self.file.start(collective, part, tag);
        started.map_err(|error| self.failed(verb(one.way), error))?;
        self.under_way.push_back(one);
        Ok(())
    }

    /// The library is done with the oldest operation. ROMIO cuts non-blocking transfers short
    /// where the system's aio does, below 2 GiB; the rest goes on its way then.
    fn settle(&mut self, tag: u64, bytes: u64) -> Result<Option<(u64, Moved)>, IoError> {
        let Some(mut one) = self.under_way.pop_front() else { return Ok(None) };
        one.moved.bytes += bytes;
        match one.moved.bytes < one.wanted {
            false => Ok(Some((tag, one.moved))),
            true if one.continues && bytes > 0 => {
                one.moved.short += 1;
                self.memory.clear();
                self.launch(one, tag, false).map(|()| None)
            }
            true => Err(self.short(one.way, one.offset, one.moved.bytes, one.wanted)),
        }
    }

    fn wait(&mut self) -> Result<(u64, Moved), IoError> {
        loop {
            let finished = self.file.finish().map_err(|error| self.broken(error))?;
            let nothing = || IoError::Cannot("nothing was started".to_owned());
            let (tag, bytes) = finished.ok_or_else(nothing)?;
            if let Some(done) = self.settle(tag, bytes)? {
                return Ok(done);
            }
        }
    }

    /// The oldest operation failed.
    fn broken(&mut self, error: String) -> IoError {
        let way = self.under_way.pop_front().map_or(Direction::Read, |one| one.way);
        self.failed(verb(way), error)
    }
}

fn verb(way: Direction) -> Verb {
    if way == Direction::Write { Verb::Write } else { Verb::Read }
}

fn push_all(sets: &mut Sets, strided: &[Strided], start: u64) {
    for set in strided {
        let levels = set.levels().iter().map(|level| (level.count, level.stride));
        sets.push(set.offset - start, set.block, levels);
    }
}

impl Backend for MpiIo {
    fn arena(&mut self) -> &mut Arena {
        self.file.arena()
    }

    fn spare(&mut self) -> &mut [u8] {
        self.file.spare()
    }

    fn open(&mut self, opening: &Opening, comm: &dyn Comm) -> Result<(), IoError> {
        self.path.clone_from(&opening.path);
        let Some(mpi) = comm.mpi() else {
            return Err(IoError::Cannot("MPI-IO needs a start under mpiexec".to_owned()));
        };
        // `ufs:t` would be opened, cut and written as `t`, which nobody has looked at.
        if opening.path.as_os_str().as_encoded_bytes().contains(&b':') {
            return Err(IoError::Cannot(COLON.to_owned()));
        }
        self.look(opening, comm)?;
        let mode = MpiOpening {
            path: &opening.path,
            write: opening.write,
            create: opening.create,
            exclusive: opening.exclusive,
            truncate: opening.truncate,
            shared: opening.shared,
            hints: &opening.hints,
        };
        self.file.open(mpi, &mode).map_err(|error| self.failed(Verb::Open, error))?;
        self.base = opening.base;
        self.whole = opening.view;
        self.views = opening.noncontiguous && self.whole.is_none();
        if self.views && self.depth > 1 {
            let why = "a view per operation and several operations under way exclude each other";
            return Err(IoError::Cannot(why.to_owned()));
        }
        if let Some(whole) = self.whole {
            self.view.clear();
            push_all(&mut self.view, &[whole], whole.offset);
            let set = self.file.view(self.base + whole.offset, &self.view.clone());
            set.map_err(|error| self.failed(Verb::Open, error))?;
        }
        Ok(())
    }

    fn run(&mut self, way: Direction, access: &Access, at: usize) -> Result<Moved, IoError> {
        let kind = match self.mode {
            Mode::Blocking(kind) => kind,
            Mode::NonBlocking { collective } => {
                self.begin(way, access, at, 0, collective)?;
                return self.wait().map(|(_, moved)| moved);
            }
        };
        let offset = self.aim(access)?;
        let write = way == Direction::Write;
        let wanted = access.bytes();
        let part = Part { write, offset, at, memory: &self.memory, bytes: wanted };
        let bytes = self.file.transfer(kind, part);
        let bytes = bytes.map_err(|error| self.failed(verb(way), error))?;
        if bytes < wanted {
            let start = access.file().first().map_or(0, |first| first.offset);
            return Err(self.short(way, start, bytes, wanted));
        }
        Ok(Moved { bytes, short: 0 })
    }

    fn start(
        &mut self,
        way: Direction,
        access: &Access,
        at: usize,
        tag: u64,
    ) -> Result<(), IoError> {
        match self.mode {
            Mode::NonBlocking { collective } => self.begin(way, access, at, tag, collective),
            Mode::Blocking(_) => {
                self.done = Some((tag, self.run(way, access, at)?));
                Ok(())
            }
        }
    }

    fn poll(&mut self) -> Result<bool, IoError> {
        if self.done.is_none() {
            let tested = self.file.test().map_err(|error| self.broken(error))?;
            if let Some((tag, bytes)) = tested {
                self.done = self.settle(tag, bytes)?;
            }
        }
        Ok(self.done.is_some())
    }

    fn finish(&mut self) -> Result<(u64, Moved), IoError> {
        match self.done.take() {
            Some(done) => Ok(done),
            None => self.wait(),
        }
    }

    fn sync(&mut self) -> Result<(), IoError> {
        self.file.sync().map_err(|error| self.failed(Verb::Sync, error))
    }

    fn close(&mut self) -> Result<(), IoError> {
        self.under_way.clear();
        self.file.close().map_err(|error| self.failed(Verb::Close, error))
    }
}
