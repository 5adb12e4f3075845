//! The catalogue of write policies: one row each. It feeds configurations, the command line, the documentation
//! and the conformance suite. The first row is the default.

use super::cruel::Cruel;
use super::delayed::Delayed;
use super::oldest::Oldest;
use super::{Place, WritePolicy, checked};

/// What the answer to a write says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The cache has it: it is lost if the cache is killed before it was flushed.
    Taken,
    /// Servers have it: the end of the cache loses nothing that was answered.
    Saved,
}

/// One write policy.
pub struct Row {
    /// Its name in configurations and on the command line.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// What the answer to a write says.
    pub answer: Answer,
    /// Whether everything is flushed by itself, sooner or later.
    pub flushes_all: bool,
    build: fn(Place) -> Box<dyn WritePolicy>,
}

impl Row {
    /// One for one cache; in debug builds held to its laws.
    pub fn make(&self, place: Place) -> Box<dyn WritePolicy> {
        let policy = (self.build)(place);
        if cfg!(debug_assertions) { checked(policy) } else { policy }
    }
}

crate::family::known_by_name!("write policy");

/// What is used if nobody asks for another one.
pub const USUAL: &Row = &ROWS[0];

/// Every row, in the order of documentation. Their places are their numbers on the wire: new ones go to the end.
pub const ROWS: &[Row] = &[
    Row {
        name: "delayed",
        summary: "after 5 s, when half of the memory is dirty, on sync",
        answer: Answer::Taken,
        flushes_all: true,
        build: |place| Box::new(Delayed::new(place)),
    },
    Row {
        name: "through",
        summary: "at once; a write is answered when its servers have it",
        answer: Answer::Saved,
        flushes_all: true,
        build: |_| Box::new(Oldest::at_once()),
    },
    Row {
        name: "on-sync",
        summary: "on sync and close, and when memory or room is wanted",
        answer: Answer::Taken,
        flushes_all: false,
        build: |_| Box::new(Oldest::when_it_must()),
    },
    Row {
        name: "cruel",
        summary: "any block, at any time within 5 s",
        answer: Answer::Taken,
        flushes_all: true,
        build: |place| Box::new(Cruel::new(place)),
    },
];
