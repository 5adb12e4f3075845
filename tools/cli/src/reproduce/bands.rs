//! How far a result moves when simultaneous events come in another order.

use super::campaign::{Job, run_all};
use crate::failure::Failure;
use iolab_sim::cluster::Order;
use iolab_sim::evaluation::{Case, Conduct, mean_and_deviation};
use iolab_sim::platform::Platform;
use iolab_vocab::Seed;

/// Least, median and greatest seconds over tie seeds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Band {
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
}

impl Band {
    /// Of these results, if there are any.
    pub(crate) fn of(mut seconds: Vec<f64>) -> Option<Band> {
        seconds.sort_by(f64::total_cmp);
        let (low, high) = (*seconds.first()?, *seconds.last()?);
        Some(Band { low, median: seconds[seconds.len() / 2], high })
    }

    /// Whether a value lies inside.
    pub(crate) fn holds(&self, seconds: f64) -> bool {
        (self.low..=self.high).contains(&seconds)
    }
}

/// One band per case, over the tie seeds 1 to `count`.
pub(crate) fn of_cases(
    platform: &Platform,
    cases: &[Case],
    order: Order,
    count: u64,
    threads: usize,
) -> Result<Vec<Band>, Failure> {
    let mut jobs = Vec::new();
    for case in cases {
        for tie in 1..=count {
            let conduct = Conduct { order, tie_seed: Seed(tie) };
            jobs.extend(case.seeds().map(|seed| Job { case: *case, conduct, seed }));
        }
    }
    let mut runs = run_all(platform, &jobs, threads)?.into_iter().map(|run| run.seconds);
    let mut band = |case: &Case| {
        let seeds = case.seeds().end as usize;
        let means = (0..count)
            .map(|_| mean_and_deviation(&runs.by_ref().take(seeds).collect::<Vec<_>>()).0)
            .collect();
        Band::of(means).expect("a band of at least one run")
    };
    Ok(cases.iter().map(&mut band).collect())
}
