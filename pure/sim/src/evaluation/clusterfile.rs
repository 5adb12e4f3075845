//! The evaluation of Clusterfile: Isaila, Malpohl, Olaru, Szeder, Tichy, *Integrating collective I/O and
//! cooperative caching into the Clusterfile parallel file system*, ICS 2004.
//!
//! Its programs on a model of its cluster, by two ways of collective I/O over the same servers: the file
//! system's own, in which every rank's bytes go straight to their server, and the rival's, in which ranks
//! exchange bytes first and then access contiguous domains. What a cell of the evaluation came to is an
//! [`Outcome`]; what follows from it is for whoever compares it with what was published.
//!
//! With cache managers between ranks and servers, the first way is the one that was published; without, servers
//! are asked themselves.
//!
//! What is not published is a parameter of a [`Cell`]: the rate of disks, and the costs of memory.

mod cell;
mod program;
mod two_phase;
mod work;

pub use cell::{Buffers, Cell, Cooperation, FIT, MEMORY_OF_TODAY, Outcome, Traffic, Ways, fitted};
pub use program::Method;
pub use work::{Class, Part, RANKS, Work};

use crate::platform::Platform;
use serde::Deserialize;

const PLATFORM: &str = include_str!("../../../../samples/clusterfile/platform.toml");
const PUBLISHED: &str = include_str!("../../../../samples/clusterfile/published.csv");

/// The rates of disks that are tried, in bytes per second: the published ones are not known.
pub const DISK_RATES: [f64; 3] = [15e6, 25e6, 45e6];

/// What the published evaluation says or computes wrongly, or leaves out.
pub const DEFECTS: &[&str] = &[
    "the improvements of total time by writes, printed as 25.5 s (class B) and 210.9 s (class C), are 24.5 s \
     and 202.1 s from the table's own columns",
    "figures come without tables, so that values of CYCLIC(k), of sizes and of the global cache cannot be read",
    "the rate of the disks, the rate of memory copies and the version of PVFS are missing",
    "class C is read more slowly than by the rival (0.83), and nothing is said about why",
];

/// A row of table 1: seconds of BTIO with 16 processes, 16 servers and 16 cold cache managers.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Published {
    /// A, B or C.
    pub class: String,
    /// Bytes written, and read, in millions.
    pub megabytes: f64,
    /// Whole run of Clusterfile.
    pub total_clusterfile: f64,
    /// Whole run of ROMIO over PVFS.
    pub total_rival: f64,
    /// Writes of Clusterfile.
    pub write_clusterfile: f64,
    /// Writes of ROMIO over PVFS.
    pub write_rival: f64,
    /// As printed.
    pub write_speedup: f64,
    /// Reads of Clusterfile.
    pub read_clusterfile: f64,
    /// Reads of ROMIO over PVFS.
    pub read_rival: f64,
    /// As printed.
    pub read_speedup: f64,
}

/// Table 1.
pub fn published() -> Vec<Published> {
    let rows = csv::Reader::from_reader(PUBLISHED.as_bytes()).into_deserialize();
    rows.map(|row| row.expect("the sample is sound")).collect()
}

/// The cluster.
pub fn platform() -> Platform {
    Platform::parse(PLATFORM).expect("the sample is sound")
}
