//! What parties say to each other. Bytes on the wire: `wire.rs` and `docs/format/pfs-wire.md`.

use crate::cache_manager::Counts;
use crate::{HoldNumber, Inode, Layout, OpenNumber, ViewNumber};
use std::fmt;

/// Bytes of a path.
pub(crate) const PATH_BYTES_MAX: usize = 4095;
/// Payload of one message at most.
pub(crate) const PAYLOAD_BYTES_MAX: u64 = 1 << 20;

/// Somebody who is connected to a party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// What it said it is called.
    pub name: String,
    /// The memory that its payload goes through; none if it goes through the socket.
    pub window_bytes: u64,
}

/// A request or a reply; payload travels behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    // Any party.
    /// Is anybody there? Answered by [`Message::Pong`].
    Ping,
    /// Yes.
    Pong,
    /// Done as asked; the reply that carries nothing.
    Done,
    /// Not done, or not certainly.
    Failed {
        /// Why.
        code: Code,
        /// The offender, for people.
        text: String,
    },

    /// Who else is connected? Answered by [`Message::Connected`], by the driver: machines do not know how
    /// bytes come to them.
    Status,
    /// Those who are connected, up to as many as a frame holds.
    Connected(Vec<Connected>),
    /// What has a cache manager done so far? Answered by [`Message::Counts`]; by an I/O server with
    /// [`Message::Damage`], and by the metadata manager with [`Message::Files`].
    Count,
    /// That.
    Counts(Counts),
    /// Pages that an I/O server has found changed by its device since it began, and that nobody has written anew.
    Damage {
        /// How many; as many as are remembered at most.
        pages: u64,
    },
    /// Files and directories that there are, without the root; with those that have no name and are open.
    Files {
        /// How many.
        count: u64,
    },

    // The metadata manager. Paths are absolute and without `.`, `..` or empty names.
    /// Opens a file, and creates it if so wished. Answered by [`Message::Opened`].
    Open {
        /// Its path.
        path: Vec<u8>,
        /// What is wished.
        wish: OpenWish,
    },
    /// What was opened.
    Opened(Opened),
    /// An open is over.
    Close {
        /// Which.
        open: OpenNumber,
    },
    /// Moves the pointer that the group of an open shares, from wherever it is. Answered by
    /// [`Message::Position`].
    Advance {
        /// Whose pointer.
        open: OpenNumber,
        /// How often the group has put it somewhere together.
        setting: u64,
        /// Where it has put it last.
        from: u64,
        /// How far it goes; 0 to ask where it is.
        by: u64,
    },
    /// Where a shared pointer was before it moved.
    Position {
        /// In units of the group's choice.
        units: u64,
    },
    /// Asks for the attributes of a name. Answered by [`Message::Attributes`].
    Look {
        /// Its path.
        path: Vec<u8>,
    },
    /// What a name stands for.
    Attributes(Attributes),
    /// Makes a directory.
    MakeDirectory {
        /// Its path.
        path: Vec<u8>,
        /// Permissions.
        mode: u32,
    },
    /// Removes a name: of a file, or of an empty directory.
    Remove {
        /// Its path.
        path: Vec<u8>,
        /// Which of both.
        kind: Kind,
    },
    /// Gives something another name; a file of that name goes.
    Rename {
        /// The path so far.
        from: Vec<u8>,
        /// The path from now on.
        to: Vec<u8>,
    },
    /// Asks for entries of a directory. Answered by [`Message::Entries`].
    List {
        /// Its path.
        path: Vec<u8>,
        /// Names that come after this one; empty: from the start.
        after: Vec<u8>,
    },
    /// Entries of a directory, in the order of names.
    Entries {
        /// As many as a message holds.
        entries: Vec<Entry>,
        /// Whether there are more behind the last one.
        more: bool,
    },

    // I/O servers.
    /// A part of a view that is to be stored: views may be larger than a message. With the last part
    /// it is stored; a number that is stored already is taken anew.
    SetView {
        /// As the client will name it.
        view: ViewNumber,
        /// The file.
        inode: Inode,
        /// How it is partitioned.
        layout: Layout,
        /// Where in the encoded nest the part lies.
        offset: u32,
        /// How many bytes the encoded nest has.
        total: u32,
        /// The part.
        part: Vec<u8>,
    },
    /// A view is not needed any more.
    DropView {
        /// Which.
        view: ViewNumber,
    },
    /// Writes the payload to a portion of a view. Answered by [`Message::Done`].
    Write(Access),
    /// Reads a portion of a view. Answered by [`Message::Data`].
    Read(Access),
    /// What was read: the bytes of the portion before the end of the subfile, as payload.
    Data {
        /// Where the view has its first byte that is not there; the end of the portion if all are.
        end: u64,
    },
    /// Asks how long a subfile is. Answered by [`Message::End`].
    Measure {
        /// The file.
        inode: Inode,
        /// Which part of it.
        subfile: u32,
    },
    /// How long a subfile is.
    End {
        /// In bytes.
        bytes: u64,
    },
    /// Gives a subfile another length. A cache manager drops what it has behind the end, and then lets
    /// nobody else go on with its part of the file until [`Message::Resume`], or the end of the session.
    Resize {
        /// The file.
        inode: Inode,
        /// Which part of it.
        subfile: u32,
        /// At most, or exactly.
        bytes: u64,
        /// Whether it becomes longer if it is shorter.
        extends: bool,
    },
    /// All servers have the length that a cache manager was told of: others may go on.
    Resume {
        /// The file.
        inode: Inode,
        /// Which part of it.
        subfile: u32,
    },
    /// Makes what was written to a subfile as durable as the class says; a cache manager brings what it
    /// has of its part to the servers.
    Sync {
        /// The file.
        inode: Inode,
        /// Which part of it.
        subfile: u32,
    },
    /// Holds bytes of a subfile against other atomic calls. Answered by [`Message::Done`] once it stands.
    Hold {
        /// By which name it is released.
        hold: HoldNumber,
        /// The file.
        inode: Inode,
        /// Which part of it.
        subfile: u32,
        /// First byte, in the subfile.
        from: u64,
        /// The byte after the last one.
        to: u64,
        /// Whether it stands alone; else beside others that do not.
        excludes: bool,
    },
    /// A hold is not needed any more; fails if it did not stand until now.
    Release {
        /// Which.
        hold: HoldNumber,
        /// The file.
        inode: Inode,
        /// Which part of it.
        subfile: u32,
    },
    /// Keeps space on the device for what a cache manager is about to have in memory, in place of what was
    /// kept for it before. Answered by [`Message::Granted`].
    Grant {
        /// The file that it wants to write.
        inode: Inode,
        /// Which part of it.
        subfile: u32,
        /// First byte of the block, in the subfile; with `to` the same, no block is meant.
        from: u64,
        /// The byte after the last one.
        to: u64,
        /// How much of what is kept for it has data in memory that will need it.
        taken: u64,
        /// How much it needs, with that.
        bytes: u64,
        /// How much more is welcome.
        more: u64,
    },
    /// What is kept.
    Granted {
        /// How much in all.
        bytes: u64,
        /// How much of the block has no place on the device yet.
        missing: u64,
        /// In which units the device gives space.
        unit: u64,
        /// What a write is told that needs more than there is.
        refusal: Code,
    },
    /// A file is no more: its subfiles may go. Of the metadata manager only.
    Discard {
        /// Which file.
        inode: Inode,
    },
    /// A rank has come to the end of its part of a collective. Answered by [`Message::Verdict`] once all
    /// ranks of the group have.
    Arrive {
        /// The group.
        group: OpenNumber,
        /// Its processes.
        size: u32,
        /// Who has come.
        rank: u32,
        /// To which collective of the group; the first is 0.
        sequence: u64,
        /// With what.
        result: Code,
        /// What the collective before came to: a server in a new life tells it those who still wait.
        previous: Code,
        /// Whether the group ends with this one.
        last: bool,
    },
    /// What a collective came to on all ranks: the worst of their results.
    Verdict {
        /// That of the lowest rank that failed; success if none did.
        result: Code,
        /// Which rank it was; of a success, or if it is not known any more, `u32::MAX`.
        rank: u32,
    },
}

