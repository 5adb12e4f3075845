//! The runs on a file system: several at a time where it is served for all of them.
//!
//! Each has a lock on a file in its directory, which ends with the process, so that the first of them begins the set of
//! what stands in for files, and the last one knows that nobody looks at these any more.

use crate::failure::Failure;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The place of a run among those on a file system, for as long as it lives.
pub(super) struct Place {
    path: PathBuf,
    file: File,
}

impl Place {
    /// Takes a place. While it is the only one, `first` is carried out, and all others wait.
    pub(super) fn take(
        directory: &Path,
        first: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<Place, Failure> {
        let path = directory.join("runs");
        let opened =
            File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let file = opened.map_err(|error| refused(&path, &error))?;
        let place = Place { path, file };
        if place.is_alone()? {
            first()?;
        }
        let shared = flock(&place.file, FlockOperation::LockShared);
        shared.map_err(|error| refused(&place.path, &error.into()))?;
        Ok(place)
    }

    /// Whether no other run has a place. If so, none gets one from now on until this one is given up; if not, it has been
    /// given up.
    pub(super) fn is_alone(&self) -> Result<bool, Failure> {
        match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(refused(&self.path, &error.into())),
        }
    }
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn the_first_of_several_runs_begins_and_the_last_one_is_alone() {
        let home = tempfile::tempdir().unwrap();
        let begun = Cell::new(0);
        let take = || {
            let begin = || {
                begun.set(begun.get() + 1);
                Ok(())
            };
            Place::take(home.path(), begin).map_err(|_| ()).unwrap()
        };
        let (one, two) = (take(), take());
        assert_eq!(begun.get(), 1);
        assert_eq!(one.is_alone().ok(), Some(false));
        drop(one);
        assert_eq!(two.is_alone().ok(), Some(true));
        drop(two);
        take();
        assert_eq!(begun.get(), 2);
    }
}
