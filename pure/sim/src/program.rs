//! Programs: what each process of an application does, command by command.
//!
//! A program is asked for one command at a time, so a hundred million requests need no memory.
//! Ranks, roots, sources and targets count within the communicator a command names; tags are the
//! program's own. Sizes are payload bytes; headers are the model's business.

use iolab_vocab::{Extent, Nanos};
use std::fmt;

/// A file, as an index into the simulation's file table.
pub type File = u32;

/// A group of processes: [`WORLD`], or one that the program declares.
pub type Communicator = u32;

/// What a command that goes on in the background is waited for by; chosen by the program, free
/// again after its wait.
pub type Ticket = u32;

/// All processes of the application.
pub const WORLD: Communicator = 0;

/// As the source of a receive: whoever sends first.
pub const ANY_SOURCE: u32 = u32::MAX;

/// As the tag of a receive: whatever the sender chose.
pub const ANY_TAG: u32 = u32::MAX;

/// One command of a process. Which bytes a file command touches stands in the list beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command {
    /// Keep the processor busy.
    Compute {
        /// For so many instructions.
        instructions: f64,
    },
    /// Do nothing, and keep nobody from the processor.
    Rest {
        /// For so long.
        nanos: Nanos,
    },
    /// Open a file, together with all processes of its communicator.
    Open(File),
    /// Close it, together.
    Close(File),
    /// Read the listed extents.
    Read(File),
    /// Write the listed extents.
    Write(File),
    /// Read the listed extents, together with all processes of the file's communicator.
    ReadAll(File),
    /// Write the listed extents, together.
    WriteAll(File),
    /// Wait until the servers have on their devices what they hold.
    Sync(File),
    /// Begin to read the listed extents.
    StartRead(File, Ticket),
    /// Begin to write the listed extents.
    StartWrite(File, Ticket),
    /// Begin to read them together.
    StartReadAll(File, Ticket),
    /// Begin to write them together.
    StartWriteAll(File, Ticket),
    /// Wait for what was begun.
    Wait(Ticket),
    /// Send a message; over when it has left.
    Send {
        /// To that rank.
        to: u32,
        /// Matched by the receiver.
        tag: u32,
        /// So long.
        bytes: u64,
        /// Of that communicator.
        communicator: Communicator,
    },
    /// Await a message.
    Receive {
        /// From that rank, or [`ANY_SOURCE`].
        from: u32,
        /// As the sender named it, or [`ANY_TAG`].
        tag: u32,
        /// Of that communicator.
        communicator: Communicator,
    },
    /// Send one message and await another, at once.
    SendReceive {
        /// To that rank.
        to: u32,
        /// Matched by its receiver.
        send_tag: u32,
        /// So long.
        bytes: u64,
        /// The other comes from that rank, or [`ANY_SOURCE`].
        from: u32,
        /// As its sender named it, or [`ANY_TAG`].
        receive_tag: u32,
        /// Both of that communicator.
        communicator: Communicator,
    },
    /// Begin to send a message.
    StartSend {
        /// To that rank.
        to: u32,
        /// Matched by the receiver.
        tag: u32,
        /// So long.
        bytes: u64,
        /// Of that communicator.
        communicator: Communicator,
        /// What to wait for.
        ticket: Ticket,
    },
    /// Begin to await a message.
    StartReceive {
        /// From that rank, or [`ANY_SOURCE`].
        from: u32,
        /// As the sender named it, or [`ANY_TAG`].
        tag: u32,
        /// Of that communicator.
        communicator: Communicator,
        /// What to wait for.
        ticket: Ticket,
    },
    /// Wait for all processes.
    Barrier {
        /// Of that communicator.
        communicator: Communicator,
    },
    /// The root's bytes go to everyone.
    Broadcast {
        /// Who has them.
        root: u32,
        /// How many.
        bytes: u64,
        /// Among these.
        communicator: Communicator,
    },
    /// Everyone's bytes are combined at the root.
    Reduce {
        /// Who gets the result.
        root: u32,
        /// From each.
        bytes: u64,
        /// Among these.
        communicator: Communicator,
    },
    /// Everyone's bytes are combined, and everyone gets the result.
    Allreduce {
        /// From each.
        bytes: u64,
        /// Among these.
        communicator: Communicator,
    },
    /// Everyone's bytes go to the root.
    Gather {
        /// Who gets them.
        root: u32,
        /// Of this process; others may give other numbers.
        bytes: u64,
        /// Among these.
        communicator: Communicator,
    },
    /// The root gives each process its part.
    Scatter {
        /// Who has them.
        root: u32,
        /// For each.
        bytes: u64,
        /// Among these.
        communicator: Communicator,
    },
    /// Everyone's bytes go to everyone.
    Allgather {
        /// Of this process.
        bytes: u64,
        /// Among these.
        communicator: Communicator,
    },
    /// Everyone has a part for everyone.
    Alltoall {
        /// For each other process.
        bytes: u64,
        /// Among these.
        communicator: Communicator,
    },
    /// Everyone has a part for everyone, each as long as the extent listed for that rank.
    Alltoallv {
        /// Among these.
        communicator: Communicator,
    },
}

