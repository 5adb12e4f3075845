//! Medians and how sure they are.

use crate::statistics;
use iolab_vocab::{Random, Seed};

/// Resamples per interval; the third digit of a bound no longer moves beyond.
const RESAMPLES: usize = 4000;
/// What the interval covers.
const CONFIDENCE: f64 = 0.95;

/// A value between two bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// The value itself.
    pub middle: f64,
    /// Upper bound.
    pub high: f64,
}

impl Interval {
    /// The value with its bounds multiplied by `factor`, which must not be negative.
    pub fn scaled(self, factor: f64) -> Interval {
        let Interval { low, middle, high } = self;
        Interval { low: low * factor, middle: middle * factor, high: high * factor }
    }
}

/// The middle of the values, the mean of the two in the middle of an even number; NaN of none.
pub fn median(values: &[f64]) -> f64 {
    if values.is_empty() { f64::NAN } else { statistics::median(values) }
}

/// The median and its 95 % bootstrap interval. The same values give the same interval.
pub fn median_interval(values: &[f64]) -> Interval {
    let middle = median(values);
    if values.len() < 2 {
        return Interval { low: middle, middle, high: middle };
    }
    let mut random = Random::new(Seed(values.len() as u64));
    let mut medians: Vec<f64> =
        (0..RESAMPLES).map(|_| median(&resample(values, &mut random))).collect();
    medians.sort_by(f64::total_cmp);
    let tail = ((1.0 - CONFIDENCE) / 2.0 * RESAMPLES as f64) as usize;
    Interval { low: medians[tail], middle, high: medians[RESAMPLES - 1 - tail] }
}

/// How many times as long as `new` `old` takes, round by round, with its interval.
pub fn ratio_interval(old: &[f64], new: &[f64]) -> Interval {
    let ratios: Vec<f64> = old.iter().zip(new).map(|(old, new)| old / new).collect();
    median_interval(&ratios)
}

fn resample(values: &[f64], random: &mut Random) -> Vec<f64> {
    (0..values.len()).map(|_| values[random.below(values.len() as u64) as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_does_not_follow_an_outlier() {
        assert_eq!(median(&[1.0, 900.0, 2.0]), 2.0);
        assert_eq!(median(&[1.0, 2.0, 3.0, 900.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn an_interval_holds_its_median_and_narrows_with_more_values() {
        let spread = |count: u32| {
            let values: Vec<f64> = (0..count).map(|i| f64::from(i * 37 % 101)).collect();
            let interval = median_interval(&values);
            assert!(interval.low <= interval.middle && interval.middle <= interval.high);
            interval.high - interval.low
        };
        assert!(spread(101) < spread(11), "{} {}", spread(101), spread(11));
        let one = median_interval(&[7.0]);
        assert_eq!((one.low, one.middle, one.high), (7.0, 7.0, 7.0));
    }

    #[test]
    fn the_interval_covers_the_true_median_about_as_often_as_it_says() {
        let mut random = Random::new(Seed(5));
        let covered = (0..300).filter(|_| {
            let values: Vec<f64> = (0..25).map(|_| random.below(1000) as f64).collect();
            let interval = median_interval(&values);
            interval.low <= 500.0 && 500.0 <= interval.high
        });
        let share = covered.count() as f64 / 300.0;
        assert!((0.88..=1.0).contains(&share), "covers {share}");
    }

    #[test]
    fn drift_that_hits_both_sides_of_a_round_cancels() {
        let old: Vec<f64> = (1..=9).map(|round| 2.0 * f64::from(round)).collect();
        let new: Vec<f64> = (1..=9).map(f64::from).collect();
        let ratio = ratio_interval(&old, &new);
        assert_eq!((ratio.low, ratio.middle, ratio.high), (2.0, 2.0, 2.0));
    }
}
