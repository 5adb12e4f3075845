//! What a run came to: when it ended, and what applications, servers and links did.

use crate::cluster::{HopTotals, LinkKind, ServerTotals};
use crate::file_system::{CacheTotals, Durability, TrafficTotals};
use crate::program::PhaseTotals;
use iolab_trace::Trace;
use iolab_vocab::Nanos;

/// What a run came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Time of the last event: all data that will be on devices is there.
    pub end: Nanos,
    /// Events handled.
    pub event_count: u64,
    /// Hash over all events and their times: equal runs have equal ones.
    pub event_hash: u64,
    /// Packets that faults of links have lost; they were sent again.
    pub lost_packet_count: u64,
    /// What each application did.
    pub applications: Vec<ApplicationOutcome>,
    /// What each server did.
    pub servers: Vec<ServerOutcome>,
    /// What each link and switch carried.
    pub links: Vec<LinkOutcome>,
    /// What the parallel file system did, if the run was on one.
    pub file_system: Option<FileSystemOutcome>,
    /// What every part did and when, if it was to be recorded.
    pub trace: Option<Trace>,
}

/// What an application did.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplicationOutcome {
    /// Its name.
    pub name: String,
    /// Its processes.
    pub rank_count: u32,
    /// When its last rank ended.
    pub end: Nanos,
    /// Its phases, if its program tells them.
    pub phases: Vec<PhaseTotals>,
    /// What a reader of these should know: a sentence each.
    pub notes: Vec<String>,
}

/// What a parallel file system did.
#[derive(Clone, Debug, PartialEq)]
pub struct FileSystemOutcome {
    /// Its name.
    pub name: String,
    /// What a sync made of what was written.
    pub durability: Durability,
    /// How files are partitioned that asked for nothing else.
    pub layout: String,
    /// What its servers were asked and told, in its order.
    pub servers: Vec<TrafficOutcome>,
    /// What its cache managers did, in its order.
    pub caches: Vec<CacheOutcome>,
}

/// What a cache manager of a file system did.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheOutcome {
    /// The node it is on.
    pub name: String,
    /// What it was asked, and what it had to ask for.
    pub totals: CacheTotals,
}

/// What a server of a file system was asked and told.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficOutcome {
    /// The node it is on.
    pub name: String,
    /// Requests and bytes.
    pub totals: TrafficTotals,
}

/// What a server did.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerOutcome {
    /// The node it is on.
    pub name: String,
    /// Accesses, bytes, busy time.
    pub totals: ServerTotals,
}

/// What a link or switch carried.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkOutcome {
    /// As the platform's parts are called.
    pub name: String,
    /// What it is.
    pub kind: LinkKind,
    /// Packets, bytes, busy time.
    pub totals: HopTotals,
}
