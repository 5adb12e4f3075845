//! The catalogue of placements: one row each. It feeds configurations, the command line, the documentation
//! and the conformance suite. The first row is the default.

use super::{Rule, cruel, neighbours, rendezvous};

/// One placement.
pub struct Row {
    /// Its name in configurations and on the command line.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// How it decides.
    pub rule: Rule,
    /// Whether it is for tests and comparisons only.
    pub is_cruel: bool,
}

crate::family::known_by_name!("placement");

/// What is used if nobody asks for another one.
pub const USUAL: &Row = &ROWS[0];

/// Every row, in the order of documentation. Their places are their numbers on the wire: new ones go to the end.
pub const ROWS: &[Row] = &[
    Row {
        name: "modulo",
        summary: "stripes in turn over all cache managers",
        rule: Rule::InTurn,
        is_cruel: false,
    },
    Row {
        name: "at-servers",
        summary: "each stripe at the cache manager beside its I/O server",
        rule: Rule::Each(neighbours::manager),
        is_cruel: false,
    },
    Row {
        name: "rendezvous",
        summary: "by chance, so that few stripes move where the number of cache managers changes",
        rule: Rule::Each(rendezvous::manager),
        is_cruel: false,
    },
    Row {
        name: "local",
        summary: "no cache manager has anything: I/O servers are asked themselves",
        rule: Rule::Nobody,
        is_cruel: false,
    },
    Row {
        name: "cruel",
        summary: "all stripes at one cache manager",
        rule: Rule::Each(cruel::manager),
        is_cruel: true,
    },
];
