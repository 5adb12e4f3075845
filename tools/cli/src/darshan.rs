//! Logs of Darshan on disk.

use crate::failure::Failure;
use iolab_sim::workload::reconstruct;
use iolab_trace::import::DarshanError;
use iolab_trace::import::counted::Counted;
use iolab_trace::{Trace, import};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of a packed file that say whether it is an old log.
const HEAD_BYTES: u64 = 4096;

/// Whether a file begins as a log of Darshan does, also one of Darshan 1 or 2, which will be refused as
/// what it is.
pub(crate) fn is_log(path: &Path) -> bool {
    // Whatever is not a regular file must not be read twice.
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut head = Vec::new();
    is_file
        && File::open(path).is_ok_and(|file| file.take(HEAD_BYTES).read_to_end(&mut head).is_ok())
        && (import::is_darshan(&head) || import::old_darshan(&head).is_some())
}

/// Reads a log as a trace.
pub(crate) fn load(path: &Path) -> Result<Trace, Failure> {
    import::darshan(&bytes(path)?).map_err(|error| failure(path, &error))
}

/// Reads what a log counts.
pub(crate) fn counted(path: &Path) -> Result<Counted, Failure> {
    import::darshan_counted(&bytes(path)?).map_err(|error| failure(path, &error))
}

/// A workload that makes the accesses a log counts.
pub(crate) fn workload(path: &Path) -> Result<String, Failure> {
    let name =
        path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    reconstruct(&counted(path)?, &name).map_err(|error| {
        Failure::new(format!("{}: {}", path.display(), error.message)).hint(error.hint)
    })
}

fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

fn failure(path: &Path, error: &DarshanError) -> Failure {
    Failure::new(format!("{}: {error}", path.display())).hint(error.hint())
}
