//! What a handle of MPI stands for: a communicator, an open file, a message that was prepared or found.

/// A communicator of one group.
#[derive(Clone, Debug)]
pub(crate) struct Communicator {
    /// Its number in the run.
    pub(crate) number: u32,
    /// Own rank in it.
    pub(crate) rank: i32,
    /// Ranks of the whole program.
    pub(crate) members: Vec<u32>,
}

impl Communicator {
    /// A rank of it, as the whole program counts.
    pub(crate) fn member(&self, rank: i32) -> Option<u32> {
        usize::try_from(rank).ok().and_then(|rank| self.members.get(rank)).copied()
    }
}

/// An open file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    /// Its number in the run, which its name has.
    pub(crate) number: u32,
    /// The request's number of a split collective call that has begun.
    pub(crate) begun: Option<u32>,
}

/// A message, or half of it, as a record has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) communicator: i32,
    /// Rank and tag, −1 for the null process.
    pub(crate) partner: i64,
    pub(crate) bytes: i64,
}

/// A message that `MPI_Start` will start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Persistent {
    pub(crate) message: Message,
    pub(crate) receives: bool,
}

/// A message that a matching probe has found: whom it was asked for, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found(pub(crate) Message);