impl Command {
    /// The file it is about, if any.
    pub fn file(self) -> Option<File> {
        match self {
            Command::Open(file)
            | Command::Close(file)
            | Command::Read(file)
            | Command::Write(file)
            | Command::ReadAll(file)
            | Command::WriteAll(file)
            | Command::Sync(file)
            | Command::StartRead(file, _)
            | Command::StartWrite(file, _)
            | Command::StartReadAll(file, _)
            | Command::StartWriteAll(file, _) => Some(file),
            _ => None,
        }
    }

    /// The same about another file; what is about none stays as it is.
    #[must_use]
    pub fn with_file(self, file: File) -> Command {
        match self {
            Command::Open(_) => Command::Open(file),
            Command::Close(_) => Command::Close(file),
            Command::Read(_) => Command::Read(file),
            Command::Write(_) => Command::Write(file),
            Command::ReadAll(_) => Command::ReadAll(file),
            Command::WriteAll(_) => Command::WriteAll(file),
            Command::Sync(_) => Command::Sync(file),
            Command::StartRead(_, ticket) => Command::StartRead(file, ticket),
            Command::StartWrite(_, ticket) => Command::StartWrite(file, ticket),
            Command::StartReadAll(_, ticket) => Command::StartReadAll(file, ticket),
            Command::StartWriteAll(_, ticket) => Command::StartWriteAll(file, ticket),
            other => other,
        }
    }

    /// The communicator it names, if any; a collective file command goes by its file's.
    pub fn communicator(self) -> Option<Communicator> {
        match self {
            Command::Send { communicator, .. }
            | Command::Receive { communicator, .. }
            | Command::SendReceive { communicator, .. }
            | Command::StartSend { communicator, .. }
            | Command::StartReceive { communicator, .. }
            | Command::Barrier { communicator }
            | Command::Broadcast { communicator, .. }
            | Command::Reduce { communicator, .. }
            | Command::Allreduce { communicator, .. }
            | Command::Gather { communicator, .. }
            | Command::Scatter { communicator, .. }
            | Command::Allgather { communicator, .. }
            | Command::Alltoall { communicator, .. }
            | Command::Alltoallv { communicator } => Some(communicator),
            _ => None,
        }
    }

    /// What is to be done in the background, and by which ticket it is waited for.
    pub fn started(self) -> Option<(Command, Ticket)> {
        match self {
            Command::StartRead(file, ticket) => Some((Command::Read(file), ticket)),
            Command::StartWrite(file, ticket) => Some((Command::Write(file), ticket)),
            Command::StartReadAll(file, ticket) => Some((Command::ReadAll(file), ticket)),
            Command::StartWriteAll(file, ticket) => Some((Command::WriteAll(file), ticket)),
            Command::StartSend { to, tag, bytes, communicator, ticket } => {
                Some((Command::Send { to, tag, bytes, communicator }, ticket))
            }
            Command::StartReceive { from, tag, communicator, ticket } => {
                Some((Command::Receive { from, tag, communicator }, ticket))
            }
            _ => None,
        }
    }

