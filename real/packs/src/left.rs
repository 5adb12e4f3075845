//! Packs that earlier runs have left: found, read through, and gone on with where one of their files is changed.
//!
//! Whoever reads a pack holds a shared `flock` on it, so nobody changes or unpacks it meanwhile; whoever changes it holds an
//! exclusive one.

use crate::pack::{OnDisk, Pack, PackError};
use crate::writer::{Writer, is_name};
use iolab_pack::{Contents, End, Scanned};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Everything in a directory that is called as packs are: files, and links to such in another directory.
pub fn packs_in(directory: &Path) -> Vec<PathBuf> {
    let entries = directory.read_dir().into_iter().flatten().flatten();
    let is_pack = |entry: &std::fs::DirEntry| match entry.file_type() {
        Ok(kind) => kind.is_file() || kind.is_symlink() && led_to(&entry.path()).is_some(),
        Err(_) => false,
    };
    let packs = entries.filter(|entry| is_name(&entry.file_name()) && is_pack(entry));
    packs.map(|entry| entry.path()).collect()
}

/// Where a pack lies that was made in another directory: a link of its name leads there, which its owner has made, or the
/// superuser. Nothing for any other link, and for what is none.
pub(crate) fn led_to(path: &Path) -> Option<PathBuf> {
    let link = std::fs::symlink_metadata(path).ok().filter(|it| it.is_symlink())?;
    let place = path.canonicalize().ok()?;
    let pack = place.metadata().ok().filter(|it| it.is_file())?;
    let is_same = place.file_name() == path.file_name() && is_name(place.file_name()?);
    let is_owners = link.uid() == pack.uid() || link.uid() == 0;
    (is_same && is_owners).then_some(place)
}

/// Removes a pack, and the link that leads to it.
pub(crate) fn remove(path: &Path) -> std::io::Result<()> {
    if let Some(place) = led_to(path) {
        std::fs::remove_file(place)?;
    }
    std::fs::remove_file(path)
}

/// The packs in a directory that no run has in its hands.
pub fn left_in(directory: &Path) -> Vec<PathBuf> {
    packs_in(directory).into_iter().filter(|path| is_left(path)).collect()
}

fn is_left(path: &Path) -> bool {
    let Ok(fd) = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else {
        return false;
    };
    rustix::fs::flock(fd, FlockOperation::NonBlockingLockShared).is_ok()
}

/// A pack that was left, read and checked; it stays as it is while this is held.
pub struct Left {
    path: PathBuf,
    bytes: OnDisk,
    /// What keeps it from being changed, but for others who read it.
    unwritable: Option<Errno>,
    /// Its owner and group.
    pub owner: (u32, u32),
    /// What was read.
    pub scanned: Scanned,
}

impl Left {
    /// Reads and checks every record of a pack, to be changed later on or only to be read.
    ///
    /// # Errors
    /// When it cannot be read, is none, or its run goes on.
    pub fn open(path: &Path, is_only_read: bool) -> Result<Left, PackError> {
        let place = led_to(path).unwrap_or_else(|| path.to_owned());
        let opened = |how: OFlags| {
            let how = how | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            rustix::fs::open(&place, how, Mode::empty())
        };
        let (fd, unwritable) = match is_only_read {
            true => (opened(OFlags::RDONLY)?, Some(Errno::ROFS)),
            false => match opened(OFlags::RDWR) {
                Ok(fd) => (fd, None),
                Err(error) => (opened(OFlags::RDONLY)?, Some(error)),
            },
        };
        // Where there are no locks nobody can be asked.
        let locked = rustix::fs::flock(&fd, FlockOperation::NonBlockingLockShared);
        if locked.err() == Some(Errno::WOULDBLOCK) {
            return Err(PackError::InUse);
        }
        let file = File::from(fd);
        let metadata = file.metadata()?;
        let owner = (metadata.uid(), metadata.gid());
        let bytes = OnDisk(Arc::new(file));
        let Pack { bytes, scanned, .. } = Pack::of(path, bytes)?;
        Ok(Left { path: path.to_owned(), bytes, unwritable, owner, scanned })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds.
    pub fn contents(&self) -> &Contents {
        &self.scanned.contents
    }

    /// To read the bytes of its files.
    pub fn bytes(&self) -> OnDisk {
        self.bytes.clone()
    }

    /// What is wrong with its end, for a person.
    pub fn damage(&self) -> Option<String> {
        crate::pack::damage(&self.path, &self.scanned)
    }

    /// Nobody reads through it any more: others may change it, whoever holds its bytes still.
    pub fn release(&self) {
        let _ = rustix::fs::flock(&self.bytes, FlockOperation::Unlock);
    }

    /// Records may be added to it from now on, and nobody else reads it.
    ///
    /// # Errors
    /// The number of the system for who wants to change it, and why, for a person.
    pub fn go_on(&self) -> Result<Writer, (Errno, String)> {
        let place = self.path.display();
        let refused = |error: Errno, why: &str| {
            Err((error, format!("the files in {place} can be read, but not changed: {why}")))
        };
        if let Some(error) = self.unwritable {
            return refused(error, &error.to_string());
        }
        if let End::Damaged(at) = self.scanned.end {
            let why = format!("at byte {at} it is cut or was changed; `iolab unpack` it first");
            return refused(Errno::ROFS, &why);
        }
        let locked = rustix::fs::flock(&self.bytes, FlockOperation::NonBlockingLockExclusive);
        if locked.err() == Some(Errno::WOULDBLOCK) {
            // The change of a lock that fails gives up the one there was.
            let _ = rustix::fs::flock(&self.bytes, FlockOperation::NonBlockingLockShared);
            return refused(Errno::BUSY, "another run reads them; wait for its end");
        }
        // Between the one lock and the other somebody may have been faster.
        let stat = rustix::fs::fstat(&self.bytes).map_err(|error| (error, error.to_string()))?;
        if stat.st_size as u64 != self.scanned.sound_bytes || stat.st_nlink == 0 {
            return refused(Errno::BUSY, "another run has just changed them; begin anew");
        }
        Writer::go_on(&self.path, &self.bytes, &self.scanned)
            .map_err(|error| (error, format!("{place}: {error}")))
    }
}
