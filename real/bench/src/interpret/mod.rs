//! What results say: saturation, alignment, caches, collective against independent, scaling,
//! slow ranks. Every sentence carries the numbers it was drawn from.

mod compare;
mod curve;
mod effects;
mod weigh;

pub use compare::{Comparison, compare, ratio_of_medians, verdict};
pub use curve::{Curve, curves};
pub use weigh::{Profile, Score, Share, plan_profile, profiles, score};

use crate::outcome::{Measurement, Outcome};

/// Something the results say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Insight {
    /// What kind of thing.
    pub kind: &'static str,
    /// The sentence with its numbers.
    pub text: String,
}

fn insight(kind: &'static str, text: String) -> Insight {
    Insight { kind, text }
}

fn family(measurement: &Measurement) -> String {
    measurement.spatial.split(':').next().unwrap_or_default().to_owned()
}

/// Valid measurements without the first repetition, when there are others.
fn settled(outcomes: &[Outcome]) -> Vec<&Measurement> {
    let usable = outcomes.iter().flat_map(|outcome| {
        let several = outcome.measurements.iter().any(|m| m.repetition > 0);
        let settled = move |m: &&Measurement| !several || m.repetition > 0 || m.predicted.is_some();
        outcome.measurements.iter().filter(settled)
    });
    usable.filter(|m| m.invalid.is_none() && m.bytes > 0).collect()
}

fn speeds<'a>(all: &[&'a Measurement], wanted: impl Fn(&'a Measurement) -> bool) -> Vec<f64> {
    all.iter().filter(|m| wanted(m)).map(|m| m.mib_per_second).collect()
}

/// The pattern without its swept size, so that a sweep is one curve.
fn shape(measurement: &Measurement) -> &str {
    let swept = measurement.size.and_then(|size| {
        let (rest, last) = measurement.spatial.rsplit_once([',', ':'])?;
        last.ends_with(&format!("={size}")).then_some(rest)
    });
    swept.unwrap_or(&measurement.spatial)
}

/// The size swept, else bytes per operation.
fn size(measurement: &Measurement) -> u64 {
    measurement.size.unwrap_or(measurement.bytes / measurement.operations.max(1))
}

/// Everything the results say.
pub fn insights(outcomes: &[Outcome]) -> Vec<Insight> {
    let curves = curves(outcomes);
    let all = settled(outcomes);
    let mut found = curve::insights(&curves);
    found.extend(effects::insights(&all, &curves));
    found
}