/// How a file is to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenWish {
    /// It will be read.
    pub reads: bool,
    /// It will be written.
    pub writes: bool,
    /// It is created if there is none.
    pub creates: bool,
    /// It must not be there yet.
    pub exclusive: bool,
    /// Permissions of a new file.
    pub mode: u32,
    /// Partition of a new file; by itself the file system's.
    pub layout: Option<Layout>,
}

impl OpenWish {
    /// To read a file that must be there.
    pub const TO_READ: OpenWish = OpenWish {
        reads: true,
        writes: false,
        creates: false,
        exclusive: false,
        mode: 0,
        layout: None,
    };
}

/// What a client needs to know of a file that was opened, and to tell the other ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The open, and the group of those that share it.
    pub open: OpenNumber,
    /// The file.
    pub inode: Inode,
    /// How it is partitioned.
    pub layout: Layout,
    /// Whether it was created by this open.
    pub created: bool,
}

/// A portion of a stored view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The view.
    pub view: ViewNumber,
    /// Which part of the file.
    pub subfile: u32,
    /// First byte, as the view counts.
    pub from: u64,
    /// The byte after the last one.
    pub to: u64,
}

/// What a name may stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
}

/// What is known of a file or directory. How long it is, its servers know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Its number.
    pub inode: Inode,
    /// Which of both.
    pub kind: Kind,
    /// Permissions.
    pub mode: u32,
    /// How a file is partitioned.
    pub layout: Option<Layout>,
    /// Whether somebody has it open.
    pub is_open: bool,
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: Vec<u8>,
    /// What it stands for.
    pub attributes: Attributes,
}

