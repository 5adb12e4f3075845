//! Ranks that talk to each other: threads of one process, forked processes, or an MPI job.
//!
//! Two verbs are enough for a benchmark: `barrier` and `gather` (every rank learns what every
//! rank said). Everything else, agreement, maximum, broadcast, is computed from what was gathered.
//! A rank that dies ends the wait of the others within a fraction of a second.

mod adapter;
mod local;
mod mpi;
mod predicted;

pub use adapter::{Adapter, Family, Launch, adapters, launch};
pub use local::{LocalKind, run_local, run_local_or};
pub use mpi::MpiRank;
pub use predicted::PredictedComm;

use iolab_host::mpi::Mpi;
use iolab_vocab::Rank;
use std::fmt;
use std::sync::Arc;

/// Why ranks could not talk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommError {
    /// A rank ended while the others waited for it.
    RankLost {
        /// Which one.
        rank: Rank,
        /// How it ended.
        end: String,
    },
    /// The ranks could not be started.
    Start(String),
    /// The MPI library reported an error.
    Mpi(String),
}

impl fmt::Display for CommError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommError::RankLost { rank, end } => write!(f, "rank {rank} {end}"),
            CommError::Start(why) => write!(f, "the ranks could not be started: {why}"),
            CommError::Mpi(why) => write!(f, "MPI: {why}"),
        }
    }
}

impl std::error::Error for CommError {}

/// One rank's side of the conversation.
pub trait Comm {
    /// Which rank this is.
    fn rank(&self) -> Rank;

    /// How many ranks there are.
    fn size(&self) -> u32;

    /// Returns when every rank has come here.
    fn barrier(&self) -> Result<(), CommError>;

    /// What every rank said, by rank. All ranks must call it.
    fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, CommError>;

    /// What carries it, for the result.
    fn kind(&self) -> &str;

    /// The MPI library, when this is an MPI job.
    fn mpi(&self) -> Option<&Arc<Mpi>> {
        None
    }
}

/// The numbers every rank gave.
pub fn gather_numbers(comm: &dyn Comm, own: u64) -> Result<Vec<u64>, CommError> {
    let all = comm.gather(&own.to_le_bytes())?;
    let number = |bytes: &Vec<u8>| bytes.as_slice().try_into().map(u64::from_le_bytes);
    let numbers: Result<Vec<u64>, _> = all.iter().map(number).collect();
    numbers.map_err(|_| CommError::Start("a rank answered another question".to_owned()))
}

/// The largest number any rank gave.
pub fn largest(comm: &dyn Comm, own: u64) -> Result<u64, CommError> {
    Ok(gather_numbers(comm, own)?.into_iter().max().unwrap_or(own))
}
