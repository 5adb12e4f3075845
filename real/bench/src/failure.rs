//! Why a run ends early: the scene, and the way out; when one rank fails, all end with its error.

use iolab_backend::IoError;
use iolab_comm::{Comm, CommError};
use std::fmt;

/// Why a run ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BenchError {
    /// A rank failed; all stopped.
    OnRank {
        /// Which one.
        rank: u32,
        /// What happened.
        message: String,
        /// The way out.
        hint: String,
    },
    /// The ranks could not talk any more.
    Comm(CommError),
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BenchError::OnRank { rank, message, .. } => write!(f, "rank {rank}: {message}"),
            BenchError::Comm(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BenchError {}

impl From<CommError> for BenchError {
    fn from(error: CommError) -> BenchError {
        BenchError::Comm(error)
    }
}

impl BenchError {
    /// What the user may do about it.
    pub fn hint(&self) -> &str {
        match self {
            BenchError::OnRank { hint, .. } => hint,
            BenchError::Comm(_) => "look at the rank's own messages, and at the system's log",
        }
    }
}

/// A message and its way out, as ranks tell each other.
pub(crate) type Told = (String, String);

/// What a back end says, as ranks tell each other.
pub(crate) fn told(error: &IoError) -> (String, String) {
    (error.to_string(), error.hint().to_owned())
}

/// Goes on only if no rank failed; else all stop with the same error.
pub(crate) fn agree(comm: &dyn Comm, own: Result<(), (String, String)>) -> Result<(), BenchError> {
    let said = serde_json::to_vec(&own.err()).unwrap_or_default();
    for (rank, text) in comm.gather(&said)?.iter().enumerate() {
        if let Ok(Some((message, hint))) = serde_json::from_slice::<Option<(String, String)>>(text)
        {
            return Err(BenchError::OnRank { rank: rank as u32, message, hint });
        }
    }
    Ok(())
}