    /// The field's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Command::Compute { .. } => "compute",
            Command::Rest { .. } => "rest",
            Command::Open(_) => "open",
            Command::Close(_) => "close",
            Command::Read(_) => "read",
            Command::Write(_) => "write",
            Command::ReadAll(_) => "read-all",
            Command::WriteAll(_) => "write-all",
            Command::Sync(_) => "sync",
            Command::StartRead(..) => "start-read",
            Command::StartWrite(..) => "start-write",
            Command::StartReadAll(..) => "start-read-all",
            Command::StartWriteAll(..) => "start-write-all",
            Command::Wait(_) => "wait",
            Command::Send { .. } => "send",
            Command::Receive { .. } => "receive",
            Command::SendReceive { .. } => "send-receive",
            Command::StartSend { .. } => "start-send",
            Command::StartReceive { .. } => "start-receive",
            Command::Barrier { .. } => "barrier",
            Command::Broadcast { .. } => "broadcast",
            Command::Reduce { .. } => "reduce",
            Command::Allreduce { .. } => "allreduce",
            Command::Gather { .. } => "gather",
            Command::Scatter { .. } => "scatter",
            Command::Allgather { .. } => "allgather",
            Command::Alltoall { .. } => "alltoall",
            Command::Alltoallv { .. } => "alltoallv",
        }
    }
}

/// A source or tag as a reader wants it.
pub(crate) struct Choice(pub(crate) &'static str, pub(crate) u32);

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            u32::MAX => write!(f, "any {}", self.0),
            number => write!(f, "{} {number}", self.0),
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())?;
        match *self {
            Command::Compute { instructions } => write!(f, " {instructions} instructions")?,
            Command::Rest { nanos } => write!(f, " {} s", nanos.seconds())?,
            Command::Send { to, tag, bytes, .. } | Command::StartSend { to, tag, bytes, .. } => {
                write!(f, " {bytes} B to rank {to} (tag {tag})")?;
            }
            Command::Receive { from, tag, .. } | Command::StartReceive { from, tag, .. } => {
                write!(f, " from {} ({})", Choice("rank", from), Choice("tag", tag))?;
            }
            Command::SendReceive { to, send_tag, bytes, from, receive_tag, .. } => {
                write!(f, " {bytes} B to rank {to} (tag {send_tag}), ")?;
                write!(f, "from {} ({})", Choice("rank", from), Choice("tag", receive_tag))?;
            }
            Command::Broadcast { root, bytes, .. }
            | Command::Reduce { root, bytes, .. }
            | Command::Gather { root, bytes, .. }
            | Command::Scatter { root, bytes, .. } => write!(f, " {bytes} B, root {root}")?,
            Command::Allreduce { bytes, .. }
            | Command::Allgather { bytes, .. }
            | Command::Alltoall { bytes, .. } => write!(f, " {bytes} B")?,
            Command::Wait(ticket) => write!(f, " for ticket {ticket}")?,
            _ => {}
        }
        if let Some(file) = self.file() {
            write!(f, " of file {file}")?;
        }
        if let Some((_, ticket)) = self.started() {
            write!(f, ", ticket {ticket}")?;
        }
        match self.communicator() {
            None | Some(WORLD) => Ok(()),
            Some(communicator) => write!(f, " in communicator {communicator}"),
        }
    }
}

/// What the ranks of an application did in one of its phases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseTotals {
    /// Its name.
    pub name: String,
    /// When the first rank came to it; `None` when none did.
    pub start: Option<Nanos>,
    /// When the last rank left it.
    pub end: Nanos,
    /// Time in it, summed over ranks.
    pub rank_nanos: u64,
    /// Data commands given.
    pub calls: u64,
    /// Bytes they read; what lies behind the end of a file is none.
    pub read_bytes: u64,
    /// Bytes they wrote.
    pub written_bytes: u64,
}

/// What the processes of an application do.
pub trait Program: Send {
    /// The next command of `rank`, or nothing when it has ended. The extents of a file command
    /// are put into `list`, which comes empty.
    fn next(&mut self, rank: u32, list: &mut Vec<Extent>) -> Option<Command>;

    /// `rank` begins, or its last command is over, at `now`; `next` is asked right after.
    fn reached(&mut self, _rank: u32, _now: Nanos) {}

    /// So many bytes of a read that `rank` has asked for are in the file; what lies behind its end
    /// is not read.
    fn got(&mut self, _rank: u32, _bytes: u64) {}

    /// Number of processes.
    fn rank_count(&self) -> u32;

    /// Communicators beside [`WORLD`], numbered from 1: the ranks of the application in each, in
    /// the order of their ranks there.
    fn communicators(&self) -> Vec<Vec<u32>> {
        Vec::new()
    }

    /// The communicator whose processes open, close and collectively access `file` when `rank`
    /// does.
    fn communicator_of(&self, _rank: u32, _file: File) -> Communicator {
        WORLD
    }

    /// What its ranks did in each of its phases, if it has any.
    fn phases(&self) -> Vec<PhaseTotals> {
        Vec::new()
    }
}
