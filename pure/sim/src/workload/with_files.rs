//! A program on files of its own: its file 0 is whichever file of the simulation it is given first.
//!
//! The file table belongs to the simulation, so that applications can share files. Two programs
//! that both count theirs from 0 are kept apart, or brought together, by this.

use crate::program::{Command, Communicator, File, PhaseTotals, Program};
use iolab_pattern::Nest;
use iolab_vocab::{Extent, Nanos};

/// A program whose files are renumbered.
pub struct WithFiles {
    program: Box<dyn Program>,
    files: Vec<File>,
}

impl WithFiles {
    /// `files` has the simulation's number for each of the program's; further ones do not exist.
    pub fn new(program: Box<dyn Program>, files: Vec<File>) -> WithFiles {
        WithFiles { program, files }
    }
}

impl Program for WithFiles {
    fn next(&mut self, rank: u32, list: &mut Vec<Extent>) -> Option<Command> {
        let command = self.program.next(rank, list)?;
        Some(match command.file() {
            Some(file) => {
                // What does not exist here must not exist there either.
                command.with_file(self.files.get(file as usize).copied().unwrap_or(File::MAX))
            }
            None => command,
        })
    }

    fn view(&self, rank: u32) -> Option<(Nest, u64, u64)> {
        self.program.view(rank)
    }

    fn reached(&mut self, rank: u32, now: Nanos) {
        self.program.reached(rank, now);
    }

    fn got(&mut self, rank: u32, bytes: u64) {
        self.program.got(rank, bytes);
    }

    fn phases(&self) -> Vec<PhaseTotals> {
        self.program.phases()
    }

    fn notes(&self) -> Vec<String> {
        self.program.notes()
    }

    fn rank_count(&self) -> u32 {
        self.program.rank_count()
    }

    fn communicators(&self) -> Vec<Vec<u32>> {
        self.program.communicators()
    }

    fn communicator_of(&self, rank: u32, file: File) -> Communicator {
        let own = self.files.iter().position(|one| *one == file);
        self.program.communicator_of(rank, own.map_or(file, |own| own as File))
    }
}
