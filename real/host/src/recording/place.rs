//! Where a spool directory is made.
//!
//! In memory (`/dev/shm`), when nobody says otherwise and there is room: a spool per process image
//! costs milliseconds on a journalled disk and tens of microseconds there. What the launcher drains
//! goes to the disk all the same; a link in the directory leads to it.

use super::{RecordingError, at};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::{fs, io, process};

const MEMORY: &str = "/dev/shm";
/// Containers often have 64 MiB there, which a few hundred processes would fill.
const ROOM_BYTES: u64 = 1 << 30;

/// The file system in memory, if there is one with room.
pub(super) fn in_memory() -> Option<&'static Path> {
    let path = Path::new(MEMORY);
    let is_memory = crate::file_system_of(path).is_ok_and(|kind| kind == "tmpfs");
    (is_memory && free_bytes(path)? >= ROOM_BYTES).then_some(path)
}

fn free_bytes(path: &Path) -> Option<u64> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: plain numbers, filled by the call for a terminated path.
    unsafe {
        let mut status = std::mem::zeroed::<libc::statvfs>();
        let asked = libc::statvfs(path.as_ptr(), &mut status);
        (asked == 0).then(|| status.f_bavail * status.f_frsize)
    }
}

/// Makes a directory with a name of its own.
pub(super) fn make(parent: &Path) -> Result<PathBuf, RecordingError> {
    // Resolved, since the library tells its own files by this path.
    let parent = parent.canonicalize().map_err(at(parent))?;
    for attempt in 0.. {
        let directory = parent.join(format!("iolab-spool-{}-{attempt}", process::id()));
        match fs::create_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(RecordingError::File(directory, error)),
            Ok(()) => return Ok(directory),
        }
    }
    unreachable!("numbers do not end before free names do")
}

/// Makes `drained` in the directory a link to a file on disk.
pub(super) fn drain_to_disk(directory: &Path) -> Result<(), RecordingError> {
    let disk = make(&std::env::temp_dir())?.join("drained");
    let link = directory.join("drained");
    symlink(&disk, &link).map_err(at(&link))
}

/// Removes the directory and all that belongs to it.
pub(super) fn remove(directory: &Path) {
    if let Some(disk) =
        fs::read_link(directory.join("drained")).ok().as_deref().and_then(Path::parent)
    {
        let _ = fs::remove_dir_all(disk);
    }
    let _ = fs::remove_dir_all(directory);
}
