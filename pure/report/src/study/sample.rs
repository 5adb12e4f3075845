//! Medians and how sure they are.

use crate::statistics::{self, Kind};

/// A median between two bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// The median itself.
    pub middle: f64,
    /// Upper bound.
    pub high: f64,
    /// What the bounds are: an interval of order statistics, or of too few values for one their range.
    pub kind: Kind,
}

impl Interval {
    /// The value with its bounds multiplied by `factor`, which must not be negative.
    pub fn scaled(self, factor: f64) -> Interval {
        let Interval { low, middle, high, kind } = self;
        Interval { low: low * factor, middle: middle * factor, high: high * factor, kind }
    }
}

/// The middle of the values, the mean of the two in the middle of an even number; NaN of none.
pub fn median(values: &[f64]) -> f64 {
    if values.is_empty() { f64::NAN } else { statistics::median(values) }
}

/// The median and its 95 % interval.
pub fn median_interval(values: &[f64]) -> Interval {
    covering(values, statistics::COVERAGE)
}

/// How many times as long as `new` `old` takes, round by round, with the interval that holds together with
/// those of `compared` such ratios in all.
pub fn ratio_interval(old: &[f64], new: &[f64], compared: usize) -> Interval {
    let ratios: Vec<f64> = old.iter().zip(new).map(|(old, new)| old / new).collect();
    covering(&ratios, statistics::coverage_of_each(compared))
}

fn covering(values: &[f64], coverage: f64) -> Interval {
    let middle = median(values);
    let bounds = match values {
        [] => {
            statistics::Interval { low: middle, high: middle, ..statistics::Interval::range(&[]) }
        }
        _ => statistics::Interval::of_median_covering(values, coverage),
    };
    Interval { low: bounds.low, middle, high: bounds.high, kind: bounds.kind }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_vocab::{Random, Seed};

    #[test]
    fn the_median_does_not_follow_an_outlier() {
        assert_eq!(median(&[1.0, 900.0, 2.0]), 2.0);
        assert_eq!(median(&[1.0, 2.0, 3.0, 900.0]), 2.5);
        assert!(median(&[]).is_nan() && median_interval(&[]).high.is_nan());
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
        assert_eq!((one.low, one.middle, one.high, one.kind), (7.0, 7.0, 7.0, Kind::Range));
    }

    /// Of programs whose time nothing changes, at most one study of twenty says that something does.
    #[test]
    fn ratios_of_noise_are_held_to_be_apart_from_one_in_at_most_a_twentieth_of_studies() {
        let mut random = Random::new(Seed(5));
        for (rounds, compared) in [(6, 1), (7, 3), (8, 6), (9, 4), (12, 8), (25, 5)] {
            let mut runs = || -> Vec<f64> {
                (0..rounds).map(|_| 1.0 + random.below(1000) as f64 / 1000.0).collect()
            };
            let studies = 1000;
            let wrong = (0..studies).filter(|_| {
                let plain = runs();
                (0..compared).any(|_| {
                    let ratio = ratio_interval(&plain, &runs(), compared);
                    assert_eq!(ratio.kind, Kind::Median);
                    ratio.low > 1.0 || ratio.high < 1.0
                })
            });
            let share = wrong.count() as f64 / f64::from(studies);
            assert!(share <= 0.065, "{rounds} rounds of {compared}: {share}");
        }
    }

    #[test]
    fn drift_that_hits_both_sides_of_a_round_cancels() {
        let old: Vec<f64> = (1..=9).map(|round| 2.0 * f64::from(round)).collect();
        let new: Vec<f64> = (1..=9).map(f64::from).collect();
        let ratio = ratio_interval(&old, &new, 1);
        assert_eq!((ratio.low, ratio.middle, ratio.high), (2.0, 2.0, 2.0));
    }
}
