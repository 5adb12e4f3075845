//! What `iolab run` says of strategies of the layer MPI-IO: what they did, or that no program came to MPI.

use crate::lines::Lines;
use iolab_host::job::Job;
use iolab_policy::insitu::StrategySpec;
use iolab_policy::insitu::classes::Layer;
use iolab_policy::insitu::mpiio::Account;
use std::process::Command;

/// Whether the library beside MPI hosts a strategy.
pub(super) fn is_hosted(spec: &StrategySpec) -> bool {
    spec.layer() == Layer::MpiIo
}

/// What ranks leave of a run.
pub(super) struct Parallel {
    lines: Lines,
    stages: Vec<&'static str>,
    is_quiet: bool,
}

impl Parallel {
    /// A place for the processes of a command, which find it by their environment. None where nobody asked,
    /// or where it could not be made.
    pub(super) fn begin(
        command: &mut Command,
        specs: &[StrategySpec],
        is_quiet: bool,
        is_strict: bool,
    ) -> Option<Parallel> {
        let mut stages: Vec<_> =
            specs.iter().filter(|it| is_hosted(it)).map(|it| it.name).collect();
        stages.dedup();
        if stages.is_empty() || (is_quiet && !is_strict) {
            return None;
        }
        match Lines::begin("iolab-mpiio") {
            Ok(lines) => {
                command.env("IOLAB_MPIIO_LOG", lines.place());
                Some(Parallel { lines, stages, is_quiet })
            }
            Err(error) => {
                eprintln!("iolab: warning: nothing will be told of strategies of MPI-IO: {error}");
                None
            }
        }
    }

    /// Says it, once for all ranks of a job that have a run each; true when a program came to MPI.
    pub(super) fn end(self, is_strict: bool) -> bool {
        let tells = Job::find().is_none_or(|job| job.rank == 0);
        let account = match self.lines.end() {
            Ok(text) => Account::of(&text),
            Err(error) => {
                eprintln!("iolab: warning: nothing is known of strategies of MPI-IO: {error}");
                return false;
            }
        };
        if tells && (!self.is_quiet || is_strict && !account.has_mpi()) {
            account.lines(&self.stages).iter().for_each(|line| eprintln!("iolab: {line}"));
        }
        account.has_mpi()
    }
}
