//! A prediction over tie seeds: the run in the middle, and how far the others are from it.

use crate::parallel;
use iolab_policy::insitu::StrategySpec;
use iolab_sim::band::{Band, median_place};
use iolab_sim::guest::{Prediction, Settings, predict};
use iolab_sim::platform::Platform;
use iolab_trace::Trace;
use iolab_vocab::{Refusal, Seed};
use std::collections::BTreeSet;

/// The prediction that is the median, and the band of run times it is of.
pub(crate) struct Predicted {
    pub(crate) prediction: Prediction,
    pub(crate) band: Band,
}

/// Predicts with each of the tie seeds, on all cores, and keeps the median run. A single thread on
/// local storage does one thing at a time, so one run says all.
pub(crate) fn over_ties(
    trace: &Trace,
    platform: &Platform,
    apply: &[StrategySpec],
    settings: &Settings,
    seeds: &[Seed],
) -> Result<Predicted, Refusal> {
    let threads: BTreeSet<_> =
        trace.events.iter().map(|event| (event.process, event.thread)).collect();
    let has_one_order = threads.len() <= 1 && platform.nodes.is_empty();
    let seeds = if has_one_order { &seeds[..1] } else { seeds };
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
