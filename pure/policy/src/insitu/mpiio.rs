//! Stages of the layer above POSIX: what becomes of a program's calls of MPI-IO.
//!
//! They hear `MPI_File_…`, not what the MPI library makes of it. What they decide about a collective call,
//! all ranks decide alike: from what the ranks have told each other, and from nothing else. A driver hosts
//! them in a program (`real/mpi`); a mount, a replay and the simulator have no calls of MPI-IO for them.

mod account;
pub mod collect;
mod demote;
mod hints;
mod line;

pub use account::Account;
pub use collect::Collect;
pub use demote::{Demote, Judgement, Part, Parts, When};
pub use hints::Hints;
pub use line::{HintEffect, Line};

/// A stage of this layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MpiIoStage {
    /// Gives hints.
    Hints(Hints),
    /// Has collective accesses go out independently.
    Demote(Demote),
    /// Has independent writes go out together.
    Collect(Collect),
}
