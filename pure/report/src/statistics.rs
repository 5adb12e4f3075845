//! Few repetitions, honestly: medians, ranges, and intervals only where the number of values
//! supports them.
//!
//! The interval of a median is the one of order statistics (Thompson 1936): of `n` independent
//! values, the k-th smallest and the k-th largest hold the median with a probability that does not
//! depend on how the values are distributed. From six values on it reaches 95 % (two of six on one
//! side: 1 − 2·2⁻⁶ = 96.9 %). Of fewer there is no such interval; what is given is their range, and
//! called so. The bootstrap, which was used before, is far too narrow for so few values.

use serde::{Deserialize, Serialize};

/// Fewer values than this have a range, no interval.
pub const VALUES_MIN: usize = 6;
/// What an interval of the median covers at least.
pub const COVERAGE: f64 = 0.95;

/// What two ends mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The smallest and the largest value.
    Range,
    /// Holds the median with a probability of at least 95 %, however the values are distributed.
    Median,
    /// As documents of version 1 had it: a bootstrap, or a range of fewer than three.
    #[default]
    Unknown,
}

/// How far values are apart, or where their median is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// What the ends mean.
    #[serde(default)]
    pub kind: Kind,
    /// The probability with which an interval of the median holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f64>,
}

impl Interval {
    /// The smallest and the largest; 0 of nothing.
    pub fn range(values: &[f64]) -> Interval {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = if values.is_empty() { (0.0, 0.0) } else { (low, high) };
        Interval { low, high, kind: Kind::Range, coverage: None }
    }

    /// The interval of the median where there are enough values, else their range.
    pub fn of_median(values: &[f64]) -> Interval {
        Interval::of_median_covering(values, COVERAGE)
    }

    /// As [`Interval::of_median`], where it holds the median with at least that probability.
    pub fn of_median_covering(values: &[f64], coverage: f64) -> Interval {
        if values.len() < values_min(coverage) {
            return Interval::range(values);
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (cut, coverage) = order_statistic(sorted.len(), coverage);
        let (low, high) = (sorted[cut], sorted[sorted.len() - 1 - cut]);
        Interval { low, high, kind: Kind::Median, coverage: Some(coverage) }
    }

    /// What it is, for a heading or in brackets: `range`, `95 % interval`.
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::Range => "range",
            Kind::Median => "95 % interval",
            Kind::Unknown => "interval",
        }
    }
}

/// How many values an interval of the median takes to cover so much: all of so many are on one side of it with a
/// probability of 2·2⁻ⁿ.
pub fn values_min(coverage: f64) -> usize {
    (1.0 + (1.0 / (1.0 - coverage)).log2()).ceil() as usize
}

/// What each of so many intervals has to cover for all of them to hold together with [`COVERAGE`] (Bonferroni 1936).
pub fn coverage_of_each(count: usize) -> f64 {
    1.0 - (1.0 - COVERAGE) / count.max(1) as f64
}

/// How many values may be left away at either end, and what the interval covers then.
fn order_statistic(count: usize, wanted: f64) -> (usize, f64) {
    let mut probability = 0.5f64.powi(count as i32);
    if probability <= 0.0 {
        // More than a thousand values: the normal approximation of the binomial.
        let half = count as f64 / 2.0;
        let cut = half - deviations(wanted) * half.sqrt() / f64::sqrt(2.0);
        return (cut.floor() as usize, wanted);
    }
    let (mut tail, mut cut) = (probability, 0);
    loop {
        probability *= (count - cut) as f64 / (cut + 1) as f64;
        if 1.0 - 2.0 * (tail + probability) < wanted {
            return (cut, 1.0 - 2.0 * tail);
        }
        tail += probability;
        cut += 1;
    }
}

/// Standard deviations on either side of a normal mean that cover so much (Abramowitz and Stegun 26.2.23).
fn deviations(coverage: f64) -> f64 {
    let t = (-2.0 * ((1.0 - coverage) / 2.0).ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    t - above / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)))
}

/// The median; 0 of nothing.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// The mean; 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_more_values_than_can_be_counted_through_the_binomial_is_a_normal_one() {
        // The middle of 2000, less 1.96 standard deviations of 22.36.
        assert_eq!(order_statistic(2000, COVERAGE), (956, COVERAGE));
        let (counted, covers) = order_statistic(1000, COVERAGE);
        assert!(covers >= COVERAGE && (467..=470).contains(&counted), "{counted}");
    }
    use iolab_vocab::{Random, Seed};

    #[test]
    fn what_holds_together_needs_more_values_and_is_wider() {
        assert_eq!(values_min(COVERAGE), VALUES_MIN);
        let counts = [1, 2, 3, 4, 6, 7, 12].map(|count| values_min(coverage_of_each(count)));
        assert_eq!(counts, [6, 7, 7, 8, 8, 9, 9]);
        let values: Vec<f64> = (0..9).map(f64::from).collect();
        let together = Interval::of_median_covering(&values, coverage_of_each(4));
        let alone = Interval::of_median(&values);
        assert_eq!(
            ((alone.low, alone.high), (together.low, together.high)),
            ((1.0, 7.0), (0.0, 8.0))
        );
        assert_eq!(
            Interval::of_median_covering(&values[..7], coverage_of_each(4)).kind,
            Kind::Range
        );
    }

    #[test]
    fn fewer_than_six_values_have_a_range_that_is_called_so() {
        for count in 1..VALUES_MIN {
            let values: Vec<f64> = (0..count).map(|value| value as f64).collect();
            let interval = Interval::of_median(&values);
            assert_eq!((interval.low, interval.high), (0.0, (count - 1) as f64));
            assert_eq!((interval.name(), interval.coverage), ("range", None));
        }
        assert_eq!((median(&[]), mean(&[]), Interval::range(&[]).high), (0.0, 0.0, 0.0));
    }

    #[test]
    fn the_interval_covers_the_median_as_often_as_it_says_whatever_the_distribution() {
        let mut random = Random::new(Seed(11));
        let mut unit = || (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
        for (name, of, truth) in [
            ("uniform", (|u: f64| u) as fn(f64) -> f64, 0.5),
            ("exponential", |u: f64| -(1.0 - u).ln(), f64::ln(2.0)),
            ("heavy", |u: f64| (1.0 - u).powi(-2), 4.0),
        ] {
            for count in [6, 7, 9, 10, 25, 60] {
                let mut covered = 0;
                for _ in 0..2000 {
                    let values: Vec<f64> = (0..count).map(|_| of(unit())).collect();
                    let interval = Interval::of_median(&values);
                    covered += u32::from(interval.low <= truth && truth <= interval.high);
                }
                let share = f64::from(covered) / 2000.0;
                assert!(share >= COVERAGE - 0.015, "{name} of {count}: {share}");
            }
        }
        let (cut, coverage) = order_statistic(10, COVERAGE);
        assert_eq!((cut, (coverage * 1e4).round()), (1, 9785.0));
        assert!((450..490).contains(&order_statistic(1000, COVERAGE).0));
        assert!(order_statistic(2000, coverage_of_each(5)).0 < order_statistic(2000, COVERAGE).0);
    }
}
