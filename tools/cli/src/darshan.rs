//! Logs of Darshan on disk.

use crate::failure::Failure;
use iolab_trace::{Trace, import};
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
pub(crate) fn load(path: &Path) -> Result<Trace, Failure> {
    let place = path.display();
    let bytes = std::fs::read(path).map_err(|error| Failure::new(format!("{place}: {error}")))?;
    import::darshan(&bytes)
        .map_err(|error| Failure::new(format!("{place}: {error}")).hint(error.hint()))
}
