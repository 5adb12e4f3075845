//! What a program is run with, and what its calls cost as they were recorded.

use super::kernel::{Cost, Kernel};
use super::program::Program;
use super::scale::Scale;
use super::{Durations, Settings};
use iolab_device::local::LocalStorage;
use iolab_policy::insitu::StrategySpec;
use iolab_trace::{Class, Trace};
use iolab_vocab::{FileId, Nanos, Refusal};

/// What is needed to run a program.
pub(super) struct Setup<'a> {
    pub(super) trace: &'a Trace,
    pub(super) program: &'a Program,
    pub(super) storage: &'a LocalStorage,
    pub(super) apply: &'a [StrategySpec],
    pub(super) scale: Scale,
    pub(super) settings: &'a Settings,
}

impl Setup<'_> {
    /// The path of a file of the trace.
    pub(super) fn path(&self, file: FileId) -> &str {
        file.index().map_or("", |file| &self.trace.header.files[file].path)
    }

    /// Why a program cannot be run to its end: one sequence waits for another in vain.
    pub(super) fn never_comes(&self, waiter: usize, awaited: usize) -> Refusal {
        let name = |sequence: usize| {
            let process = self.program.sequences[sequence].process as usize;
            &self.trace.header.processes[process].name
        };
        Refusal {
            message: format!(
                "`{}` waits for `{}`, which never comes so far",
                name(waiter),
                name(awaited)
            ),
            hint: "the trace may be cut short; see `iolab report`".to_owned(),
        }
    }
}

/// A call as it was recorded, at its recorded duration or at the model's cost; what servers do of it
/// costs what they take.
pub(super) fn native(setup: &Setup, kernel: &mut Kernel, row: usize) -> Cost {
    let event = &setup.trace.events[row];
    match (kernel.native(event, setup.trace.copy_target(row)), setup.settings.durations) {
        _ if kernel.is_served() => Cost::default(),
        (Some(cost), Durations::Model) => cost,
        _ => recorded(setup, row),
    }
}

/// The recorded duration of a call; a sync waits, everything else works.
pub(super) fn recorded(setup: &Setup, row: usize) -> Cost {
    let event = &setup.trace.events[row];
    match event.function.class() {
        Class::Sync => Cost { work: Nanos::ZERO, wait: event.duration() },
        _ => Cost::work(setup.program.durations[row]),
    }
}
