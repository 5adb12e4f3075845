//! Programs: what each process of an application does, command by command.
//!
//! A program is asked for one command at a time, so a hundred million requests need no memory.
//! Ranks, roots, sources and targets count within the communicator a command names; tags are the
//! program's own. Sizes are payload bytes; headers are the model's business.

mod command;
mod functions;

pub(crate) use command::Choice;
pub use command::{Command, FileOperation, What};
pub use functions::{Shape, function_of, of_function};

use iolab_pattern::Nest;
use iolab_vocab::{Extent, Nanos};

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

/// What the ranks of an application did in one of its phases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseTotals {
    /// Its name.
    pub name: String,
    /// When the first rank came to it; `None` when none did.
    pub start: Option<Nanos>,
    /// When the last rank left it.
    pub end: Nanos,
    /// From when to when ranks were in it, for each time that they came to it; what comes after many
    /// is one with the last.
    pub visits: Vec<(Nanos, Nanos)>,
    /// Time in it, summed over ranks.
    pub rank_nanos: u64,
    /// Data commands given.
    pub calls: u64,
    /// Bytes they read; what lies behind the end of a file is none.
    pub read_bytes: u64,
    /// Bytes they wrote.
    pub written_bytes: u64,
}

/// Times that ranks come to a phase before they are not told apart any more.
const VISITS_MAX: usize = 1000;

impl PhaseTotals {
    /// A rank comes to it for that time, counted from 0.
    pub(crate) fn entered(&mut self, visit: usize, now: Nanos) {
        self.start = Some(self.start.map_or(now, |start| start.min(now)));
        let visit = visit.min(VISITS_MAX - 1);
        match self.visits.get_mut(visit) {
            Some((start, _)) => *start = now.min(*start),
            None => self.visits.resize(visit + 1, (now, now)),
        }
    }

    /// A rank leaves it that came to it for that time.
    pub(crate) fn left(&mut self, visit: usize, entered: Nanos, now: Nanos) {
        self.end = self.end.max(now);
        self.rank_nanos = self.rank_nanos.saturating_add(now.since(entered).0);
        let (_, end) = &mut self.visits[visit.min(VISITS_MAX - 1)];
        *end = now.max(*end);
    }
}

/// What the processes of an application do.
pub trait Program: Send {
    /// The next command of `rank`, or nothing when it has ended. The extents of a file command
    /// are put into `list`, which comes empty.
    fn next(&mut self, rank: u32, list: &mut Vec<Extent>) -> Option<Command>;

    /// The bytes `[from, to)` of a nest that the access `rank` waits for touches, if it has listed no
    /// extents because it has them as a nest. Only a parallel file system asks.
    fn view(&self, _rank: u32) -> Option<(Nest, u64, u64)> {
        None
    }

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

    /// What a reader of the results should know: a sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// What its ranks did in each of its phases, if it has any.
    fn phases(&self) -> Vec<PhaseTotals> {
        Vec::new()
    }
}

/// A program that somebody else keeps, to look at it after the run.
impl<P: Program + ?Sized> Program for &mut P {
    fn next(&mut self, rank: u32, list: &mut Vec<Extent>) -> Option<Command> {
        (**self).next(rank, list)
    }

    fn view(&self, rank: u32) -> Option<(Nest, u64, u64)> {
        (**self).view(rank)
    }

    fn reached(&mut self, rank: u32, now: Nanos) {
        (**self).reached(rank, now);
    }

    fn got(&mut self, rank: u32, bytes: u64) {
        (**self).got(rank, bytes);
    }

    fn rank_count(&self) -> u32 {
        (**self).rank_count()
    }

    fn communicators(&self) -> Vec<Vec<u32>> {
        (**self).communicators()
    }

    fn communicator_of(&self, rank: u32, file: File) -> Communicator {
        (**self).communicator_of(rank, file)
    }

    fn notes(&self) -> Vec<String> {
        (**self).notes()
    }

    fn phases(&self) -> Vec<PhaseTotals> {
        (**self).phases()
    }
}
