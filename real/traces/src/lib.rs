//! Traces on disk, whoever wrote them: iolab in one file or in parts, or another tool.
//!
//! [`open`] reads iolab's own piece by piece, [`load`] any of them whole. What another tool wrote is
//! told from its name or content ([`Format::of`]) and imported on the way.

pub mod darshan;
mod dftracer;
mod format;
mod hdtrace;
mod otf2;
pub mod parts;
mod recorder;
mod source;
mod strace;

pub use format::Format;
pub use hdtrace::is_project;
pub use source::{Chosen, Source};

use iolab_iot::{IotError, Joined, Reader};
use iolab_trace::Trace;
use iolab_vocab::Refusal;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

const MADE_BY: &str = "traces are made by `iolab record -o RUN.iot -- COMMAND`";

/// Reads the whole trace at `path`.
///
/// # Errors
/// That it is not there, is no trace, or is damaged.
pub fn load(path: &Path) -> Result<Trace, Refusal> {
    load_with(path, |_| {})
}

/// The same; `before` hears how many rows one of iolab's own has before they are read.
///
/// # Errors
/// That it is not there, is no trace, or is damaged.
pub fn load_with(path: &Path, before: impl FnOnce(u64)) -> Result<Trace, Refusal> {
    if let Some(trace) = imported(path)? {
        return Ok(trace);
    }
    let parts = open(path)?;
    before(parts.rows());
    parts.into_trace().map_err(|error| unreadable(path, &error))
}

/// The trace at `path`, if another tool wrote it in a way that can be told from ours.
///
/// # Errors
/// That it is damaged, or holds nothing a trace is made of.
pub fn imported(path: &Path) -> Result<Option<Trace>, Refusal> {
    Format::of(path).map(|format| format.load(path)).transpose()
}

/// Opens the trace at `path` that iolab wrote, a file or a directory of parts, to read it piece by
/// piece, for what need not hold all of it.
///
/// # Errors
/// That it is not there, or is no trace.
pub fn open(path: &Path) -> Result<Joined<File>, Refusal> {
    join(&parts::of(path).map_err(|error| failed(path, &error, MADE_BY))?)
}

/// Opens parts as one trace.
///
/// # Errors
/// That one is not there, or is no trace.
pub fn join(parts: &[PathBuf]) -> Result<Joined<File>, Refusal> {
    let opened = |part: &PathBuf| {
        let file = File::open(part).map_err(|error| failed(part, &error, MADE_BY))?;
        Reader::new(file).map_err(|error| unreadable(part, &error))
    };
    Ok(Joined::new(parts.iter().map(opened).collect::<Result<_, Refusal>>()?))
}

/// What a reader should know besides: that `path` was read from the parts of a job that was cut off,
/// or that such parts lie beside it which are newer.
pub fn unfinished(path: &Path) -> Option<String> {
    let beside = parts::beside(path);
    beside.is_dir().then(|| {
        let problem = if path.exists() { "is older than" } else { "is not complete; read from" };
        format!("{} {problem} the parts in {}", path.display(), beside.display())
    })
}

/// Why the trace at `path` cannot be read, from the error of its format.
pub fn unreadable(path: &Path, error: &IotError) -> Refusal {
    Refusal::new(
        format!("{}: {error}", path.display()),
        error.hint().unwrap_or("record it again, or copy it again"),
    )
}

/// Why a file cannot be read at all.
fn failed(path: &Path, error: &io::Error, hint: &str) -> Refusal {
    Refusal::new(format!("{}: {error}", path.display()), hint)
}
