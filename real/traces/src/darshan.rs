//! Logs of Darshan on disk.

use crate::failed;
use iolab_trace::import::DarshanError;
use iolab_trace::import::counted::Counted;
use iolab_trace::{Trace, import};
use iolab_vocab::Refusal;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of a packed file that say whether it is an old log.
const HEAD_BYTES: u64 = 4096;

/// Whether a file begins as a log of Darshan does, also one of Darshan 1 or 2, which will be refused as
/// what it is.
pub fn is_log(path: &Path) -> bool {
    // Whatever is not a regular file must not be read twice.
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut head = Vec::new();
    is_file
        && File::open(path).is_ok_and(|file| file.take(HEAD_BYTES).read_to_end(&mut head).is_ok())
        && (import::is_darshan(&head) || import::old_darshan(&head).is_some())
}

/// Reads a log as a trace.
pub(crate) fn load(path: &Path) -> Result<Trace, Refusal> {
    import::darshan(&bytes(path)?).map_err(|error| refusal(path, &error))
}

/// Reads what a log counts.
///
/// # Errors
/// That it is not there, is no log, or is damaged.
pub fn counted(path: &Path) -> Result<Counted, Refusal> {
    import::darshan_counted(&bytes(path)?).map_err(|error| refusal(path, &error))
}

fn bytes(path: &Path) -> Result<Vec<u8>, Refusal> {
    std::fs::read(path)
        .map_err(|error| failed(path, &error, "Darshan names its logs USER_PROGRAM_id….darshan"))
}

fn refusal(path: &Path, error: &DarshanError) -> Refusal {
    Refusal::new(format!("{}: {error}", path.display()), error.hint())
}
