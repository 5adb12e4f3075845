//! Starts the ranks of a benchmark: by itself, or as part of an MPI job.

use super::conclusion::{Conclusion, Document, Places};
use crate::failure::Failure;
use crate::platform_file::read_platform;
use iolab_backend::uring_works;
use iolab_bench::{
    Abilities, Manner, Measurement, Outcome, Plan, Progress, TestFiles, run as bench,
};
use iolab_comm::{
    Comm, CommError, Launch, LocalKind, MpiRank, PredictedComm, launch, run_local_or,
};
use iolab_report::bench::Table;
use std::cell::Cell;
use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs `work` on every rank: of the MPI job that mpiexec started, else of local ranks. What rank
/// 0 found is given back, on rank 0 only. However the run ends, `conclusion` sees to it.
pub(crate) fn on_ranks<T: Send, D: Document, O: Places + Sync>(
    ranks: u32,
    threads: bool,
    conclusion: &Conclusion<D, O>,
    work: &(dyn Fn(&dyn Comm) -> Result<T, Failure> + Sync),
) -> Result<Option<T>, Failure> {
    if is_first() {
        conclusion.watch_over()?;
    }
    let work = |comm: &dyn Comm| match comm.rank().0 {
        0 => conclusion.interruptible(|| work(comm)),
        _ => work(comm),
    };
    match launch() {
        Some(launch) => as_rank_of(launch, &work),
        None => {
            let kind = if threads { LocalKind::Threads } else { LocalKind::Processes };
            let lost = |error: CommError| conclusion.conclude(&error.to_string(), 1);
            run_local_or(kind, ranks, work, &lost).map_err(Failure::from).flatten().map(Some)
        }
    }
}

/// Whether this process is rank 0, or starts the ranks itself.
pub(super) fn is_first() -> bool {
    launch().is_none_or(|launch| launch.rank == 0)
}

/// The names of a run and the register of what it makes of them.
pub(crate) fn test_files(target: &Path, ranks: u32, manner: Manner) -> Result<TestFiles, Failure> {
    TestFiles::of(target, ranks, manner)
        .map_err(|error| Failure::new(format!("no memory to know the files by: {error}")))
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

/// The directory of the file system that `pfs` uses: the plan's, or that of the run this one is part of.
pub(super) fn file_system(plan: &Plan) -> Option<PathBuf> {
    plan.file_system.clone().or_else(|| env::var_os("IOLAB_FS").map(PathBuf::from))
}

/// How many ranks there will be.
pub(super) fn ranks(plan: &Plan) -> u32 {
    launch().map_or(plan.ranks, |launch| launch.ranks)
}

/// Runs the plan; the outcome is there on rank 0 only.
pub(super) fn run<O: Places + Sync>(
    plan: &Plan,
    threads: bool,
    table: bool,
    files: &TestFiles,
    conclusion: &Conclusion<Outcome, O>,
) -> Result<Option<Outcome>, Failure> {
    let platform = plan.platform.as_deref().map(read_platform).transpose()?;
    let abilities = Abilities {
        mpi: launch().is_some(),
        uring: uring_works(),
        file_system: file_system(plan),
        platform,
    };
    let rows = iolab_bench::table(plan);
    let work = |comm: &dyn Comm| {
        let first = Cell::new(true);
        let observe = |progress: Progress| match progress {
            Progress::Begun(outcome, records) => conclusion.begin(outcome, records.clone()),
            Progress::Measured(measurement) => {
                conclusion.add(measurement);
                if table {
                    print_row(&rows, measurement, &first);
                }
            }
        };
        Ok(bench(plan, comm, &abilities, files, &observe)?)
    };
    if plan.is_prediction() && launch().is_none() {
        let alone = PredictedComm { ranks: plan.ranks };
        return conclusion.interruptible(|| work(&alone)).map(Some);
    }
    on_ranks(plan.ranks, threads, conclusion, &work)
}

/// Prints the heading with the first row, so that an early error is not buried under it.
fn print_row(table: &Table, measurement: &Measurement, first: &Cell<bool>) {
    if first.replace(false) {
        say_line!("{}", table.header());
    }
    say_line!("{}", table.row(measurement));
}

impl From<CommError> for Failure {
    fn from(error: CommError) -> Failure {
        Failure::new(error).hint("look at the rank's own messages, and at the system's log")
    }
}
