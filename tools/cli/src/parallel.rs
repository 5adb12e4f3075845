//! Many simulation runs on several threads, each run on its own, results in order.

use indicatif::ProgressBar;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// As many runs at once as there are processors.
pub(crate) fn all_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs all jobs, with a progress bar on stderr, and gives the results in their order.
pub(crate) fn run_all<J: Sync, R: Send>(
    jobs: &[J],
    threads: usize,
    run: impl Fn(&J) -> R + Sync,
) -> Vec<R> {
    let bar = ProgressBar::new(jobs.len() as u64);
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1).min(jobs.len()) {
            scope.spawn(|| {
                while let Some((at, job)) = take(jobs, &next) {
                    let result = run(job);
                    results.lock().expect("no thread panics holding it")[at] = Some(result);
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    results.into_inner().expect("all threads have ended").into_iter().flatten().collect()
}

fn take<'a, J>(jobs: &'a [J], next: &AtomicUsize) -> Option<(usize, &'a J)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    jobs.get(at).map(|job| (at, job))
}
