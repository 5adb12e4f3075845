//! Traces on disk, for every sub-command that reads or writes one.

use crate::failure::Failure;
use crate::import::Format;
use crate::output::Output;
use iolab_host::trace_parts;
use iolab_iot::{IotError, Joined, Reader};
use iolab_trace::Trace;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Reads the whole trace at `path`; what another tool wrote is imported on the way.
pub(crate) fn load(path: &Path) -> Result<Trace, Failure> {
    if let Some(trace) = imported(path)? {
        return Ok(trace);
    }
    open(path)?.into_trace().map_err(|error| of(path, &error))
}

/// The trace at `path`, if another tool wrote it in a way that can be told from ours.
pub(crate) fn imported(path: &Path) -> Result<Option<Trace>, Failure> {
    Format::of(path).map(|format| format.load(path)).transpose()
}

/// The whole trace that these parts make.
pub(crate) fn load_parts(parts: &[PathBuf]) -> Result<Trace, Failure> {
    let first = parts.first().map_or(Path::new(""), PathBuf::as_path);
    join(parts)?.into_trace().map_err(|error| of(first, &error))
}

/// Opens the trace at `path`, a file or a directory of parts, to read it piece by piece, for what
/// need not hold all of it.
pub(crate) fn open(path: &Path) -> Result<Joined<File>, Failure> {
    let parts = trace_parts::of(path).map_err(|error| missing(path, &error))?;
    let unfinished = trace_parts::beside(path);
    if unfinished.is_dir() {
        let problem = match path.exists() {
            true => "is older than",
            false => "is not complete; read from",
        };
        eprintln!(
            "iolab: warning: {} {problem} the parts in {}",
            path.display(),
            unfinished.display()
        );
    }
    join(&parts)
}

/// Opens parts as one trace.
pub(crate) fn join(parts: &[PathBuf]) -> Result<Joined<File>, Failure> {
    let readers: Result<_, Failure> = parts
        .iter()
        .map(|part| {
            let file = File::open(part).map_err(|error| missing(part, &error))?;
            Reader::new(file).map_err(|error| of(part, &error))
        })
        .collect();
    Ok(Joined::new(readers?))
}

fn missing(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
        .hint("traces are made by `iolab record -o RUN.iot -- COMMAND`")
}

/// Writes a whole trace to `path`; what was there is replaced only when all of it is written.
pub(crate) fn save(path: &Path, trace: &Trace) -> Result<(), Failure> {
    save_to(Output::begin(path, "-o", &[])?, trace).map(drop)
}

/// Writes a whole trace to a place that was looked at before; the answer is where it lies now.
pub(crate) fn save_to(output: Output, trace: &Trace) -> Result<PathBuf, Failure> {
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
