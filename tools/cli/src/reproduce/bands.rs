//! The cases of an evaluation, each with every tie seed.

use super::campaign::{Job, run_all};
use crate::failure::Failure;
use iolab_sim::band::Band;
use iolab_sim::cluster::Order;
use iolab_sim::evaluation::{Case, Conduct, mean_and_deviation};
use iolab_sim::platform::Platform;
use iolab_vocab::Seed;

/// One band per case, over the tie seeds. Of a random case each is a mean over its first `draws`.
pub(crate) fn of_cases(
    platform: &Platform,
    cases: &[Case],
    order: Order,
    (seeds, draws): (&[Seed], u64),
    threads: usize,
) -> Result<Vec<Band>, Failure> {
    let draws = |case: &Case| case.seeds().end.min(draws);
    let mut jobs = Vec::new();
    for case in cases {
        for &tie_seed in seeds {
            let conduct = Conduct { order, tie_seed };
            jobs.extend((0..draws(case)).map(|seed| Job { case: *case, conduct, seed }));
        }
    }
    let mut runs = run_all(platform, &jobs, threads)?.into_iter().map(|run| run.seconds);
    let mut band = |case: &Case| {
        let count = draws(case) as usize;
        let mut mean = || mean_and_deviation(&runs.by_ref().take(count).collect::<Vec<_>>()).0;
        let means: Vec<f64> = seeds.iter().map(|_| mean()).collect();
        Band::of(&means).expect("a band of at least one run")
    };
    Ok(cases.iter().map(&mut band).collect())
}
