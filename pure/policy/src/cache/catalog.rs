//! The catalogue of cache layers: one row each. It feeds the command line, the documentation and
//! the conformance suite.

use super::{
    Cache, Delay, Settings, aggregation, checked, cruel, elevator, no_cache, read_cache,
    server_directed, server_ordered, write_behind,
};
use iolab_vocab::Nanos;
use std::fmt;

/// One cache layer.
pub struct Row {
    /// Name in platforms and on the command line.
    pub name: &'static str,
    /// Name in the published tables; empty where it has none.
    pub published_name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Whether waiting pieces that touch become one access, wherever they stand.
    pub joins: bool,
    /// Whether clients wait for [`super::Action::Invite`] before they send what they have announced.
    pub invites: bool,
    /// Makes one for one device.
    pub build: fn(Settings) -> Box<dyn Cache>,
}

impl Row {
    /// One for one device; in debug builds held to its laws.
    pub fn make(&self, settings: Settings) -> Box<dyn Cache> {
        let cache = (self.build)(settings);
        if cfg!(debug_assertions) { checked(settings, cache) } else { cache }
    }
}

/// How long reads and writes may be passed over: some twenty positionings of a disk, so that what
/// is passed over costs little throughput and a tenth of what people notice.
const AGEING: Nanos = Nanos(250_000_000);

/// Every row, in the order of documentation.
pub const ROWS: &[Row] = &[
    Row {
        name: "none",
        published_name: "NoCache",
        summary: "one write on the device, at most one packet behind it",
        joins: false,
        invites: false,
        build: |settings| Box::new(no_cache(settings)),
    },
    Row {
        name: "write-behind",
        published_name: "SimpleWriteBehindCache",
        summary: "takes what memory holds, works it off in order",
        joins: false,
        invites: false,
        build: |settings| Box::new(write_behind(settings)),
    },
    Row {
        name: "aggregation",
        published_name: "AggregationCache",
        summary: "joins waiting requests that touch",
        joins: true,
        invites: false,
        build: |settings| Box::new(aggregation(settings)),
    },
    Row {
        name: "elevator",
        published_name: "",
        summary: "serves what waits upward from where the device stands, then from the bottom again",
        joins: false,
        invites: false,
        build: |settings| Box::new(elevator(settings)),
    },
    Row {
        name: "server-directed",
        published_name: "ServerDirectedIO",
        summary: "sorts per file and serves what suits the disk",
        joins: true,
        invites: false,
        build: |settings| Box::new(server_directed(settings)),
    },
    Row {
        name: "server-directed-delayed",
        published_name: "",
        summary: "the same, with writes held back for 0.33 s, up to 50 MiB, or until a flush",
        joins: true,
        invites: false,
        build: |settings| {
            Box::new(server_directed(Settings { delay: Some(Delay::CLASSIC), ..settings }))
        },
    },
    Row {
        name: "server-directed-ageing",
        published_name: "",
        summary: "the same, but neither reads nor writes are passed over for longer than 0.25 s",
        joins: true,
        invites: false,
        build: |settings| Box::new(server_directed(Settings { ageing: Some(AGEING), ..settings })),
    },
    Row {
        name: "data-sieving",
        published_name: "",
        summary: "the same, reading over holes that cost less than a seek",
        joins: true,
        invites: false,
        build: |settings| {
            let hole_bytes = settings.seek_bytes;
            Box::new(server_directed(Settings { hole_bytes, ..settings }))
        },
    },
    Row {
        name: "read-cache",
        published_name: "",
        summary: "aggregation in one half of the memory, what was read last in the other",
        joins: true,
        invites: false,
        build: |settings| Box::new(read_cache(settings, aggregation)),
    },
    Row {
        name: "server-ordered",
        published_name: "",
        summary: "aggregation; clients send what they write in the order the server wants it",
        joins: true,
        invites: true,
        build: |settings| Box::new(server_ordered(settings, aggregation)),
    },
    Row {
        name: "cruel",
        published_name: "",
        summary: "refuses, delays, shuffles and cuts; for tests of what stands above",
        joins: false,
        invites: false,
        build: |settings| {
            let delay = Delay { age: Nanos(1_000_000), bytes: settings.capacity_bytes / 4 };
            Box::new(cruel(Settings { delay: Some(delay), ..settings }))
        },
    },
];

/// There is no such cache layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheError {
    /// What was written.
    pub name: String,
}

impl fmt::Display for CacheError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        write!(f, "there is no cache layer `{}`; choose from {}", self.name, names.join(", "))
    }
}

impl std::error::Error for CacheError {}

/// The row of that name.
pub fn find(name: &str) -> Result<&'static Row, CacheError> {
    let by_name = |row: &&Row| !name.is_empty() && (row.name == name || row.published_name == name);
    ROWS.iter().find(by_name).ok_or_else(|| CacheError { name: name.to_owned() })
}
