//! A prediction over tie seeds: the run in the middle, and how far the others are from it.

use crate::parallel;
use iolab_policy::insitu::StrategySpec;
use iolab_report::prediction::Predicted;
use iolab_sim::band::{Band, median_place};
use iolab_sim::guest::{Settings, Subject, orders};
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
    let subject = Subject::new(trace, platform, settings)?;
    if let [seed] = *seeds {
        let prediction = subject.predict(apply, seed)?;
        let wall = prediction.wall.seconds();
        return Ok(Predicted {
            prediction,
            band: Band { count: 1, low: wall, median: wall, high: wall },
        });
    }
    let walls = seconds(&subject, apply, seeds)?;
    let band = Band::of(&walls).expect("there is at least one seed");
    let median = median_place(&walls).expect("there is at least one seed");
    Ok(Predicted { prediction: subject.predict(apply, seeds[median])?, band })
}

/// How long the run takes with each of the tie seeds, on all cores.
pub(crate) fn seconds(
    subject: &Subject,
    apply: &[StrategySpec],
    seeds: &[Seed],
) -> Result<Vec<f64>, Refusal> {
    let walls = parallel::run_all(seeds, parallel::all_cores(), |&seed| {
        subject.predict(apply, seed).map(|prediction| prediction.wall.seconds())
    });
    walls.into_iter().collect()
}
