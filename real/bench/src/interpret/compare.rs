//! Two results beside each other: ratio, interval, verdict.

use super::settled;
use crate::outcome::{Measurement, Outcome};
use crate::statistics::{Interval, median};
use iolab_vocab::{Random, Seed};

/// The ratio of two medians with its 95 % bootstrap interval; `None` without samples.
pub fn ratio_of_medians(above: &[f64], below: &[f64]) -> Option<(f64, Interval)> {
    const DRAWS: usize = 2000;
    if above.is_empty() || below.is_empty() || median(below) <= 0.0 {
        return None;
    }
    let mut random = Random::new(Seed(1));
    let mut draw = |values: &[f64]| {
        let pick: Vec<f64> =
            values.iter().map(|_| values[random.below(values.len() as u64) as usize]).collect();
        median(&pick)
    };
    let mut ratios: Vec<f64> = (0..DRAWS).map(|_| draw(above) / draw(below)).collect();
    ratios.sort_by(f64::total_cmp);
    let interval = Interval { low: ratios[DRAWS / 40], high: ratios[DRAWS - 1 - DRAWS / 40] };
    Some((median(above) / median(below), interval))
}

/// Whether the samples show a difference. Two repetitions agree or differ by chance: at least
/// three are asked for on both sides.
pub fn verdict(above: &[f64], below: &[f64], interval: Interval) -> &'static str {
    match interval {
        _ if above.len().min(below.len()) < 3 => "too few repetitions for a verdict",
        Interval { low, .. } if low > 1.0 => "faster",
        Interval { high, .. } if high < 1.0 => "slower",
        _ => "no difference shown",
    }
}

/// Predictions do not vary: any difference is one.
fn predicted_verdict(ratio: f64) -> &'static str {
    match ratio {
        ratio if ratio > 1.0 => "faster, predicted",
        ratio if ratio < 1.0 => "slower, predicted",
        _ => "the same, predicted",
    }
}

/// One line of a comparison of two results.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Phase, pattern and method.
    pub what: String,
    /// Median of the second over that of the first.
    pub ratio: f64,
    /// Its interval.
    pub interval: Interval,
    /// What follows.
    pub verdict: &'static str,
}

/// The second result against the first, for everything both have measured.
pub fn compare(first: &Outcome, second: &Outcome) -> Vec<Comparison> {
    let (before, after) = (std::slice::from_ref(first), std::slice::from_ref(second));
    let (before, after) = (settled(before), settled(after));
    let name = |m: &Measurement| format!("{} of {} by {}", m.phase, m.spatial, m.method);
    let mut names: Vec<String> = Vec::new();
    for m in &before {
        if !names.contains(&name(m)) {
            names.push(name(m));
        }
    }
    let line = |what: String| {
        let is_predicted = |all: &[&Measurement]| {
            all.iter().filter(|m| name(m) == what).all(|m| m.predicted.is_some())
        };
        let of = |all: &[&Measurement]| -> Vec<f64> {
            all.iter().filter(|m| name(m) == what).map(|m| m.mib_per_second).collect()
        };
        let (above, below) = (of(&after), of(&before));
        let (ratio, interval) = ratio_of_medians(&above, &below)?;
        let verdict = match is_predicted(&before) && is_predicted(&after) {
            true => predicted_verdict(ratio),
            false => verdict(&above, &below, interval),
        };
        Some(Comparison { what, ratio, interval, verdict })
    };
    names.into_iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_samples_show_no_difference_and_separate_ones_do() {
        let (low, high) = ([10.0, 11.0, 10.5, 9.8, 10.2], [20.0, 21.0, 19.5, 20.4, 20.1]);
        let verdict_of = |a: &[f64], b: &[f64]| {
            let (_, interval) = ratio_of_medians(a, b).expect("samples");
            verdict(a, b, interval)
        };
        assert!(verdict_of(&high[..2], &low).starts_with("too few"));
        assert_eq!(verdict_of(&low, &low), "no difference shown");
        assert_eq!(verdict_of(&high, &low), "faster");
        assert_eq!(verdict_of(&low, &high), "slower");
        assert_eq!(ratio_of_medians(&[], &low), None);
    }
}
