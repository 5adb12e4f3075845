//! What the records of a pack come to: files and directories by their names.

use crate::record::{Attributes, PATH_BYTES_MAX, Record};
use std::collections::BTreeMap;
use std::fmt;

/// A stretch of a file that lies in the pack. Later ones lie over earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    /// Where it begins in the pack, in bytes.
    pub at: u64,
    /// Its bytes.
    pub length: u64,
}

/// A file of the pack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// What is known of it.
    pub attributes: Attributes,
    /// Its length; what no piece has is zeros.
    pub size: u64,
    /// Its bytes.
    pub pieces: Vec<Piece>,
    /// A real file was about to be made of it: one that is there is newer.
    pub is_moving: bool,
}

/// A directory that files of the pack lie in, or lay in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    /// Mode, user and group, where they are known.
    pub made: Option<(u32, u32, u32)>,
    /// When a name in it last changed, in nanoseconds since 1970; nothing where its times were set since.
    pub changed_ns: Option<u64>,
}

/// All of a pack, as of some record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Files by path.
    pub files: BTreeMap<Vec<u8>, Packed>,
    /// Directories by path; the pack's own is empty.
    pub directories: BTreeMap<Vec<u8>, Directory>,
}

/// A record that says what cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// Its path is empty, absolute, or leads out of the directory.
    Path(Vec<u8>),
    /// It is about a file that is not there.
    NotThere(Vec<u8>),
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misfit::Path(path) => {
                write!(f, "the path `{}` leads out of a directory", path.escape_ascii())
            }
            Misfit::NotThere(path) => {
                write!(f, "it is about `{}`, which is not there", path.escape_ascii())
            }
        }
    }
}

/// Whether a path stays below the directory it is relative to.
fn stays_below(path: &[u8]) -> bool {
    let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..") && !name.contains(&0);
    path.len() < PATH_BYTES_MAX && path.split(|&it| it == b'/').all(is_name)
}

/// The directory of a path; that of a plain name is the pack's own, which is empty.
fn directory_of(path: &[u8]) -> &[u8] {
    path.iter().rposition(|&it| it == b'/').map_or(b"", |at| &path[..at])
}

impl Contents {
    /// Takes a record in, which begins at `at` in the pack and was written at `written_ns`. Nothing has
    /// changed where it is refused.
    ///
    /// # Errors
    /// When it says what cannot be.
    pub fn take(&mut self, record: &Record<'_>, at: u64, written_ns: u64) -> Result<(), Misfit> {
        self.suits(record)?;
        match *record {
            Record::Data { path, attributes, size, offset, bytes } => {
                let begin = at + Record::bytes_begin(path);
                self.write(path, attributes, size, written_ns);
                if let Some(file) = self.files.get_mut(path)
                    && !bytes.is_empty()
                {
                    file.lay(Piece { offset, at: begin, length: bytes.len() as u64 });
                }
            }
            Record::Rename { from, to } => {
                let file = self.remove(from, written_ns)?;
                self.touch(to, written_ns);
                self.files.insert(to.to_vec(), file);
            }
            Record::Unlink { path } => {
                self.remove(path, written_ns)?;
            }
            Record::Moving { path } => {
                let file = self.files.get_mut(path);
                file.ok_or_else(|| Misfit::NotThere(path.to_vec()))?.is_moving = true;
            }
            Record::Directory { path, mode, user, group } => {
                self.directories.entry(path.to_vec()).or_default().made = Some((mode, user, group));
            }
            Record::Settled { path } => {
                self.directories.entry(path.to_vec()).or_default().changed_ns = None;
            }
            Record::Commit | Record::Index(_) => {}
        }
        Ok(())
    }

    /// Whether a record says what can be.
    ///
    /// # Errors
    /// When it does not.
    pub fn suits(&self, record: &Record<'_>) -> Result<(), Misfit> {
        for path in named(record) {
            let is_own = path.is_empty() && matches!(record, Record::Settled { .. });
            if !is_own && !stays_below(path) {
                return Err(Misfit::Path(path.to_vec()));
            }
        }
        match *record {
            Record::Rename { from: path, .. }
            | Record::Unlink { path }
            | Record::Moving { path }
                if !self.files.contains_key(path) =>
            {
                Err(Misfit::NotThere(path.to_vec()))
            }
            _ => Ok(()),
        }
    }

    fn write(&mut self, path: &[u8], attributes: Attributes, size: u64, written_ns: u64) {
        if !self.files.contains_key(path) {
            self.touch(path, written_ns);
        }
        let file = self.files.entry(path.to_vec()).or_default();
        (file.attributes, file.is_moving) = (attributes, false);
        file.cut(size);
    }

    fn remove(&mut self, path: &[u8], written_ns: u64) -> Result<Packed, Misfit> {
        let file = self.files.remove(path).ok_or_else(|| Misfit::NotThere(path.to_vec()))?;
        self.touch(path, written_ns);
        Ok(file)
    }

    /// A name in the directory of that path has changed.
    fn touch(&mut self, path: &[u8], written_ns: u64) {
        let directory = self.directories.entry(directory_of(path).to_vec()).or_default();
        directory.changed_ns = directory.changed_ns.max(Some(written_ns));
    }

    /// Whether no path leads out.
    pub(crate) fn is_below(&self) -> bool {
        self.files.keys().all(|path| stays_below(path))
            && self.directories.keys().all(|path| path.is_empty() || stays_below(path))
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.values().fold(0, |sum, file| sum.saturating_add(file.size))
    }
}

impl Packed {
    /// Sets its length: pieces end there.
    fn cut(&mut self, size: u64) {
        if size < self.size {
            self.pieces.retain(|piece| piece.offset < size);
            for piece in &mut self.pieces {
                piece.length = piece.length.min(size - piece.offset);
            }
        }
        self.size = size;
    }

    /// Lays a piece over what is there; pieces wholly below it go.
    fn lay(&mut self, piece: Piece) {
        let end = piece.offset + piece.length;
        let is_covered = |it: &Piece| it.offset >= piece.offset && it.offset + it.length <= end;
        self.pieces.retain(|it| !is_covered(it));
        self.pieces.push(piece);
    }
}

/// The paths a record names.
fn named<'a>(record: &Record<'a>) -> impl Iterator<Item = &'a [u8]> {
    let (first, second) = match *record {
        Record::Rename { from, to } => (Some(from), Some(to)),
        Record::Data { path, .. }
        | Record::Unlink { path }
        | Record::Moving { path }
        | Record::Directory { path, .. }
        | Record::Settled { path } => (Some(path), None),
        Record::Commit | Record::Index(_) => (None, None),
    };
    first.into_iter().chain(second)
}
