//! Workloads as a TOML file anyone can write: files, applications, phases, commands.
//!
//! A workload has files and one or more applications that run at once. An application has ranks,
//! a start time and phases; a phase has commands, with loops where they repeat. Data commands say
//! which bytes by a pattern of `iolab_pattern` (the very text that a benchmark plan takes),
//! through a view made from one, or by ranges. Reading a workload checks all of it: what is wrong
//! is told with its place, and a valid workload asks the simulator for nothing it cannot do.
//!
//! Programs are made on the fly from a short list of instructions: a rank's state is a place in
//! that list and a few counters, whatever the number of calls.

mod balance;
mod operation;
mod place;
mod resolve;
mod state;
mod steps;
mod text;

use crate::program::{Command, Communicator, File, FileOperation, PhaseTotals, Program, Ticket};
use iolab_policy::collective::CollectiveKind;
use iolab_vocab::{Direction, Nanos, Refusal, Seed};
use place::Place;
use std::sync::Arc;

pub(crate) use text::in_words;

/// A workload whose every value is valid.
#[derive(Clone)]
pub struct Workload {
    /// What to call it in results.
    pub name: String,
    /// Seed of every random choice of its patterns.
    pub seed: Seed,
    /// The files, a file per rank spread out.
    pub files: Vec<DescribedFile>,
    /// What runs on them.
    pub applications: Vec<Application>,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedFile {
    /// Its name, with the rank behind where every rank has one.
    pub name: String,
    /// Its size at the start.
    pub bytes: u64,
}

/// An application: so many ranks doing the same list of instructions, each in its own place.
#[derive(Clone)]
pub struct Application {
    /// What to call it in results.
    pub name: String,
    /// Number of processes.
    pub rank_count: u32,
    /// When it starts.
    pub start: Nanos,
    /// Names of its phases, in order.
    pub phases: Vec<String>,
    communicators: Arc<Vec<Group>>,
    /// Communicator by file, where it is not all ranks.
    file_groups: Arc<Vec<(FileRef, Within)>>,
    code: Arc<Vec<Instruction>>,
}

/// A communicator: ranks of the application in their order there.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    name: String,
    ranks: Vec<u32>,
}

/// One instruction of an application.
#[derive(Clone)]
enum Instruction {
    /// A phase begins.
    Enter(usize),
    /// A loop begins: what follows is done so often; the counter is kept in that slot.
    Loop { slot: usize, times: u64 },
    /// It ends; as long as it is not done, go on after its begin.
    Again { slot: usize, begin: usize },
    /// Something is done by those ranks.
    Do { who: Who, line: usize, operation: Operation },
}

/// Which ranks do something.
#[derive(Clone, Debug, PartialEq)]
enum Who {
    All,
    Only(Arc<Vec<bool>>),
}

impl Who {
    fn includes(&self, rank: u32) -> bool {
        match self {
            Who::All => true,
            Who::Only(ranks) => ranks[rank as usize],
        }
    }
}

/// A file, or for every rank its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileRef {
    first: File,
    per_rank: bool,
}

impl FileRef {
    fn of(self, rank: u32) -> File {
        if self.per_rank { self.first + rank } else { self.first }
    }
}

/// All ranks, a declared communicator, or every rank for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    World,
    Group(u32),
    Alone,
}

/// Processor work: instructions, or time at the speed of the node.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Work {
    Instructions(f64),
    Seconds(f64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Partner {
    Rank(u32),
    /// So many further, around the end.
    Relative(i64),
    Any,
}

#[derive(Clone)]
struct Transfer {
    direction: Direction,
    is_collective: bool,
    file: FileRef,
    place: Place,
    offset: u64,
    /// Added each further time the command is come to.
    step: u64,
    think: Option<Work>,
    ticket: Option<Ticket>,
    /// Which of the application's transfers it is.
    slot: usize,
}

#[derive(Clone, Copy)]
struct Message {
    send: Option<(Partner, u64)>,
    receive: Option<Partner>,
    tag: u32,
    within: Within,
    ticket: Option<Ticket>,
}

#[derive(Clone)]
enum Operation {
    Compute(Work),
    /// One that moves no data.
    File(FileOperation, FileRef),
    SetSize(FileRef, u64),
    Transfer(Transfer),
    Wait(Ticket),
    Collective {
        kind: CollectiveKind,
        root: u32,
        bytes: u64,
        within: Within,
    },
    Message(Message),
}

/// A workload with every key, explained.
pub const TEMPLATE: &str = include_str!("described/template.toml");

impl Workload {
    /// Reads a workload and checks all of it.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn parse(text: &str) -> Result<Workload, Refusal> {
        resolve::workload(text, None)
    }

    /// The same with another seed of its random choices.
    ///
    /// # Errors
    /// As for [`Workload::parse`].
    pub fn parse_seeded(text: &str, seed: Seed) -> Result<Workload, Refusal> {
        resolve::workload(text, Some(seed))
    }

    /// Processes of all applications.
    pub fn rank_count(&self) -> u64 {
        self.applications.iter().map(|one| u64::from(one.rank_count)).sum()
    }
}

impl Application {
    /// The application as a program of the simulator. `speeds` tells the instructions per second
    /// of each rank's node.
    pub fn program(&self, speeds: Vec<f64>) -> Box<dyn Program> {
        assert_eq!(speeds.len(), self.rank_count as usize, "a speed for every rank");
        Box::new(steps::Steps::new(self.clone(), speeds))
    }

    /// Number of a communicator as the simulator counts: declared ones from 1, then every rank
    /// for itself.
    fn communicator(&self, within: Within, rank: u32) -> Communicator {
        match within {
            Within::World => crate::program::WORLD,
            Within::Group(index) => index + 1,
            Within::Alone => self.communicators.len() as u32 + 1 + rank,
        }
    }

    fn is_alone_somewhere(&self) -> bool {
        let names_it = |instruction: &Instruction| {
            let Instruction::Do { operation, .. } = instruction else { return false };
            matches!(
                operation,
                Operation::Collective { within: Within::Alone, .. }
                    | Operation::Message(Message { within: Within::Alone, .. })
            )
        };
        self.file_groups.iter().any(|(_, within)| *within == Within::Alone)
            || self.code.iter().any(names_it)
    }
}
