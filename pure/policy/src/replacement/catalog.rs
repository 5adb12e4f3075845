//! The catalogue of replacements: one row each. It feeds configurations, the command line, the documentation
//! and the conformance suite. The first row is the default.

use super::clock::Clock;
use super::cruel::Cruel;
use super::fifo::Fifo;
use super::lru::Lru;
use super::two_queue::TwoQueue;
use super::{Place, Replacement, checked};

/// One replacement.
pub struct Row {
    /// Its name in configurations and on the command line.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    build: fn(Place) -> Box<dyn Replacement>,
}

impl Row {
    /// One for one cache; in debug builds held to its laws.
    pub fn make(&self, place: Place) -> Box<dyn Replacement> {
        let replacement = (self.build)(place);
        if cfg!(debug_assertions) { checked(replacement) } else { replacement }
    }
}

crate::family::known_by_name!("replacement");

/// What is used if nobody asks for another one.
pub const USUAL: &Row = &ROWS[0];

/// Every row, in the order of documentation.
pub const ROWS: &[Row] = &[
    Row {
        name: "lru",
        summary: "the block that has not been used for longest",
        build: |_| Box::new(Lru::default()),
    },
    Row {
        name: "two-queue",
        summary: "blocks that came lately in their order, unless they came back: a scan leaves the others alone",
        build: |place| Box::new(TwoQueue::new(place)),
    },
    Row {
        name: "clock",
        summary: "in the order in which they came, but those that were used since get another round",
        build: |_| Box::new(Clock::default()),
    },
    Row {
        name: "fifo",
        summary: "the block that came first, whoever uses it",
        build: |_| Box::new(Fifo::default()),
    },
    Row {
        name: "cruel",
        summary: "the block that was used last",
        build: |_| Box::new(Cruel::default()),
    },
];
