//! A case of the evaluation computed again: its seconds, and how far these depend on chance.

use super::campaign::{Job, run_all};
use crate::failure::Failure;
use iolab_sim::band::{Band, median_place};
use iolab_sim::evaluation::{Case, Conduct, Run, mean_and_deviation};
use iolab_sim::platform::Platform;

/// A case and what it came to.
pub(crate) struct Result {
    pub(crate) case: Case,
    /// In the published order that order's own; in the documented one the median of the band.
    pub(crate) seconds: f64,
    pub(crate) deviation: Option<f64>,
    pub(crate) event_count: u64,
    pub(crate) band: Option<Band>,
}

/// Runs every seed of every case in each conduct, takes the means, and of these the median.
pub(crate) fn compute(
    platform: &Platform,
    cases: &[Case],
    conducts: Vec<Conduct>,
    threads: usize,
) -> std::result::Result<Vec<Result>, Failure> {
    let mut jobs = Vec::new();
    for case in cases {
        for &conduct in &conducts {
            jobs.extend(case.seeds().map(|seed| Job { case: *case, conduct, seed }));
        }
    }
    let mut runs = run_all(platform, &jobs, threads)?.into_iter();
    let of_case = |case: &Case| {
        let mut event_count = 0;
        let mut mean = |_| {
            let runs: Vec<Run> = runs.by_ref().take(case.seeds().end as usize).collect();
            event_count += runs.iter().map(|run| run.event_count).sum::<u64>();
            mean_and_deviation(&runs.iter().map(|run| run.seconds).collect::<Vec<_>>())
        };
        let means: Vec<(f64, Option<f64>)> = conducts.iter().map(&mut mean).collect();
        let all: Vec<f64> = means.iter().map(|mean| mean.0).collect();
        let (seconds, deviation) = means[median_place(&all).expect("there is a conduct")];
        let band = Band::of(&all).filter(|band| band.count > 1);
        Result { case: *case, seconds, deviation, event_count, band }
    };
    Ok(cases.iter().map(of_case).collect())
}
