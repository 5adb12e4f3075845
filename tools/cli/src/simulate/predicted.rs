//! A prediction over tie seeds: the run in the middle, and how far the others are from it.

use crate::parallel;
use iolab_policy::insitu::StrategySpec;
use iolab_report::prediction::Predicted;
use iolab_sim::band::{Band, median_place};
use iolab_sim::guest::{Settings, orders, predict};
use iolab_sim::platform::Platform;
use iolab_trace::Trace;
use iolab_vocab::{Refusal, Seed};

/// Predicts with each of the tie seeds, on all cores, and keeps the median run.
pub(crate) fn over_ties(
    trace: &Trace,
    platform: &Platform,
    apply: &[StrategySpec],
    settings: &Settings,
    seeds: &[Seed],
) -> Result<Predicted, Refusal> {
    let seeds = orders(trace, platform, seeds);
    let with = |seed: Seed| predict(trace, platform, apply, &Settings { seed, ..settings.clone() });
    if let [seed] = *seeds {
        let prediction = with(seed)?;
        let wall = prediction.wall.seconds();
        return Ok(Predicted {
            prediction,
            band: Band { count: 1, low: wall, median: wall, high: wall },
        });
    }
    let walls = parallel::run_all(seeds, parallel::all_cores(), |&seed| {
        with(seed).map(|prediction| prediction.wall.seconds())
    });
    let walls = walls.into_iter().collect::<Result<Vec<f64>, _>>()?;
    let band = Band::of(&walls).expect("there is at least one seed");
    let median = median_place(&walls).expect("there is at least one seed");
    Ok(Predicted { prediction: with(seeds[median])?, band })
}
