//! A pack that is read.

use iolab_pack::{Bytes, Contents, End, Packed, Scanned, contents_of, scan};
use iolab_vocab::Refusal;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

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

/// The file of a pack.
pub(crate) struct OnDisk(pub(crate) File);

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
        let bytes = OnDisk(File::open(path)?);
        let scanned = contents_of(&bytes, bytes.0.metadata()?.len())?;
        Ok(Pack { path: path.to_owned(), bytes, scanned })
    }

    /// Reads and checks every record.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub fn check(path: &Path) -> Result<Pack, PackError> {
        let bytes = OnDisk(File::open(path)?);
        let scanned = scan(&bytes)?;
        Ok(Pack { path: path.to_owned(), bytes, scanned })
    }

    /// What it holds.
    pub fn contents(&self) -> &Contents {
        &self.scanned.contents
    }

    /// What is wrong with its end, for a person.
    pub fn damage(&self) -> Option<String> {
        match self.scanned.end {
            End::Damaged(at) => Some(format!(
                "{}: at byte {at} it is cut or was changed; what is before that is read",
                self.path.display()
            )),
            End::Whole | End::Open => None,
        }
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
            let bytes = self.bytes.at(piece.at, piece.length as usize)?;
            if bytes.len() as u64 != piece.length {
                let cut = io::Error::from(io::ErrorKind::UnexpectedEof);
                return Err(PackError::System(cut).into());
            }
            take(piece.offset, &bytes)?;
        }
        Ok(())
    }
}
