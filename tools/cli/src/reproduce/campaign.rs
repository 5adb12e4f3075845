//! The runs of cases of the published evaluation, on several threads.

use crate::failure::Failure;
use crate::parallel;
use iolab_sim::evaluation::{Case, Conduct, Run};
use iolab_sim::platform::Platform;

/// One run of a campaign.
#[derive(Clone, Copy)]
pub(crate) struct Job {
    pub(crate) case: Case,
    pub(crate) conduct: Conduct,
    pub(crate) seed: u64,
}

/// Runs all jobs and gives the results in their order.
pub(crate) fn run_all(
    platform: &Platform,
    jobs: &[Job],
    threads: usize,
) -> Result<Vec<Run>, Failure> {
    let results =
        parallel::run_all(jobs, threads, |job| job.case.run(platform, job.conduct, job.seed));
    results.into_iter().map(|result| result.map_err(Failure::from)).collect()
}
