//! The run segment: memory that all processes of one `iolab run` share.
//!
//! Strategies hold bytes back. As long as they lie in one process alone, another process that looks
//! at the file sees an old one, and a process that is killed takes them with it. So they lie here:
//! for each file (device and inode) that a process of the run has open an [`Entry`] says who has it
//! open, and which extents of it are held where ([`Slab`]). Whoever looks at a file writes out what
//! others hold of it first ([`Run::disturb`]); what a dead process held is written out by the next
//! one that looks, or by the launcher ([`Run::sweep`]).
//!
//! *Costs.* An absorbed append is one store here, an overwrite none. Entering a file's lock is a
//! store and a load more than it was: the owner does not wait for others, others make it listen
//! (`membarrier`). An open and a close cost some 50 ns each.
//!
//! *Trust.* Processes of the same user only; every number read from here is checked before it is
//! used, so that a process gone wild can lose bytes but not take others with it. A process that
//! dies anywhere in here leaves nothing half done: words are published last.

/// Those of the system; the tests of orders put an explorer's in their place.
mod atomic {
    pub(crate) use std::sync::atomic::{Ordering, fence};
}
mod attach;
mod claim;
mod counted;
mod drain;
mod fast_place;
mod join;
mod layout;
mod meeting;
mod page;
mod process;
mod sealed;
mod slab;
mod slab_layout;
mod system;
mod tally;
#[cfg(test)]
mod tests;

pub use attach::{AttachError, Run, Shape};
pub use claim::Claim;
pub use counted::{COUNTED_VARIABLE, Counted, NUMBERS, Row};
pub use drain::{Undrained, Unwritten};
pub use fast_place::{
    Answer, DIRECTORY_BYTES_MAX, FILES_MAX, FastPlace, Inode, Line, Listener, Path as FastPath,
    Question, Reply, Request, STAGE_VARIABLE, STILL, StagedFile, Talk, file_name,
};
pub use join::Joined;
pub use layout::{Entry, STAGES};
pub use sealed::{PLANS_VARIABLE, share as share_bytes, shared as shared_bytes};
pub use slab::{Ledger, Slab};
pub use system::release_pages;
pub use system::{Descriptor, birth_of};
pub use tally::{Figures, TALLY_VARIABLE, Tally};

/// The variable that tells processes where the segment is.
pub const VARIABLE: &str = "IOLAB_RUN";
/// Name of the segment in the directory of its run.
pub const FILE_NAME: &str = "segment";
