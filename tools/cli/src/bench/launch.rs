//! Starts the ranks of a benchmark: by itself, or as part of an MPI job.

use super::print_row;
use crate::failure::Failure;
use crate::simulate::read_platform;
use iolab_backend::uring_works;
use iolab_bench::{Abilities, Leftovers, Outcome, Plan, run as bench};
use iolab_comm::{Comm, CommError, Imagined, Launch, LocalKind, MpiRank, launch, run_local};
use iolab_host::vigil::Vigil;
use std::cell::Cell;
use std::time::Duration;

/// Runs `work` on every rank: of the MPI job that mpiexec started, else of local ranks. What rank
/// 0 found is given back, on rank 0 only. When the run is killed, the leftovers are removed.
pub(crate) fn on_ranks<T: Send>(
    ranks: u32,
    threads: bool,
    leftovers: Option<Leftovers>,
    work: &(dyn Fn(&dyn Comm) -> Result<T, Failure> + Sync),
) -> Result<Option<T>, Failure> {
    let launch = launch();
    let first = launch.is_none_or(|launch| launch.rank == 0);
    let vigil = leftovers.filter(|_| first).map(watch_over).transpose()?;
    let result = match launch {
        Some(launch) => as_rank_of(launch, work),
        None => {
            let kind = if threads { LocalKind::Threads } else { LocalKind::Processes };
            run_local(kind, ranks, work).map_err(Failure::from).flatten().map(Some)
        }
    };
    if let Some(vigil) = vigil {
        vigil.call_off();
    }
    result
}

/// Whether this process is rank 0, or starts the ranks itself.
pub(super) fn is_first() -> bool {
    launch().is_none_or(|launch| launch.rank == 0)
}

/// Whoever is killed removes nothing, so somebody else has to. The others of an MPI job may live
/// a moment longer and make a file anew, so once is not enough.
fn watch_over(leftovers: Leftovers) -> Result<Vigil, Failure> {
    let clean = move || {
        eprintln!("iolab: the run was ended from outside; its files are removed");
        for rest in [0, 300, 1000] {
            std::thread::sleep(Duration::from_millis(rest));
            leftovers.remove();
        }
    };
    Vigil::over(clean).map_err(|error| {
        Failure::new(format!("cannot start the process that cleans up: {error}"))
            .hint("give --keep: then nothing has to be cleaned up")
    })
}

fn as_rank_of<T>(
    launch: Launch,
    work: &(dyn Fn(&dyn Comm) -> Result<T, Failure> + Sync),
) -> Result<Option<T>, Failure> {
    let comm = MpiRank::join(launch).map_err(|error| {
        let build = "`iolab mpi build` shows what is found; start with the mpiexec of that MPI";
        Failure::new(error).hint(build)
    })?;
    let result = work(&comm);
    match (launch.rank, result) {
        (0, result) => result.map(Some),
        (_, Ok(_)) => Ok(None),
        // Rank 0 tells what all ranks agreed on; the others only fail with it. Open MPI kills the
        // job at the first rank that fails, so rank 0 needs a moment to be the first.
        (_, Err(_)) => {
            drop(comm);
            std::thread::sleep(Duration::from_secs(1));
            std::process::exit(1)
        }
    }
}

/// Runs the plan; the outcome is there on rank 0 only.
pub(super) fn run(plan: &Plan, threads: bool, table: bool) -> Result<Option<Outcome>, Failure> {
    let platform = plan.platform.as_deref().map(read_platform).transpose()?;
    let abilities = Abilities { mpi: launch().is_some(), uring: uring_works(), platform };
    let work = |comm: &dyn Comm| {
        let first = Cell::new(true);
        let observe = |measurement: &_| {
            if table {
                print_row(measurement, &first);
            }
        };
        Ok(bench(plan, comm, &abilities, &observe)?)
    };
    if plan.is_prediction() && launch().is_none() {
        return work(&Imagined { ranks: plan.ranks }).map(Some);
    }
    let ranks = launch().map_or(plan.ranks, |launch| launch.ranks);
    let leftovers = Leftovers::of(plan, ranks);
    on_ranks(plan.ranks, threads, leftovers, &work)
}

impl From<CommError> for Failure {
    fn from(error: CommError) -> Failure {
        Failure::new(error).hint("look at the rank's own messages, and at the system's log")
    }
}
