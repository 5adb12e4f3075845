//! Files that a command writes: all of it or nothing.

use crate::failure::Failure;
use std::fs;
use std::path::Path;

/// Whether the file can be written at all: asked before an hour of measuring, not after. A file that
/// was not there is not there afterwards either.
pub(crate) fn writable(path: &Path, flag: &str) -> Result<(), Failure> {
    let was_there = path.exists();
    let opened = fs::OpenOptions::new().create(true).append(true).open(path);
    opened.map_err(|error| failed(path, flag, &error))?;
    if !was_there {
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// Writes the file; what was there is replaced only when all of it is written. What is no regular
/// file (a pipe, `/dev/stdout`) is written to as it is.
pub(crate) fn write(path: &Path, flag: &str, bytes: &[u8]) -> Result<(), Failure> {
    let special = fs::metadata(path).is_ok_and(|found| !found.is_file());
    if special {
        return fs::write(path, bytes).map_err(|error| failed(path, flag, &error));
    }
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let written = fs::write(&partial, bytes).and_then(|()| fs::rename(&partial, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&partial);
        failed(path, flag, &error)
    })
}

fn failed(path: &Path, flag: &str, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()))
        .hint(format!("choose another {flag}"))
}
