//! What is simulated on a cluster: a workload that was described, or a program that was recorded.

use iolab_report::simulation;
use iolab_sim::platform::Platform;
use iolab_sim::workload::recorded::Recording;
use iolab_sim::workload::{Job, Workload, prepare};
use iolab_vocab::{Nanos, Refusal};

/// Programs with a name.
pub(crate) enum Subject {
    /// As a workload file has it.
    Described(Box<Workload>),
    /// The calls of MPI in a trace, and how long the recorded run took.
    Recorded(Recording, Nanos),
}

impl Subject {
    /// What is told of it.
    pub(crate) fn told(&self) -> simulation::Subject<'_> {
        match self {
            Subject::Described(workload) => simulation::Subject {
                name: &workload.name,
                seed: Some(workload.seed),
                recorded: None,
            },
            Subject::Recorded(recording, wall) => {
                simulation::Subject { name: recording.name(), seed: None, recorded: Some(*wall) }
            }
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
