//! What one rank measured in one phase, as it travels to the others.

use iolab_report::bench::Stamps;
use serde::{Deserialize, Serialize};

/// Times of one rank in one phase, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankTimes {
    /// Opening the file.
    pub open_ns: u64,
    /// In the barrier before the phase.
    pub barrier_ns: u64,
    /// CLOCK_MONOTONIC when it left that barrier; comparable on one host only.
    pub left_barrier: u64,
    /// From there until its last operation was done.
    pub done_ns: u64,
    /// Bringing the data to the device afterwards.
    pub sync_ns: u64,
    /// From leaving the first barrier to leaving the second.
    pub phase_ns: u64,
    /// Closing the file.
    pub close_ns: u64,
    /// CPU time of the phase, user and system.
    pub cpu_ns: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Operations done.
    pub operations: u64,
    /// Transfers the system cut short.
    pub short: u64,
    /// Latencies as (nanoseconds, count).
    pub latencies: Vec<(u64, u64)>,
    /// What went wrong, and the way out.
    pub error: Option<(String, String)>,
}

impl RankTimes {
    /// Nothing measured.
    pub const NONE: RankTimes = RankTimes {
        open_ns: 0,
        barrier_ns: 0,
        left_barrier: 0,
        done_ns: 0,
        sync_ns: 0,
        phase_ns: 0,
        close_ns: 0,
        cpu_ns: 0,
        bytes: 0,
        operations: 0,
        short: 0,
        latencies: Vec::new(),
        error: None,
    };

    /// The moments that bound the phase.
    pub(crate) fn stamps(&self) -> Stamps {
        Stamps {
            entered: self.left_barrier.saturating_sub(self.barrier_ns),
            left: self.left_barrier,
            ended: self.left_barrier + self.done_ns + self.sync_ns,
            released: self.left_barrier + self.phase_ns,
        }
    }
}
