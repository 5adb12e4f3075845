//! What a replay comes to: a summary, or the reason why not.

use crate::room::is_lacking;
use iolab_policy::insitu::Totals;
use iolab_trace::Event;
use iolab_vocab::{Nanos, format_bytes};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// A replay that went as recorded.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Processes of the trace.
    pub processes: u64,
    /// Threads of the trace, each a thread of the replay.
    pub threads: u64,
    /// Calls that were issued and came out as recorded.
    pub calls: u64,
    /// Bytes they read.
    pub read_bytes: u64,
    /// Bytes they wrote.
    pub written_bytes: u64,
    /// Calls that were not issued, by reason.
    pub skipped: BTreeMap<&'static str, u64>,
    /// From the first call to the end of the last thread.
    pub elapsed: Nanos,
    /// What the strategies decided, in order, as rows of a trace.
    pub decisions: Vec<Event>,
    /// What strategies that count have counted.
    pub counted: Totals,
    /// What else a reader of the numbers should know.
    pub notes: Vec<String>,
}

/// The first call that did not come out as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Row of the trace.
    pub row: u64,
    /// The call, for people: process, thread, function, file.
    pub call: String,
    /// What was compared: `result`, `offset`, `data`, `position at close`.
    pub what: &'static str,
    /// As the trace has it.
    pub recorded: String,
    /// As it came out.
    pub replayed: String,
    /// The file system had no room for it.
    pub lacks_room: bool,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { row, call, what, recorded, replayed, .. } = self;
        write!(f, "row {row}, {call}: {what} was {recorded}, is {replayed} in the replay")
    }
}

/// Why a replay ended early.
#[derive(Debug)]
pub enum ReplayError {
    /// The scratch directory has something in it.
    DirectoryInUse(PathBuf),
    /// A path of the trace leads nowhere below the scratch directory.
    StrangePath(String),
    /// The scratch tree could not be prepared.
    Prepare {
        /// What could not be made.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A call came out differently.
    Different(Box<Difference>),
    /// There was no room for the files.
    Full {
        /// What found none: a [`ReplayError::Prepare`] or a [`ReplayError::Different`].
        first: Box<ReplayError>,
        /// What the files take at the most, about.
        needed_bytes: u64,
    },
}

impl ReplayError {
    /// A way out, where there is one.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            ReplayError::DirectoryInUse(_) => {
                "name an empty or a new directory, or allow it with --into-used-directory"
            }
            ReplayError::StrangePath(_) => "the trace is damaged; record it again",
            ReplayError::Prepare { .. } => "choose a directory that you may write",
            ReplayError::Different(_) => return None,
            ReplayError::Full { needed_bytes, .. } => {
                return Some(format!(
                    "the files take up to {}: name a directory with that much room",
                    format_bytes(*needed_bytes)
                ));
            }
        };
        Some(hint.to_owned())
    }

    /// The same with what its files need, where there was no room for them.
    pub(crate) fn with_room(self, needed_bytes: impl FnOnce() -> u64) -> ReplayError {
        let lacks_room = match &self {
            ReplayError::Prepare { error, .. } => error.raw_os_error().is_some_and(is_lacking),
            ReplayError::Different(difference) => difference.lacks_room,
            _ => false,
        };
        match lacks_room {
            true => ReplayError::Full { first: Box::new(self), needed_bytes: needed_bytes() },
            false => self,
        }
    }

    /// The call that came out differently, if that is why.
    pub fn difference(&self) -> Option<&Difference> {
        match self {
            ReplayError::Different(difference) => Some(difference),
            ReplayError::Full { first, .. } => first.difference(),
            _ => None,
        }
    }
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::DirectoryInUse(path) => write!(f, "{} is not empty", path.display()),
            ReplayError::StrangePath(path) => write!(f, "`{path}` is no absolute path"),
            ReplayError::Prepare { path, error } => {
                write!(f, "cannot prepare {}: {error}", path.display())
            }
            ReplayError::Different(difference) => write!(f, "the replay differs: {difference}"),
            ReplayError::Full { first, .. } => first.fmt(f),
        }
    }
}

impl std::error::Error for ReplayError {}
