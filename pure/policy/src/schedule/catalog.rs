//! The catalogue of parallel schedules: one row each. It feeds configurations, the command line, the
//! documentation and the conformance suite. The first row is the default.

use super::{AtRandom, Cruel, Place, Rounds, Schedule, checked};

/// One schedule.
pub struct Row {
    /// Its name in configurations and on the command line.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    build: fn(Place) -> Box<dyn Schedule>,
}

impl Row {
    /// One for one access; in debug builds held to its laws.
    pub fn make(&self, place: Place) -> Box<dyn Schedule> {
        let schedule = (self.build)(place);
        if cfg!(debug_assertions) { checked(place, schedule) } else { schedule }
    }
}

crate::family::known_by_name!("schedule");

/// What is used if nobody asks for another one.
pub const USUAL: &Row = &ROWS[0];

/// Every row, in the order of documentation.
pub const ROWS: &[Row] = &[
    Row {
        name: "rotate",
        summary: "partners in turn, each process from that of its own number on",
        build: |place| Box::new(Rounds::rotated(place)),
    },
    Row {
        name: "in-order",
        summary: "partners in turn, every process from the first one on",
        build: |_| Box::new(Rounds::in_order()),
    },
    Row {
        name: "random",
        summary: "partners at random",
        build: |place| Box::new(AtRandom::new(place)),
    },
    Row {
        name: "cruel",
        summary: "every process the same partner, until nothing is left for it",
        build: |_| Box::new(Cruel::default()),
    },
];
