//! What can be wrong with the spool directory of a recording.

use iolab_trace::finish::FinishError;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// What is wrong with a spool directory.
#[derive(Debug)]
pub enum RecordingError {
    /// A file or directory, and what happened to it.
    File(PathBuf, io::Error),
    /// The directory holds no recording.
    Finish(PathBuf, FinishError),
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordingError::File(path, error) => write!(f, "{}: {error}", path.display()),
            RecordingError::Finish(path, error) => {
                write!(f, "{} is no spool directory: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for RecordingError {}

/// Ties an error to the file it happened to.
pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> RecordingError {
    let path = path.to_owned();
    |error| RecordingError::File(path, error)
}
