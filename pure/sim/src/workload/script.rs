//! Commands written down one by one, for each rank: what imports and small studies give.

use crate::program::{Command, Communicator, File, Program, WORLD};
use iolab_vocab::Extent;

/// A command with the extents it touches, if it is about a file's bytes.
pub type Line = (Command, Vec<Extent>);

/// A program of listed commands.
#[derive(Clone, Debug, Default)]
pub struct Script {
    ranks: Vec<Vec<Line>>,
    /// Per rank, how many lines it has begun.
    at: Vec<usize>,
    communicators: Vec<Vec<u32>>,
    /// Communicator of each file that has another than the world.
    file_communicators: Vec<(File, Communicator)>,
}

impl Script {
    /// The lines of each rank.
    pub fn new(ranks: Vec<Vec<Line>>) -> Script {
        Script { at: vec![0; ranks.len()], ranks, ..Script::default() }
    }

    /// The commands of each rank, where none touches bytes of a file.
    pub fn of_commands(ranks: Vec<Vec<Command>>) -> Script {
        let lines =
            |commands: Vec<Command>| commands.into_iter().map(|one| (one, vec![])).collect();
        Script::new(ranks.into_iter().map(lines).collect())
    }

    /// Declares the next communicator by its ranks.
    #[must_use]
    pub fn with_communicator(mut self, ranks: Vec<u32>) -> Script {
        self.communicators.push(ranks);
        self
    }

    /// Opens, closes and collectively accesses `file` in `communicator`.
    #[must_use]
    pub fn with_file_in(mut self, file: File, communicator: Communicator) -> Script {
        self.file_communicators.push((file, communicator));
        self
    }
}

impl Program for Script {
    fn next(&mut self, rank: u32, list: &mut Vec<Extent>) -> Option<Command> {
        let at = &mut self.at[rank as usize];
        let (command, extents) = self.ranks[rank as usize].get(*at)?;
        *at += 1;
        list.extend(extents);
        Some(*command)
    }

    fn rank_count(&self) -> u32 {
        self.ranks.len() as u32
    }

    fn communicators(&self) -> Vec<Vec<u32>> {
        self.communicators.clone()
    }

    fn communicator_of(&self, _rank: u32, file: File) -> Communicator {
        let found = self.file_communicators.iter().find(|one| one.0 == file);
        found.map_or(WORLD, |one| one.1)
    }
}
