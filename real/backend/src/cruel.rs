//! A back end that lies: it does something else than it says, once or always, and reports success.
//!
//! For tests of verification: whatever a file system, a library or a device may get wrong silently is
//! one of its [`Fault`]s, and a benchmark that verifies has to find it.

use crate::{Arena, Backend, Direction, IoError, Moved, Opening};
use iolab_comm::Comm;
use iolab_pattern::Access;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What it does instead of what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The write does not happen.
    DropWrite,
    /// The write goes to the place behind its own.
    MisplaceWrite,
    /// Only the first half is written.
    TearWrite,
    /// The write happens, and once more behind its place.
    DuplicateWrite,
    /// The read brings nothing; memory stays as it was.
    DropRead,
    /// Only the first half is read.
    ShortRead,
    /// The read brings what lies beside its place.
    MisplaceRead,
    /// The read brings what an earlier read brought.
    StaleRead,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 8] = [
        Fault::DropWrite,
        Fault::MisplaceWrite,
        Fault::TearWrite,
        Fault::DuplicateWrite,
        Fault::DropRead,
        Fault::ShortRead,
        Fault::MisplaceRead,
        Fault::StaleRead,
    ];

    /// Which way the operations go that it spoils.
    pub fn way(self) -> Direction {
        match self {
            Fault::DropWrite | Fault::MisplaceWrite | Fault::TearWrite | Fault::DuplicateWrite => {
                Direction::Write
            }
            _ => Direction::Read,
        }
    }
}

/// When it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lies {
    /// About one operation, the second of its way or the only one, of the first time a file is open.
    Once,
    /// About all operations of the first time a file is open.
    FirstTime,
    /// About all operations.
    Always,
}

/// Any back end, made to lie.
pub struct Cruel {
    inner: Box<dyn Backend>,
    fault: Fault,
    lies: Lies,
    /// How often a file was opened, and operations of the way since.
    opened: u32,
    seen: u64,
    /// What a read brought before.
    earlier: Vec<u8>,
    /// How many lies were told.
    told: Arc<AtomicU64>,
    done: Option<(u64, Moved)>,
}

impl Cruel {
    /// Puts lies before `inner`, counted in `told`.
    pub fn new(inner: Box<dyn Backend>, fault: Fault, lies: Lies, told: Arc<AtomicU64>) -> Cruel {
        let (earlier, done) = (Vec::new(), None);
        Cruel { inner, fault, lies, opened: 0, seen: 0, earlier, told, done }
    }

    fn lies_now(&mut self, way: Direction, access: &Access) -> bool {
        if way != self.fault.way() || access.bytes() == 0 {
            return false;
        }
        self.seen += 1;
        match self.lies {
            Lies::Once => self.opened == 1 && self.seen == 2,
            Lies::FirstTime => self.opened == 1,
            Lies::Always => true,
        }
    }

    /// What a read brought, piece by piece.
    fn brought(&mut self, access: &Access, at: usize) -> Vec<u8> {
        let memory = self.inner.arena();
        let piece = |piece: iolab_pattern::Piece| {
            let start = at + piece.memory as usize;
            memory[start..start + piece.length as usize].to_vec()
        };
        access.pieces().flat_map(piece).collect()
    }

    /// Puts something else where it was brought to.
    fn pretend(&mut self, access: &Access, at: usize, mut bytes: &[u8]) {
        let memory = self.inner.arena();
        for piece in access.pieces() {
            let (first, rest) = bytes.split_at(piece.length as usize);
            let start = at + piece.memory as usize;
            memory[start..start + first.len()].copy_from_slice(first);
            bytes = rest;
        }
    }

    fn lie(&mut self, access: &Access, at: usize) -> Result<(), IoError> {
        let bytes = access.bytes();
        let half = bytes / 2;
        let start = access.file().first().map_or(0, |first| first.offset);
        let mut other = Access::new();
        match self.fault {
            Fault::DropWrite | Fault::DropRead => return Ok(()),
            Fault::TearWrite | Fault::ShortRead => {
                let mut left = half;
                for piece in access.pieces() {
                    let length = piece.length.min(left);
                    left -= length;
                    if length > 0 {
                        other.set_contiguous(piece.file, length);
                        self.inner.run(self.fault.way(), &other, at + piece.memory as usize)?;
                    }
                }
                return Ok(());
            }
            Fault::DuplicateWrite => {
                self.inner.run(Direction::Write, access, at)?;
                let end = access.file_extents().map(|extent| extent.end()).max().unwrap_or(0);
                // The memory of what is not contiguous has holes; where it begins is enough of it.
                other.set_contiguous(end, access.pieces().next().map_or(1, |piece| piece.length));
            }
            Fault::MisplaceWrite => {
                other.set_contiguous(
                    start + half.max(1),
                    access.pieces().next().map_or(1, |p| p.length),
                );
            }
            Fault::MisplaceRead => {
                // As if one byte further on: the last of the operation comes out wrong as well.
                self.inner.run(Direction::Read, access, at)?;
                let mut brought = self.brought(access, at);
                brought.rotate_left(1);
                self.pretend(access, at, &brought);
                return Ok(());
            }
            Fault::StaleRead => {
                self.inner.run(Direction::Read, access, at)?;
                let brought = self.brought(access, at);
                let mut stale = brought.clone();
                let room = self.earlier.len().min(stale.len());
                stale[..room].copy_from_slice(&self.earlier[..room]);
                if stale == brought {
                    // There was nothing else yet, or it was the same.
                    self.told.fetch_sub(1, Relaxed);
                }
                self.pretend(access, at, &stale);
                self.earlier = brought;
                return Ok(());
            }
        }
        self.inner.run(self.fault.way(), &other, at).map(drop)
    }
}

impl Backend for Cruel {
    fn arena(&mut self) -> &mut Arena {
        self.inner.arena()
    }

    fn open(&mut self, opening: &Opening, comm: &dyn Comm) -> Result<(), IoError> {
        (self.opened, self.seen) = (self.opened + 1, 0);
        self.inner.open(opening, comm)
    }

    fn run(&mut self, way: Direction, access: &Access, at: usize) -> Result<Moved, IoError> {
        if self.lies_now(way, access) {
            self.told.fetch_add(1, Relaxed);
            self.lie(access, at)?;
            return Ok(Moved { bytes: access.bytes(), short: 0 });
        }
        let moved = self.inner.run(way, access, at)?;
        if way == Direction::Read && access.bytes() > 0 {
            self.earlier = self.brought(access, at);
        }
        Ok(moved)
    }

    fn start(
        &mut self,
        way: Direction,
        access: &Access,
        at: usize,
        tag: u64,
    ) -> Result<(), IoError> {
        self.done = Some((tag, self.run(way, access, at)?));
        Ok(())
    }

    fn finish(&mut self) -> Result<(u64, Moved), IoError> {
        self.done.take().ok_or_else(|| IoError::Cannot("nothing was started".to_owned()))
    }

    fn sync(&mut self) -> Result<(), IoError> {
        self.inner.sync()
    }

    fn close(&mut self) -> Result<(), IoError> {
        self.inner.close()
    }
}
