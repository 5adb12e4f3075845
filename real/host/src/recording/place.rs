//! Where a spool directory is made.
//!
//! In memory (`/dev/shm`), when nobody says otherwise and there is room: a spool per process image
//! costs milliseconds on a journalled disk and tens of microseconds there. What the launcher drains
//! goes to the disk all the same; a link in the directory leads to it.

use super::error::{RecordingError, at};
use crate::own_place;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const MEMORY: &str = "/dev/shm";
/// Containers often have 64 MiB there, which a few hundred processes would fill.
const ROOM_BYTES: u64 = 1 << 30;

/// The file system in memory, if there is one with room.
pub(super) fn in_memory() -> Option<&'static Path> {
    let path = Path::new(MEMORY);
    let is_memory = crate::file_system_of(path).is_ok_and(|kind| kind == "tmpfs");
    (is_memory && crate::file_system::free_bytes(path)? >= ROOM_BYTES).then_some(path)
}

/// Makes a directory of this user alone, with a name nobody can foresee.
pub(super) fn make(parent: &Path) -> Result<PathBuf, RecordingError> {
    // Resolved inside, since the library tells its own files by this path.
    own_place::make(parent, "iolab-spool").map_err(at(parent))
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
    // A process that outlives the recording may just be making a file in it.
    for _ in 0..3 {
        if fs::remove_dir_all(directory).is_ok() {
            break;
        }
    }
}
