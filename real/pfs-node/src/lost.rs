//! What a server could not bring to its device.
//!
//! A kernel tells once of pages that it could not write, and takes them for clean. So after one sync that failed
//! all others of the server do, whoever asks and whichever thread would carry them out. And the next server of the
//! directory must not read from the kernel's memory what the device does not have, sum it or write behind it: a
//! [`Mark`] tells it to have those pages dropped first.

use crate::remark::remark;
use crate::subfiles::Result;
use iolab_pfs::Code;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};

/// A file that says that a sync has failed here. It need not outlive the kernel, so it is not synced itself.
#[derive(Debug)]
pub(crate) struct Mark(PathBuf);

impl Mark {
    /// The one in a directory.
    pub(crate) fn within(directory: &Path) -> Mark {
        Mark(directory.join("unsynced"))
    }

    /// A sync has failed.
    pub(crate) fn leave(&self) {
        // What cannot be told the next server is told who asks this one.
        _ = File::create(&self.0);
    }

    /// Has files read from their device again if the mark is there, and removes it.
    pub(crate) fn take(&self, drop_cached: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        if !self.0.try_exists()? {
            return Ok(());
        }
        drop_cached()?;
        remark(format_args!(
            "a sync failed in {}: what the device does not have is lost, and read from it again",
            self.0.parent().unwrap_or(&self.0).display()
        ));
        fs::remove_file(&self.0)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", self.0.display())))
    }
}

/// See the module.
pub(crate) struct Lost {
    /// Why the first sync failed that did; nothing is lost while it is zero.
    code: AtomicU16,
    mark: Mark,
}

impl Lost {
    /// A server begins with the subfiles in `data`, below its directory: what its last life could not sync is read
    /// from the device again.
    pub(crate) fn begin(directory: &Path, data: &Path) -> io::Result<Lost> {
        let mark = Mark::within(directory);
        mark.take(|| drop_all(data))?;
        Ok(Lost { code: AtomicU16::new(0), mark })
    }

    /// Has something synced, unless a sync has failed before.
    pub(crate) fn hold(&self, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        self.check()?;
        match sync() {
            // Another thread may have been told of what this one was not.
            Ok(()) => self.check(),
            Err(code) => {
                self.mark.leave();
                self.code.store(code.0, Ordering::Release);
                Err(code)
            }
        }
    }

    fn check(&self) -> Result<()> {
        match self.code.load(Ordering::Acquire) {
            0 => Ok(()),
            code => Err(Code(code)),
        }
    }
}

/// Has the kernel forget of a file what it takes to be on its device.
pub(crate) fn drop_cached(file: &File) -> io::Result<()> {
    // SAFETY: a descriptor that is open, and no memory.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// The same for all subfiles.
fn drop_all(data: &Path) -> io::Result<()> {
    for folder in fs::read_dir(data)? {
        let folder = folder?;
        if !folder.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(folder.path())? {
            match File::open(file?.path()) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                opened => drop_cached(&opened?)?,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_sync_that_failed_none_succeeds_until_the_next_life() {
        let directory = tempfile::tempdir().unwrap();
        let mark = directory.path().join("unsynced");
        let data = directory.path().join("data");
        fs::create_dir_all(data.join("07")).unwrap();
        fs::write(data.join("07/file"), b"bytes").unwrap();
        let begin = || Lost::begin(directory.path(), &data).unwrap();
        let lost = begin();
        assert_eq!(lost.hold(|| Ok(())), Ok(()));
        assert!(!mark.exists());
        assert_eq!(lost.hold(|| Err(Code::IO)), Err(Code::IO));
        assert_eq!(lost.hold(|| unreachable!("nothing is synced any more")), Err(Code::IO));
        assert!(mark.exists());
        // One that was under way meanwhile may have lost the same.
        let (first, second) = (begin(), &mut None);
        let both = first.hold(|| {
            *second = Some(first.hold(|| Err(Code::NO_SPACE)));
            Ok(())
        });
        assert_eq!((both, *second), (Err(Code::NO_SPACE), Some(Err(Code::NO_SPACE))));
        begin();
        assert!(!mark.exists());
        assert_eq!(fs::read(data.join("07/file")).unwrap(), b"bytes");
    }
}
