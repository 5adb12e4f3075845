//! Many simulation runs on several threads, each run on its own.

use crate::failure::Failure;
use indicatif::ProgressBar;
use iolab_sim::cluster::RunError;
use iolab_sim::evaluation::{Case, Conduct, Run};
use iolab_sim::platform::Platform;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    let bar = ProgressBar::new(jobs.len() as u64);
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<Run, RunError>>>> = Mutex::new(vec![None; jobs.len()]);
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some((at, job)) = take(jobs, &next) {
                    let result = job.case.run(platform, job.conduct, job.seed);
                    results.lock().expect("no thread panics holding it")[at] = Some(result);
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    let results = results.into_inner().expect("all threads have ended");
    results.into_iter().flatten().map(|result| result.map_err(Failure::from)).collect()
}

fn take<'a>(jobs: &'a [Job], next: &AtomicUsize) -> Option<(usize, &'a Job)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    jobs.get(at).map(|job| (at, job))
}
