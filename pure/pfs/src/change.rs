//! What changes in names, opens and shared pointers: the manager applies it, the journal keeps it.

use crate::{Inode, Kind, Layout, OpenNumber, SessionId};

/// A file pointer that the group of an open shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pointer {
    /// How often the group has put it somewhere together.
    pub(crate) setting: u64,
    /// Where it is.
    pub(crate) units: u64,
}

/// One change of the state, as the journal has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A new file or directory.
    Create {
        parent: Inode,
        name: Vec<u8>,
        inode: Inode,
        kind: Kind,
        mode: u32,
        layout: Option<Layout>,
    },
    /// Another name; what had the new one so far goes.
    Rename { parent: Inode, name: Vec<u8>, new_parent: Inode, new_name: Vec<u8> },
    /// A name goes.
    Remove { parent: Inode, name: Vec<u8> },
    /// An open.
    Open { open: OpenNumber, inode: Inode, session: SessionId },
    /// The end of an open.
    Close { open: OpenNumber },
    /// The shared pointer of an open is elsewhere.
    Pointer { open: OpenNumber, pointer: Pointer },
    /// All servers have discarded a file.
    Discarded { inode: Inode },
    /// Numbers that were given out, whatever became of those who had them; and the last record that is in what
    /// the journal begins with.
    Numbers { inode: Inode, open: OpenNumber, sequence: u64 },
}

#[cfg(test)]
impl Change {
    /// A file (on two servers) or directory is made.
    pub(crate) fn of_create(parent: u64, name: &str, inode: u64, kind: Kind) -> Change {
        let layout = (kind == Kind::File).then(|| Layout::usual(2));
        let (parent, inode, name) = (Inode(parent), Inode(inode), name.as_bytes().to_vec());
        Change::Create { parent, name, inode, kind, mode: 0o640, layout }
    }
}
