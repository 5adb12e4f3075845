//! The words between [`Names`](super::Names) and its driver.

/// A member, by a number no other one ever has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u64);

/// A container. The greatest is the newest: where two have a file of one name, the newer one's counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerId(pub u32);

impl ContainerId {
    /// The run's own, to which every new member belongs; earlier runs have left those below.
    pub const OWN: ContainerId = ContainerId(u32::MAX);
}

/// A name in a directory, which the driver has numbered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The directory.
    pub directory: u64,
    /// The name.
    pub name: Vec<u8>,
}

/// What lies at the new name of a rename, beside members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Nothing, and members may lie there.
    Free,
    /// Nothing, or something that is no member must be asked.
    Real,
}

/// A call that a member may have to do with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// A descriptor of it was closed.
    Close(MemberId),
    /// All there is is to be durable.
    Sync,
    /// A name is to go.
    Unlink(Place),
    /// A name is to be another one.
    Rename {
        /// From there.
        from: Place,
        /// To there.
        to: Place,
        /// What is there.
        target: Target,
        /// Not over another file.
        keeps_target: bool,
        /// An exchange, or another kind that members do not know.
        is_special: bool,
    },
    /// Anything that only a real file can be asked for.
    Other(MemberId),
    /// A directory is to go.
    RemoveDirectory(u64),
    /// Directories are to be moved or replaced.
    MoveDirectories(Vec<u64>),
}

/// A record for a container: for the member's own where none is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Append {
    /// The member's new bytes and attributes.
    Contents(MemberId),
    /// It has another name.
    Renamed(MemberId, Place),
    /// A name is gone.
    Unlinked(Place, ContainerId),
    /// A real file is about to be made of it.
    Moving(MemberId),
    /// The name leads elsewhere: a real file has been made of it, or a newer container has one of that name.
    Made(Place, ContainerId),
}

/// What is to be done. Those before the last do not end the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A record is added to the container.
    Append(Append),
    /// The name of a member goes, which the container does not know.
    Drop(Place),
    /// Every container is made durable.
    Sync,
    /// A real file takes the member's place; no other file is overwritten.
    Make(MemberId),
    /// The call is answered so: an error number of the system, or none.
    Answer(Result<(), i32>),
    /// The call goes where it would have gone.
    Pass,
}

/// How an action ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Well.
    Done,
    /// Not at all: nothing has changed.
    Failed(i32),
}
