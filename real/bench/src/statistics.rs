//! Few repetitions, honestly: medians with bootstrap intervals.

use iolab_vocab::{Random, Seed};
use serde::{Deserialize, Serialize};

/// A 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
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
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The smallest and the largest; 0 of nothing.
pub(crate) fn range(values: &[f64]) -> Interval {
    if values.is_empty() {
        return Interval { low: 0.0, high: 0.0 };
    }
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Interval { low, high }
}

/// The 95 % interval of the median by the percentile bootstrap (Efron 1979), with a fixed seed,
/// so that the same samples always give the same interval. Below 3 values it is their range.
pub fn interval_of_median(values: &[f64]) -> Interval {
    bootstrap(values, median)
}

/// The same of the mean.
pub(crate) fn interval_of_mean(values: &[f64]) -> Interval {
    bootstrap(values, mean)
}

fn bootstrap(values: &[f64], statistic: fn(&[f64]) -> f64) -> Interval {
    const DRAWS: usize = 2000;
    if values.len() < 3 {
        return range(values);
    }
    let mut random = Random::new(Seed(1));
    let mut draw = || {
        let pick = |random: &mut Random| values[random.below(values.len() as u64) as usize];
        let sample: Vec<f64> = values.iter().map(|_| pick(&mut random)).collect();
        statistic(&sample)
    };
    let mut drawn: Vec<f64> = (0..DRAWS).map(|_| draw()).collect();
    drawn.sort_by(f64::total_cmp);
    Interval { low: drawn[DRAWS / 40], high: drawn[DRAWS - 1 - DRAWS / 40] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_the_median_and_shrinks_with_agreement() {
        let spread = [8.0, 9.0, 10.0, 11.0, 12.0, 30.0, 10.5];
        let tight = [10.0, 10.1, 9.9, 10.0, 10.05, 9.95, 10.0];
        for values in [spread, tight] {
            let interval = interval_of_median(&values);
            assert!(interval.low <= median(&values) && median(&values) <= interval.high);
        }
        let width = |values| {
            let interval = interval_of_median(values);
            interval.high - interval.low
        };
        assert!(width(&tight) < width(&spread));
        let mean_interval = interval_of_mean(&spread);
        assert!(mean_interval.low < mean(&spread) && mean(&spread) < mean_interval.high);
        assert_eq!((median(&[]), mean(&[])), (0.0, 0.0));
        assert_eq!(interval_of_median(&[4.0, 2.0]), Interval { low: 2.0, high: 4.0 });
    }
}
