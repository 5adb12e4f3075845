//! A pack that is read.

use iolab_pack::{Bytes, Contents, End, HEADER_BYTES, Header, Packed, Scanned, contents_of, scan};
use iolab_vocab::Refusal;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a pack cannot be used.
#[derive(Debug)]
pub enum PackError {
    /// The system does not read it.
    System(io::Error),
    /// It is none, or none that iolab wrote.
    Refused(Refusal),
    /// Its run goes on.
    InUse,
}

impl fmt::Display for PackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PackError::System(error) => error.fmt(f),
            PackError::Refused(refusal) => f.write_str(&refusal.message),
            PackError::InUse => f.write_str("its run goes on"),
        }
    }
}

impl std::error::Error for PackError {}

impl PackError {
    /// A way out.
    pub fn hint(&self) -> Option<String> {
        match self {
            PackError::System(_) => None,
            PackError::Refused(refusal) => Some(refusal.hint.clone()),
            PackError::InUse => Some("wait for its end, or end its programs".to_owned()),
        }
    }
}

impl From<io::Error> for PackError {
    fn from(error: io::Error) -> PackError {
        PackError::System(error)
    }
}

impl From<rustix::io::Errno> for PackError {
    fn from(error: rustix::io::Errno) -> PackError {
        PackError::System(error.into())
    }
}

impl From<Refusal> for PackError {
    fn from(refusal: Refusal) -> PackError {
        PackError::Refused(refusal)
    }
}

/// The file of a pack, to be read.
#[derive(Clone)]
pub struct OnDisk(pub(crate) Arc<File>);

impl AsFd for OnDisk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl OnDisk {
    fn open(path: &Path) -> Result<OnDisk, PackError> {
        Ok(OnDisk(Arc::new(File::open(path)?)))
    }

    /// Hands the stretches of a file over, where they begin in it and their bytes; the rest is zeros.
    ///
    /// # Errors
    /// When the pack cannot be read, or `take` fails.
    pub fn read<E: From<PackError>>(
        &self,
        file: &Packed,
        mut take: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for piece in &file.pieces {
            let bytes = self.at(piece.at, piece.length as usize)?;
            if bytes.len() as u64 != piece.length {
                let cut = io::Error::from(io::ErrorKind::UnexpectedEof);
                return Err(PackError::System(cut).into());
            }
            take(piece.offset, &bytes)?;
        }
        Ok(())
    }
}

impl Bytes for OnDisk {
    type Error = PackError;

    fn at(&self, offset: u64, length: usize) -> Result<Vec<u8>, PackError> {
        // No more memory than there are bytes, whatever a record claims.
        let there = self.0.metadata()?.len().saturating_sub(offset);
        let mut bytes = vec![0; length.min(usize::try_from(there).unwrap_or(usize::MAX))];
        let mut read = 0;
        while read < bytes.len() {
            match self.0.read_at(&mut bytes[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        bytes.truncate(read);
        Ok(bytes)
    }
}

/// When the run of a pack began, in nanoseconds since 1970 (UTC); nothing where it is no pack.
pub fn begun_ns(path: &Path) -> Option<u64> {
    let bytes = OnDisk::open(path).and_then(|it| it.at(0, HEADER_BYTES)).ok()?;
    Header::decode(&bytes).ok().map(|header| header.begun_ns)
}

/// A pack, and what is in it.
pub struct Pack {
    pub(crate) path: PathBuf,
    pub(crate) bytes: OnDisk,
    /// What was read.
    pub scanned: Scanned,
}

impl Pack {
    /// Reads what a pack has, by its index where there is one.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub fn open(path: &Path) -> Result<Pack, PackError> {
        let bytes = OnDisk::open(path)?;
        let scanned = contents_of(&bytes, bytes.0.metadata()?.len())?;
        Ok(Pack { path: path.to_owned(), bytes, scanned })
    }

    /// Reads and checks every record.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub fn check(path: &Path) -> Result<Pack, PackError> {
        Pack::of(path, OnDisk::open(path)?)
    }

    /// The same of a file that is open.
    pub(crate) fn of(path: &Path, bytes: OnDisk) -> Result<Pack, PackError> {
        let scanned = scan(&bytes)?;
        Ok(Pack { path: path.to_owned(), bytes, scanned })
    }

    /// What it holds.
    pub fn contents(&self) -> &Contents {
        &self.scanned.contents
    }

    /// What is wrong with its end, for a person.
    pub fn damage(&self) -> Option<String> {
        damage(&self.path, &self.scanned)
    }

    /// Hands the stretches of a file over, as [`OnDisk::read`].
    ///
    /// # Errors
    /// When the pack cannot be read, or `take` fails.
    pub fn read<E: From<PackError>>(
        &self,
        file: &Packed,
        take: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.bytes.read(file, take)
    }
}

/// What is wrong with a pack's end, for a person.
pub(crate) fn damage(path: &Path, scanned: &Scanned) -> Option<String> {
    match scanned.end {
        End::Damaged(at) => Some(format!(
            "{}: at byte {at} it is cut or was changed; what is before that is read",
            path.display()
        )),
        End::Whole | End::Open => None,
    }
}
