//! What a client is asked and told, and what it wants.

use crate::{
    Attributes, Buffer, Code, Entry, Kind, OpenWish, Opened, PartyAction, PartyEvent, Portion,
};
use iolab_pattern::Nest;
use iolab_vocab::{Direction, Nanos};
use std::sync::Arc;

/// A call, as the driver numbers them; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallNumber(pub u64);

/// A file that this process has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileNumber(pub u32);

/// What a program wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// Opens a file for a group of ranks, or for this process alone; by one of them. Every rank then
    /// adopts what was opened.
    Open {
        /// Its path.
        path: Vec<u8>,
        /// How.
        wish: OpenWish,
    },
    /// Takes part in an open of the group.
    Adopt {
        /// What the rank that opened has got.
        opened: Opened,
        /// This process in the group.
        rank: u32,
        /// Processes of the group.
        size: u32,
    },
    /// Reads or writes bytes `[from, to)` of a view; in a collective call, together with all ranks.
    Access {
        /// The file.
        file: FileNumber,
        /// Which way.
        direction: Direction,
        /// The view; equal views are stored once. One that is not proper is carried out run by run.
        view: Arc<Nest>,
        /// First byte.
        from: u64,
        /// The byte after the last one.
        to: u64,
        /// All ranks make this call, and all get the worst of their results.
        collective: bool,
    },
    /// Comes together with all ranks: all get the worst of their results.
    Agree {
        /// The file of the group.
        file: FileNumber,
        /// This rank's result.
        result: Code,
    },
    /// From now on, each access of this process to the file is atomic, or none is.
    SetAtomic {
        /// The file.
        file: FileNumber,
        /// Whether it is.
        atomic: bool,
    },
    /// Moves the pointer that the ranks share, from wherever it is.
    Advance {
        /// The file.
        file: FileNumber,
        /// How often the ranks have put it somewhere together.
        setting: u64,
        /// Where they have put it last.
        from: u64,
        /// How far it goes; 0 to ask where it is.
        by: u64,
    },
    /// How long the file is.
    Size {
        /// The file.
        file: FileNumber,
    },
    /// Gives the file that length.
    Resize {
        /// The file.
        file: FileNumber,
        /// In bytes.
        bytes: u64,
    },
    /// Makes what was written as durable as the class says.
    Sync {
        /// The file.
        file: FileNumber,
    },
    /// This process is through with a file; rank 0 ends the open.
    Close {
        /// The file.
        file: FileNumber,
    },
    /// What a name stands for, and how long it is.
    Look {
        /// Its path.
        path: Vec<u8>,
    },
    /// Makes a directory.
    MakeDirectory {
        /// Its path.
        path: Vec<u8>,
        /// Permissions.
        mode: u32,
    },
    /// Removes a name.
    Remove {
        /// Its path.
        path: Vec<u8>,
        /// A file's or a directory's.
        kind: Kind,
    },
    /// Gives something another name.
    Rename {
        /// The path so far.
        from: Vec<u8>,
        /// The path from now on.
        to: Vec<u8>,
    },
    /// Entries of a directory.
    List {
        /// Its path.
        path: Vec<u8>,
        /// Names that come after this one.
        after: Vec<u8>,
    },
}

impl Call {
    /// The file that it is about, of those that are open.
    pub(super) fn file(&self) -> Option<FileNumber> {
        match self {
            Call::Access { file, .. }
            | Call::Agree { file, .. }
            | Call::Size { file }
            | Call::Resize { file, .. }
            | Call::Sync { file }
            | Call::Close { file } => Some(*file),
            _ => None,
        }
    }

    /// Bytes of the longest path in it.
    pub(super) fn path_bytes(&self) -> usize {
        let both = match self {
            Call::Open { path, .. }
            | Call::Look { path }
            | Call::MakeDirectory { path, .. }
            | Call::Remove { path, .. } => [path.len(), 0],
            Call::Rename { from, to } => [from.len(), to.len()],
            Call::List { path, after } => [path.len(), after.len()],
            _ => [0, 0],
        };
        both[0].max(both[1])
    }
}

/// What came of a call.
pub type Outcome = Result<Done, Failure>;

/// What a call that succeeded came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// Nothing to tell.
    Nothing,
    /// A file was opened; to be adopted by every rank, this one too.
    Opened(Opened),
    /// It was adopted.
    Adopted(FileNumber),
    /// So many bytes were written, or were there to be read: the rest is behind the end of the file.
    Bytes(u64),
    /// Where the shared pointer was before it moved.
    Position(u64),
    /// A file's length, or what a name stands for and its length.
    Size(u64),
    /// What a name stands for.
    Attributes {
        /// As the manager has them.
        attributes: Attributes,
        /// How long it is.
        bytes: u64,
    },
    /// Entries of a directory.
    Entries {
        /// In the order of names.
        entries: Vec<Entry>,
        /// Whether there are more.
        more: bool,
    },
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind.
    pub code: Code,
    /// What or who failed, for people: one line.
    pub text: String,
}

/// What a client is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The program has called.
    Called {
        /// As which.
        call: CallNumber,
        /// What.
        what: Call,
    },
    /// Something of those whom it asks.
    Party(PartyEvent),
    /// Bytes that were read are where the program wants them.
    Moved {
        /// Of which call.
        call: CallNumber,
    },
    /// The time has come. Drivers say so once at the start, too.
    Woke,
}

/// What a client wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Something of those whom it asks.
    Party(PartyAction<Gather>),
    /// Bytes from a reply to the program's memory; the buffer is the driver's again. Answered by
    /// [`Event::Moved`].
    Move {
        /// Of which call.
        call: CallNumber,
        /// The bytes, from its first on: those of the portion.
        from: Buffer,
        /// Which bytes of the view they are; byte `y` of it is byte `y - origin` of the program's,
        /// wrapping.
        portion: Portion,
        /// First byte of the view that the call is about.
        origin: u64,
    },
    /// Zeros in the program's memory: a hole of the file was read. Answered by [`Event::Moved`].
    Zero {
        /// Of which call.
        call: CallNumber,
        /// Which bytes of the view.
        portion: Portion,
        /// First byte of the view that the call is about.
        origin: u64,
    },
    /// A buffer is the driver's again.
    Release {
        /// Which.
        buffer: Buffer,
    },
    /// What came of a call; its memory is the program's again.
    Answer {
        /// Which.
        call: CallNumber,
        /// What.
        outcome: Outcome,
    },
    /// [`Event::Woke`] at that time or soon after; earlier wishes stand.
    WakeAt(Nanos),
}

/// The bytes of a portion, out of the program's memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Gather {
    /// The call whose memory it is.
    pub call: CallNumber,
    /// Which bytes of the view; byte `y` of it is byte `y - origin` of the program's, wrapping.
    pub portion: Portion,
    /// First byte of the view that the call is about.
    pub origin: u64,
    /// How many bytes.
    pub bytes: u64,
}
