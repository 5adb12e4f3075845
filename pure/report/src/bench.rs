//! Results of the benchmark: the document, what is alike in it, and what it says.
//!
//! What it says is said only when chance does not explain it: [`crate::evidence`]. Every sentence
//! carries the numbers it was drawn from, and how many there were.

mod compare;
mod curve;
mod effects;
mod foreign;
mod observation;
mod outcome;
mod page;
mod phase;
mod rows;
mod span;
mod table;
mod weigh;

pub use compare::{Compared, Comparison, compare};
pub use curve::{Curve, Point};
pub use foreign::{Foreign, foreign};
pub use observation::Observation;
pub use outcome::{
    FORMAT_VERSION, Incomplete, Latency, Measurement, Outcome, Prices, Refused, Summary,
    Surroundings,
};
pub use page::page;
pub use phase::{PhaseLabel, RankTimes, latencies, measurement};
pub use rows::{Labels, Row, Settings, rows, settings, shown_pattern, summaries, summarise};
pub use span::{PhaseTime, Stamps, phase_time};
pub use table::{Table, csv, summary_table};
pub use weigh::{Part, Profile, Score, Share, plan_profile, profiles, scores};

use crate::evidence::Evidence;

/// All curves of all results, in order of appearance.
pub fn curves(outcomes: &[Outcome]) -> Vec<Curve> {
    curve::curves(&rows(outcomes))
}

/// Everything the results say.
pub fn observations(outcomes: &[Outcome]) -> Vec<Observation> {
    let rows = rows(outcomes);
    let curves = curve::curves(&rows);
    Evidence::report(|evidence| {
        let mut found = curve::observations(evidence, &curves);
        found.extend(effects::observations(evidence, outcomes, &rows, &curves));
        found
    })
}

/// What in the results cannot be true and was left out, a sentence each.
pub fn contradictions(outcomes: &[Outcome]) -> Vec<String> {
    let all = outcomes.iter().flat_map(|outcome| &outcome.measurements);
    let wrong = all.filter_map(|m| Some((m, m.contradiction()?)));
    wrong
        .map(|(m, why)| {
            format!(
                "{} of {} by {}, repetition {}: {why}",
                m.phase, m.spatial, m.method, m.repetition
            )
        })
        .collect()
}
