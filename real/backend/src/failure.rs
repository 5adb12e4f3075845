//! How a transfer fails, with the scene.

use std::fmt;
use std::path::PathBuf;

/// What was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Verb {
    Open,
    Read,
    Write,
    Sync,
    Close,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verb::Open => "open",
            Verb::Read => "read",
            Verb::Write => "write",
            Verb::Sync => "sync",
            Verb::Close => "close",
        })
    }
}

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IoError {
    /// The operating system refused.
    System {
        /// What was being done.
        verb: Verb,
        /// On which file.
        path: PathBuf,
        /// Where in the file.
        offset: u64,
        /// How many bytes.
        length: u64,
        /// What it said.
        error: String,
        /// Its number.
        code: i32,
    },
    /// The file ended before the data did.
    End {
        /// Which file.
        path: PathBuf,
        /// Where the data should have been.
        offset: u64,
        /// How many bytes were wanted from there.
        wanted: u64,
    },
    /// A transfer around the page cache does not lie on the grid that the device wants.
    Unaligned {
        /// Where in the file.
        offset: u64,
        /// How many bytes.
        length: u64,
        /// The grid.
        alignment: u64,
    },
    /// The MPI library reported an error.
    Mpi {
        /// What was being done.
        verb: Verb,
        /// On which file.
        path: PathBuf,
        /// What it said.
        error: String,
    },
    /// The parallel file system refused.
    Served {
        /// What was being done.
        verb: Verb,
        /// On which file.
        path: PathBuf,
        /// What it said.
        error: String,
    },
    /// This method cannot do it.
    Cannot(String),
}

impl IoError {
    /// Wraps what the operating system said.
    pub(crate) fn system(
        verb: Verb,
        path: &std::path::Path,
        place: (u64, u64),
        error: &std::io::Error,
    ) -> IoError {
        IoError::System {
            verb,
            path: path.to_owned(),
            offset: place.0,
            length: place.1,
            error: error.to_string(),
            code: error.raw_os_error().unwrap_or(0),
        }
    }

    /// What the user may do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            IoError::System { code: libc::ENOSPC | libc::EDQUOT, .. } => {
                "choose a target with more room, or a smaller pattern"
            }
            IoError::System { verb: Verb::Open, code: libc::EACCES | libc::EROFS, .. } => {
                "choose a target that you may write to"
            }
            IoError::System { verb: Verb::Open, .. } => "check the target and its directory",
            IoError::End { .. } => "write the file with the same pattern first",
            IoError::Unaligned { .. } => {
                "make sizes and header multiples of the alignment, or use another cache state"
            }
            IoError::Cannot(_) => "see the table of cells in docs/howto/bench-cells.md",
            _ => "look at the file system's log",
        }
    }
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IoError::System { verb: Verb::Open, path, error, .. } => {
                write!(f, "cannot open {}: {error}", path.display())
            }
            IoError::System { verb, path, offset, length, error, .. } => {
                let path = path.display();
                write!(f, "{verb} of {length} bytes at {offset} of {path} failed: {error}")
            }
            IoError::End { path, offset, wanted } => {
                write!(f, "{} ends before {offset}, {wanted} bytes wanted there", path.display())
            }
            IoError::Unaligned { offset, length, alignment } => write!(
                f,
                "{length} bytes at {offset} do not lie on multiples of {alignment} as direct I/O needs"
            ),
            IoError::Mpi { verb, path, error } | IoError::Served { verb, path, error } => {
                write!(f, "{verb} of {} failed: {error}", path.display())
            }
            IoError::Cannot(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for IoError {}
