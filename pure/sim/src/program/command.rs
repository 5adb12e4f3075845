//! What a process can be told to do, and whether it waits for it.

use super::{Communicator, File, Ticket, WORLD};
use iolab_policy::collective::CollectiveKind;
use iolab_vocab::{Direction, Nanos};
use std::fmt;

/// One command of a process. Which bytes a file operation touches stands in the list beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Command {
    /// What is to be done.
    pub what: What,
    /// With a ticket it goes on in the background, until a [`What::Wait`] for it; file operations
    /// that move data, sends and receives can.
    pub ticket: Option<Ticket>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// Keep the processor busy.
    Compute {
        /// For so many instructions.
        instructions: f64,
    },
    /// Do nothing, and keep nobody from the processor.
    Idle {
        /// For so long.
        nanos: Nanos,
    },
    /// An operation on a file.
    File {
        /// Which file.
        file: File,
        /// Which operation.
        operation: FileOperation,
    },
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
        /// From that rank, or [`ANY_SOURCE`](super::ANY_SOURCE).
        from: u32,
        /// As the sender named it, or [`ANY_TAG`](super::ANY_TAG).
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
        /// The other comes from that rank, or [`ANY_SOURCE`](super::ANY_SOURCE).
        from: u32,
        /// As its sender named it, or [`ANY_TAG`](super::ANY_TAG).
        receive_tag: u32,
        /// Both of that communicator.
        communicator: Communicator,
    },
    /// A collective call that is about no file.
    Collective {
        /// Which.
        kind: CollectiveKind,
        /// Who gives or gets, where one does; 0 elsewhere.
        root: u32,
        /// Of this process; for scatter and alltoall for each process. 0 for a barrier.
        bytes: u64,
        /// Among these.
        communicator: Communicator,
    },
    /// Everyone has a part for everyone, each as long as the extent listed for that rank.
    Alltoallv {
        /// Among these.
        communicator: Communicator,
    },
    /// Wait for what was begun with this ticket.
    Wait(Ticket),
}

/// What can be done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOperation {
    /// Open it, together with all processes of its communicator.
    Open,
    /// Close it, together.
    Close,
    /// Wait until the servers have on their devices what they hold.
    Sync,
    /// Cut it or extend it, together; it ends where the one listed extent does.
    SetSize,
    /// Read the listed extents.
    Read,
    /// Write the listed extents.
    Write,
    /// Read the listed extents, together with all processes of the file's communicator.
    ReadAll,
    /// Write the listed extents, together.
    WriteAll,
}

impl FileOperation {
    /// The command to do it and wait for it.
    pub const fn of(self, file: File) -> Command {
        What::File { file, operation: self }.awaited()
    }

    /// A read or write, alone or together with the others.
    pub const fn access(direction: Direction, is_collective: bool) -> FileOperation {
        match (direction, is_collective) {
            (Direction::Read, false) => FileOperation::Read,
            (Direction::Write, false) => FileOperation::Write,
            (Direction::Read, true) => FileOperation::ReadAll,
            (Direction::Write, true) => FileOperation::WriteAll,
        }
    }

    /// Which way it moves data, if it does.
    pub const fn direction(self) -> Option<Direction> {
        match self {
            FileOperation::Read | FileOperation::ReadAll => Some(Direction::Read),
            FileOperation::Write | FileOperation::WriteAll => Some(Direction::Write),
            FileOperation::Open
            | FileOperation::Close
            | FileOperation::Sync
            | FileOperation::SetSize => None,
        }
    }

    /// Whether all processes of the file's communicator do it together.
    pub const fn is_collective(self) -> bool {
        !matches!(self, FileOperation::Sync | FileOperation::Read | FileOperation::Write)
    }

    /// The field's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            FileOperation::Open => "open",
            FileOperation::Close => "close",
            FileOperation::Sync => "sync",
            FileOperation::SetSize => "set-size",
            FileOperation::Read => "read",
            FileOperation::Write => "write",
            FileOperation::ReadAll => "read-all",
            FileOperation::WriteAll => "write-all",
        }
    }
}

