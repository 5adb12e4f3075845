//! Traces on disk, for every sub-command that reads or writes one.

use crate::failure::Failure;
use crate::hdtrace;
use iolab_iot::{IotError, Reader};
use iolab_trace::Trace;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Reads the whole trace at `path`; a project of HDTrace is imported on the way.
pub(crate) fn load(path: &Path) -> Result<Trace, Failure> {
    if hdtrace::is_project(path) {
        return hdtrace::load(path);
    }
    iolab_iot::read(file(path)?).map_err(|error| of(path, &error))
}

/// Opens the trace at `path` to read it piece by piece, for what need not hold all of it.
pub(crate) fn open(path: &Path) -> Result<Reader<File>, Failure> {
    Reader::new(file(path)?).map_err(|error| of(path, &error))
}

fn file(path: &Path) -> Result<File, Failure> {
    File::open(path).map_err(|error| {
        Failure::new(format!("{}: {error}", path.display()))
            .hint("traces are made by `iolab record -o RUN.iot -- COMMAND`")
    })
}

/// Writes a whole trace to `path`; what was there is replaced only when all of it is written.
pub(crate) fn save(path: &Path, trace: &Trace) -> Result<(), Failure> {
    save_with(path, |file| iolab_iot::write(trace, BufWriter::new(file)))
}

/// Writes any bytes to `path`, in the same way.
pub(crate) fn save_bytes(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    save_quietly(path, bytes)?;
    eprintln!("wrote {}", path.display());
    Ok(())
}

/// The same without a word about it.
pub(crate) fn save_quietly(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    save_with(path, |mut file| file.write_all(bytes).map_err(IotError::Io))
}

fn save_with(path: &Path, write: impl FnOnce(File) -> Result<(), IotError>) -> Result<(), Failure> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = Path::new(&partial);
    let written = File::create(partial)
        .map_err(IotError::Io)
        .and_then(write)
        .and_then(|()| std::fs::rename(partial, path).map_err(IotError::Io));
    written.map_err(|error| {
        let _ = std::fs::remove_file(partial);
        of(path, &error)
    })
}

/// The failure of reading or writing the trace at `path`.
pub(crate) fn of(path: &Path, error: &IotError) -> Failure {
    let failure = Failure::new(format!("{}: {error}", path.display()));
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
