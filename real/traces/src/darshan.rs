//! Logs of Darshan on disk.

use crate::failed;
use iolab_trace::{Trace, import};
use iolab_vocab::Refusal;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Whether a file begins as a log of Darshan does.
pub(crate) fn is_log(path: &Path) -> bool {
    // Whatever is not a regular file must not be read twice.
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut head = [0; 16];
    is_file
        && File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok()
        && import::is_darshan(&head)
}

/// Reads a log.
pub(crate) fn load(path: &Path) -> Result<Trace, Refusal> {
    let bytes = std::fs::read(path)
        .map_err(|error| failed(path, &error, "Darshan names its logs USER_PROGRAM_id….darshan"))?;
    import::darshan(&bytes)
        .map_err(|error| Refusal::new(format!("{}: {error}", path.display()), error.hint()))
}