/// Why something was not done: an `errno` of Linux, or one of ours (from 1000 on). 0 is success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub u16);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        impl Code {
            $($(#[$doc])* pub const $name: Code = Code($number);)*

            /// What it means, if it is one that machines give.
            fn text(self) -> Option<&'static str> {
                match self {
                    $(Code::$name => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// Nothing is wrong.
    OK = 0, "success";
    /// Not allowed.
    NOT_PERMITTED = 1, "operation not permitted";
    /// No such name.
    NO_ENTRY = 2, "no such file or directory";
    /// The device failed.
    IO = 5, "input/output error";
    /// The file is open in another way.
    BAD_FILE = 9, "the file is not open for that";
    /// No memory, or more than the limits allow.
    NO_MEMORY = 12, "out of memory";
    /// Not allowed to this user.
    ACCESS = 13, "permission denied";
    /// Somebody uses it.
    BUSY = 16, "device or resource busy";
    /// The name is there already.
    EXISTS = 17, "file exists";
    /// Not a directory.
    NOT_DIRECTORY = 20, "not a directory";
    /// A directory.
    IS_DIRECTORY = 21, "is a directory";
    /// What was asked makes no sense.
    INVALID = 22, "invalid argument";
    /// Beyond the largest file.
    TOO_LARGE = 27, "file too large";
    /// The device is full.
    NO_SPACE = 28, "no space left on device";
    /// Read, and nothing else.
    READ_ONLY = 30, "read-only file";
    /// Nothing that can be done with such a file.
    NOT_SUPPORTED = 95, "operation not supported";
    /// The user has no more room.
    QUOTA = 122, "disk quota exceeded";
    /// A name is too long.
    NAME_TOO_LONG = 36, "file name too long";
    /// A directory is not empty.
    NOT_EMPTY = 39, "directory not empty";
    /// The file was removed, and nobody has it open.
    STALE = 116, "the file was removed";
    /// Nobody answered in time.
    TIMED_OUT = 110, "no answer in time";
    /// The view is not stored (any more): it is to be sent again.
    UNKNOWN_VIEW = 1000, "unknown view";
    /// The server does not know the request.
    UNSUPPORTED = 1001, "unsupported request";
    /// What came was no message.
    BAD_MESSAGE = 1002, "mangled message";
    /// The server has forgotten the session: what became of its requests is unknown.
    SESSION_LOST = 1003, "the session ended before an answer came";
    /// Another rank failed or is gone.
    RANK_FAILED = 1004, "another rank failed";
    /// Ranks that open a file together do not mean the same.
    NOT_SAME = 1005, "ranks open different files, or in different ways";
    /// What was written and not synced is lost: whoever had it in memory has ended.
    LOST = 1006, "data that was written and not synced is lost";
    /// What an atomic call held is not held any more: others may have come between.
    HOLD_LOST = 1007, "the server does not know the hold any more";
    /// How many there shall be makes no sense.
    COUNT = 1008, "invalid count";
    /// What lies in memory or in the file is not described so that it can be found.
    DATATYPE = 1009, "invalid datatype";
    /// No file is opened in such a way.
    MODE = 1010, "invalid mode of opening";
    /// Nobody knows how numbers lie in the file.
    REPRESENTATION = 1011, "unknown data representation";
    /// Numbers have no such form.
    CONVERSION = 1012, "error in a conversion of data";
    /// No open file.
    HANDLE = 1013, "invalid file handle";
    /// What has no other code.
    OTHER = 1014, "an error of no known kind";
}

impl Code {
    /// Whether nothing is wrong.
    pub fn is_ok(self) -> bool {
        self == Code::OK
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text() {
            Some(text) => f.write_str(text),
            None => write!(f, "error {}", self.0),
        }
    }
}
