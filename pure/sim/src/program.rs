//! Programs: what each process of an application does, command by command.
//!
//! A program is asked for one command at a time, so a hundred million requests need no memory.

use iolab_vocab::{Extent, Nanos};

/// A file, as an index into the simulation's file table.
pub type File = u32;

/// One command of a process. Which bytes a file command touches stands in the list beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command {
    /// Keep the processor busy.
    Compute {
        /// For so many instructions.
        cycles: f64,
    },
    /// Open a file, together with all processes of the application.
    Open(File),
    /// Close it, together.
    Close(File),
    /// Read the listed extents.
    Read(File),
    /// Write the listed extents.
    Write(File),
    /// Read the listed extents, together with all processes of the application.
    ReadAll(File),
    /// Write the listed extents, together.
    WriteAll(File),
    /// Wait for all processes of the application.
    Barrier,
}

/// What the processes of an application do.
pub trait Program: Send {
    /// The next command of `rank`, or nothing when it has ended. The extents of a file command
    /// are put into `list`, which comes empty.
    fn next(&mut self, rank: u32, list: &mut Vec<Extent>) -> Option<Command>;

    /// `rank` begins, or its last command is over, at `now`; `next` is asked right after.
    fn reached(&mut self, _rank: u32, _now: Nanos) {}

    /// Number of processes.
    fn rank_count(&self) -> u32;
}
