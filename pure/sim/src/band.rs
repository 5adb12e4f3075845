//! Bands: an answer as the median of several orders of simultaneous events, with its range.
//!
//! In a symmetric cluster many events happen at once, and their order decides results; any single
//! order may be an outlier. So an answer rests on [`TIE_SEEDS`] runs that shuffle what is
//! simultaneous, each by its own tie seed, unless one run is asked for. Two answers differ only
//! where their bands are disjoint.

use crate::cluster::Order;
use iolab_vocab::Seed;

/// So many runs make an answer. Where one order in five comes out far from the others, as in
/// server-directed reads of 512 KiB, the median of nine is one of these in 2 % of cases (of five in
/// 6 %: seeds 1 to 5 gave 3.30 s where the middle is 4.40 s), and lies outside a band of twenty
/// other orders in 1 case of 470. Bands of two things that are alike lie apart in 1 of 24,310 cases.
/// Odd, so that the median is a run that was made.
pub const TIE_SEEDS: u64 = 9;

/// Least, median and greatest seconds over tie seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// How many runs.
    pub count: u64,
    /// The fastest.
    pub low: f64,
    /// The one in the middle.
    pub median: f64,
    /// The slowest.
    pub high: f64,
}

impl Band {
    /// Of these results, if there are any.
    pub fn of(seconds: &[f64]) -> Option<Band> {
        let mut sorted = seconds.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        let median = sorted[(sorted.len() - 1) / 2];
        Some(Band { count: sorted.len() as u64, low, median, high })
    }

    /// Whether a value lies inside.
    pub fn holds(&self, seconds: f64) -> bool {
        (self.low..=self.high).contains(&seconds)
    }

    /// Whether every run came to the same.
    pub fn is_one_value(&self) -> bool {
        self.low == self.high
    }

    /// Whether all of this one is below all of the other.
    pub fn is_below(&self, other: &Band) -> bool {
        self.high < other.low
    }

    /// How many times the other's time is this one's: median by median, and the least and greatest
    /// that runs of both bands can make of it.
    pub fn ratio(&self, other: &Band) -> Band {
        let over = |seconds: f64, other: f64| seconds / other.max(1e-9);
        let (low, high) = (over(self.low, other.high), over(self.high, other.low));
        let count = self.count.min(other.count);
        Band { count, low, median: over(self.median, other.median), high }
    }
}

/// Bands of so many runs each, of two things that are alike, lie apart in one of this many cases:
/// `1` for single runs, whose bands are points.
pub fn apart_by_chance_in(runs: u64) -> f64 {
    let orders = (1..=runs).map(|at| (runs + at) as f64 / at as f64);
    orders.product::<f64>() / 2.0
}

/// Place of the run that is the median, the first of equals.
pub fn median_place(seconds: &[f64]) -> Option<usize> {
    let median = Band::of(seconds)?.median;
    seconds.iter().position(|one| *one == median)
}

/// Makes one run after the other and keeps the median one, with the band of all.
///
/// # Errors
/// The first run's that fails.
///
/// # Panics
/// Without a seed there is no answer.
pub fn over_ties<T, E>(
    seeds: &[Seed],
    mut run: impl FnMut(Seed) -> Result<T, E>,
    seconds: impl Fn(&T) -> f64,
) -> Result<(T, Band), E> {
    let mut runs = Vec::with_capacity(seeds.len());
    for &seed in seeds {
        runs.push(run(seed)?);
    }
    let all: Vec<f64> = runs.iter().map(seconds).collect();
    let (Some(band), Some(place)) = (Band::of(&all), median_place(&all)) else {
        panic!("an answer rests on one run at least");
    };
    Ok((runs.swap_remove(place), band))
}

/// The tie seeds of the runs that an answer rests on: those of a band of `wanted` runs, one as
/// `tie_seed` names it, or what is usual. The published order is one order and no band by itself;
/// one run without a seed is the order as it stands.
pub fn tie_seeds(order: Order, wanted: Option<u64>, tie_seed: Option<Seed>) -> Vec<Seed> {
    let usual = if order == Order::Published { 1 } else { TIE_SEEDS };
    match (wanted.unwrap_or(usual), tie_seed) {
        (_, Some(seed)) => vec![seed],
        (0 | 1, None) => vec![Seed(0)],
        (count, None) => (1..=count).map(Seed).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_a_run_that_was_made() {
        let band = Band::of(&[3.0, 1.0, 9.0, 2.0, 4.0]).unwrap();
        assert_eq!((band.low, band.median, band.high, band.count), (1.0, 3.0, 9.0, 5));
        assert_eq!(Band::of(&[2.0, 1.0]).unwrap().median, 1.0);
        assert_eq!(median_place(&[3.0, 1.0, 9.0, 3.0, 4.0]), Some(0));
        assert!(Band::of(&[]).is_none() && Band::of(&[7.0]).unwrap().is_one_value());
    }

    #[test]
    fn the_more_runs_the_rarer_bands_lie_apart_by_chance() {
        let of = |runs| apart_by_chance_in(runs).round() as u64;
        assert_eq!([of(1), of(2), of(3), of(5), of(TIE_SEEDS)], [1, 3, 10, 126, 24_310]);
    }

    #[test]
    fn a_ratio_reaches_as_far_as_both_bands_allow() {
        let (slow, fast) = (Band::of(&[8.0, 10.0, 12.0]).unwrap(), Band::of(&[4.0, 5.0]).unwrap());
        let ratio = slow.ratio(&fast);
        assert_eq!((ratio.low, ratio.median, ratio.high), (1.6, 2.5, 3.0));
        assert!(fast.is_below(&slow) && !slow.is_below(&fast) && !slow.is_below(&slow));
    }

    #[test]
    fn an_answer_rests_on_a_band_unless_one_run_is_asked_for() {
        let seeds = |order, wanted, tie| tie_seeds(order, wanted, tie).len() as u64;
        assert_eq!(seeds(Order::Documented, None, None), TIE_SEEDS);
        assert_eq!(tie_seeds(Order::Published, None, None), [Seed(0)]);
        assert_eq!(tie_seeds(Order::Documented, Some(1), None), [Seed(0)]);
        assert_eq!(tie_seeds(Order::Documented, None, Some(Seed(7))), [Seed(7)]);
        assert_eq!(seeds(Order::Published, Some(20), None), 20);
    }
}
