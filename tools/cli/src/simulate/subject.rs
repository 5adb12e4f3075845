//! What is simulated on a cluster: a workload that was described, or a program that was recorded.

use iolab_sim::platform::Platform;
use iolab_sim::workload::recorded::Recording;
use iolab_sim::workload::{Job, Workload, prepare};
use iolab_vocab::{Nanos, Refusal, Seed};

/// Programs with a name.
pub(crate) enum Subject {
    /// As a workload file has it.
    Described(Box<Workload>),
    /// The calls of MPI in a trace, and how long the recorded run took.
    Recorded(Recording, Nanos),
}

impl Subject {
    pub(crate) fn name(&self) -> &str {
        match self {
            Subject::Described(workload) => &workload.name,
            Subject::Recorded(recording, _) => recording.name(),
        }
    }

    /// Of random choices; a recorded program makes none.
    pub(crate) fn seed(&self) -> Option<Seed> {
        match self {
            Subject::Described(workload) => Some(workload.seed),
            Subject::Recorded(..) => None,
        }
    }

    /// How long it really took, if it ever ran.
    pub(crate) fn recorded(&self) -> Option<Nanos> {
        match self {
            Subject::Described(_) => None,
            Subject::Recorded(_, wall) => Some(*wall),
        }
    }

    /// Its programs for this platform, from their beginning.
    pub(crate) fn job(&self, platform: &Platform) -> Result<Job, Refusal> {
        match self {
            Subject::Described(workload) => prepare(workload, platform),
            Subject::Recorded(recording, _) => Ok(recording.job()),
        }
    }
}
