//! Starts the ranks of a benchmark: by itself, or as part of an MPI job.

use super::flags::Flags;
use super::print_row;
use crate::failure::Failure;
use iolab_bench::{Abilities, Outcome, Plan, run as bench};
use iolab_comm::{Comm, CommError, Launch, LocalKind, MpiRank, launch, run_local};
use std::cell::Cell;

/// Runs the plan; the outcome is there on rank 0 only.
pub(super) fn run(plan: &Plan, flags: &Flags, table: bool) -> Result<Option<Outcome>, Failure> {
    if let Some(launch) = launch() {
        return job(plan, launch, table);
    }
    let abilities = Abilities { mpi: false, uring: false };
    let kind = if flags.threads { LocalKind::Threads } else { LocalKind::Processes };
    let work = |comm: &dyn Comm| one_rank(plan, comm, abilities, table);
    Ok(Some(run_local(kind, plan.ranks, work)??))
}

/// As one rank of the job that mpiexec started.
fn job(plan: &Plan, launch: Launch, table: bool) -> Result<Option<Outcome>, Failure> {
    let comm = MpiRank::join(launch).map_err(|error| {
        let build = "`iolab mpi build` shows what is found; start with the mpiexec of that MPI";
        Failure::new(error).hint(build)
    })?;
    let abilities = Abilities { mpi: true, uring: false };
    let outcome = one_rank(plan, &comm, abilities, table && launch.rank == 0)?;
    Ok((launch.rank == 0).then_some(outcome))
}

fn one_rank(
    plan: &Plan,
    comm: &dyn Comm,
    abilities: Abilities,
    table: bool,
) -> Result<Outcome, Failure> {
    let first = Cell::new(true);
    let observe = |measurement: &_| {
        if table {
            print_row(measurement, &first);
        }
    };
    Ok(bench(plan, comm, abilities, &observe)?)
}

impl From<CommError> for Failure {
    fn from(error: CommError) -> Failure {
        Failure::new(error).hint("look at the rank's own messages, and at the system's log")
    }
}
