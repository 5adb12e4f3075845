//! Starts the ranks of a benchmark: by itself, or as part of an MPI job.

use super::print_row;
use crate::failure::Failure;
use iolab_backend::uring_works;
use iolab_bench::{Abilities, Outcome, Plan, run as bench};
use iolab_comm::{Comm, CommError, LocalKind, MpiRank, launch, run_local};
use std::cell::Cell;

/// Runs `work` on every rank: of the MPI job that mpiexec started, else of local ranks. What rank
/// 0 found is given back, on rank 0 only.
pub(crate) fn on_ranks<T: Send>(
    ranks: u32,
    threads: bool,
    work: &(dyn Fn(&dyn Comm) -> Result<T, Failure> + Sync),
) -> Result<Option<T>, Failure> {
    let Some(launch) = launch() else {
        let kind = if threads { LocalKind::Threads } else { LocalKind::Processes };
        return Ok(Some(run_local(kind, ranks, work)??));
    };
    let comm = MpiRank::join(launch).map_err(|error| {
        let build = "`iolab mpi build` shows what is found; start with the mpiexec of that MPI";
        Failure::new(error).hint(build)
    })?;
    let result = work(&comm);
    match (launch.rank, result) {
        (0, result) => result.map(Some),
        (_, Ok(_)) => Ok(None),
        // Rank 0 tells what all ranks agreed on; the others only fail with it.
        (_, Err(_)) => {
            drop(comm);
            std::process::exit(1)
        }
    }
}

/// Runs the plan; the outcome is there on rank 0 only.
pub(super) fn run(plan: &Plan, threads: bool, table: bool) -> Result<Option<Outcome>, Failure> {
    let abilities = Abilities { mpi: launch().is_some(), uring: uring_works() };
    on_ranks(plan.ranks, threads, &|comm| {
        let first = Cell::new(true);
        let observe = |measurement: &_| {
            if table {
                print_row(measurement, &first);
            }
        };
        Ok(bench(plan, comm, abilities, &observe)?)
    })
}

impl From<CommError> for Failure {
    fn from(error: CommError) -> Failure {
        Failure::new(error).hint("look at the rank's own messages, and at the system's log")
    }
}
