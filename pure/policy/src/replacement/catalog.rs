//! The catalogue of replacements: one row each. It feeds configurations, the command line, the documentation
//! and the conformance suite. The first row is the default.

use super::clock::Clock;
use super::cruel::Cruel;
use super::fifo::Fifo;
use super::lru::Lru;
use super::two_queue::TwoQueue;
use super::{Place, Replacement, checked};
use iolab_vocab::Refusal;
use std::fmt;

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

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Row {
    fn eq(&self, other: &Row) -> bool {
        self.name == other.name
    }
}

impl Eq for Row {}

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

/// The row of that name.
pub fn find(name: &str) -> Result<&'static Row, Refusal> {
    ROWS.iter().find(|row| row.name == name).ok_or_else(|| {
        let names: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        Refusal::new(
            format!("there is no replacement `{name}`"),
            format!("choose from {}", names.join(", ")),
        )
    })
}