impl What {
    /// The command to do it and wait for it.
    pub const fn awaited(self) -> Command {
        Command { what: self, ticket: None }
    }

    /// The command to begin it, and go on.
    pub const fn started(self, ticket: Ticket) -> Command {
        Command { what: self, ticket: Some(ticket) }
    }

    /// Nobody goes on before everybody has come.
    pub const fn barrier(communicator: Communicator) -> What {
        What::Collective { kind: CollectiveKind::Barrier, root: 0, bytes: 0, communicator }
    }

    /// Whether it can go on in the background.
    pub const fn can_start(self) -> bool {
        match self {
            What::File { operation, .. } => operation.direction().is_some(),
            What::Send { .. } | What::Receive { .. } => true,
            _ => false,
        }
    }

    /// The communicator it names, if any; a collective file operation goes by its file's.
    pub const fn communicator(self) -> Option<Communicator> {
        match self {
            What::Send { communicator, .. }
            | What::Receive { communicator, .. }
            | What::SendReceive { communicator, .. }
            | What::Collective { communicator, .. }
            | What::Alltoallv { communicator } => Some(communicator),
            What::Compute { .. } | What::Idle { .. } | What::File { .. } | What::Wait(_) => None,
        }
    }

    /// The field's word for it.
    pub fn name(self) -> &'static str {
        match self {
            What::Compute { .. } => "compute",
            What::Idle { .. } => "idle",
            What::File { operation, .. } => operation.name(),
            What::Send { .. } => "send",
            What::Receive { .. } => "receive",
            What::SendReceive { .. } => "send-receive",
            What::Collective { kind, .. } => kind.name(),
            What::Alltoallv { .. } => "alltoallv",
            What::Wait(_) => "wait",
        }
    }
}

impl Command {
    /// The same, begun and not waited for.
    #[must_use]
    pub const fn started(self, ticket: Ticket) -> Command {
        self.what.started(ticket)
    }

    /// The file it is about, if any.
    pub const fn file(self) -> Option<File> {
        match self.what {
            What::File { file, .. } => Some(file),
            _ => None,
        }
    }

    /// Whether it is this operation on a file, waited for.
    pub(crate) fn is(self, wanted: FileOperation) -> bool {
        matches!(self, Command { what: What::File { operation, .. }, ticket: None } if operation == wanted)
    }

    /// The same about another file; what is about none stays as it is.
    #[must_use]
    pub const fn with_file(self, file: File) -> Command {
        match self.what {
            What::File { operation, .. } => {
                Command { what: What::File { file, operation }, ticket: self.ticket }
            }
            _ => self,
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

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())?;
        match *self {
            What::Compute { instructions } => write!(f, " {instructions} instructions"),
            What::Idle { nanos } => write!(f, " {} s", nanos.seconds()),
            What::File { file, .. } => write!(f, " of file {file}"),
            What::Send { to, tag, bytes, .. } => write!(f, " {bytes} B to rank {to} (tag {tag})"),
            What::Receive { from, tag, .. } => {
                write!(f, " from {} ({})", Choice("rank", from), Choice("tag", tag))
            }
            What::SendReceive { to, send_tag, bytes, from, receive_tag, .. } => {
                write!(f, " {bytes} B to rank {to} (tag {send_tag}), ")?;
                write!(f, "from {} ({})", Choice("rank", from), Choice("tag", receive_tag))
            }
            What::Collective { kind, root, bytes, .. } => match kind {
                CollectiveKind::Barrier => Ok(()),
                _ if kind.has_root() => write!(f, " {bytes} B, root {root}"),
                _ => write!(f, " {bytes} B"),
            },
            What::Wait(ticket) => write!(f, " for ticket {ticket}"),
            What::Alltoallv { .. } => Ok(()),
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ticket.is_some() {
            write!(f, "start-")?;
        }
        write!(f, "{}", self.what)?;
        if let Some(ticket) = self.ticket {
            write!(f, ", ticket {ticket}")?;
        }
        match self.what.communicator() {
            None | Some(WORLD) => Ok(()),
            Some(communicator) => write!(f, " in communicator {communicator}"),
        }
    }
}
