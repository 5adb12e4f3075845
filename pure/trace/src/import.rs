//! Traces of other tools. What they do not say and was inferred stands in `Header::inferred`.

mod darshan;
mod dftracer;
pub mod hdtrace;
mod otf2;
mod recorder;
mod shared;
mod strace;
mod strace_line;

/// What a log of Darshan counts, see [`darshan_counted`].
pub mod counted {
    pub use super::darshan::{Counted, Extreme, Heat, Module, Record, SIZE_BOUNDS, Way};
}

pub use darshan::{DarshanError, darshan, darshan_counted, is_darshan, old_darshan};
pub use dftracer::{Dftracer, DftracerError, is_dftracer};
pub use otf2::{Otf2, Otf2Error, is_otf2};
pub use recorder::{Recorder, RecorderError, Row as RecorderRow, is_recorder};
pub use strace::{NO_DURATIONS, strace};

use std::fmt;

/// Why a foreign trace could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// Number of the line, counted from 1; 0 where there is none.
    pub line: usize,
    /// How it begins.
    pub text: String,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return write!(f, "nothing is in it");
        }
        write!(f, "line {} is not what the format says: `{}`", self.line, self.text)
    }
}

impl std::error::Error for ImportError {}
