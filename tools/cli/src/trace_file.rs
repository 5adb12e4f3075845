//! Traces on disk, for every sub-command that reads or writes one.

use crate::failure::Failure;
use crate::hdtrace;
use crate::output::Output;
use iolab_iot::{IotError, Reader};
use iolab_trace::Trace;
use std::fs::File;
use std::io::BufWriter;
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
    save_to(Output::begin(path, "-o", &[])?, trace)
}

/// Writes a whole trace to a place that was looked at before.
pub(crate) fn save_to(output: Output, trace: &Trace) -> Result<(), Failure> {
    output.write_with(|file| iolab_iot::write(trace, BufWriter::new(file)), IotError::Io)
}

/// Writes any bytes to `path`, in the same way.
pub(crate) fn save_bytes(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    save_quietly(path, bytes)?;
    eprintln!("wrote {}", path.display());
    Ok(())
}

/// The same without a word about it.
pub(crate) fn save_quietly(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    Output::begin(path, "-o", &[])?.write(bytes)
}

/// The failure of reading or writing the trace at `path`.
pub(crate) fn of(path: &Path, error: &IotError) -> Failure {
    let failure = Failure::new(format!("{}: {error}", path.display()));
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
