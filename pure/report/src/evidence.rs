//! When a report may say that one thing is faster than another.
//!
//! Every statement has a null hypothesis: that its two sides were drawn from the same distribution,
//! whatever that is. It is printed only when three things hold:
//!
//! 1. **Chance does not explain it.** A rank-sum test (Wilcoxon 1945; over several sizes stratified
//!    after van Elteren 1960), exact, with ties. It knows nothing of the distribution, so heavy
//!    tails and several modes do not deceive it. All statements of one report are a family: together
//!    they are false in at most 1 of 100 reports (Bonferroni), where questions that so few values
//!    could never answer do not count (Tarone 1990).
//! 2. **It is worth a word**: more than 3 %.
//! 3. **Drift does not explain it.** Repetitions that get slower and slower, or wander, are not
//!    independent, and rank tests believe them. So the difference has to be larger than what each
//!    side changed from its first to its second half, extrapolated to the time between the sides, and
//!    than what the whole run wandered meanwhile.
//!
//! With few repetitions the answer is silence: of 4 against 4 values the most extreme order comes
//! about by chance in 1 of 35 cases. [`Evidence::enough`] tells silence from equality.

use crate::statistics::{COVERAGE, Interval, Kind, median};
use std::cell::RefCell;

/// The share of reports that may say something false.
pub const FALSE_REPORTS: f64 = 0.01;
/// Smaller differences (as the logarithm of a ratio) are not worth a word.
const NOTEWORTHY: f64 = 0.03;
/// How many times the drift within the sides a difference has to be.
const DRIFT_TIMES: f64 = 3.0;
/// Above this many values in a stratum the normal approximation does.
const EXACT_MAX: usize = 60;

/// One value with its place in the order of measuring, where that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Which value it was of all of the run.
    pub order: Option<u64>,
    /// Which run of several it is of; one follows the other in the order of measuring.
    pub run: usize,
    /// The value, above 0.
    pub value: f64,
    /// How far all values of its run wandered, as the logarithm of a ratio: [`wander`].
    pub wander: f64,
    /// Its like were measured in one stretch of the run: nothing is known of how they drifted in the rest.
    pub in_one_stretch: bool,
}

/// Two sets of values under the same conditions but for what is asked about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// The side whose ratio to the other is asked for.
    pub above: Vec<Sample>,
    /// The other side.
    pub below: Vec<Sample>,
}

/// What some blocks say about the ratio of their sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The median over blocks of the ratio of the medians.
    pub ratio: f64,
    /// The probability of an order as extreme, were there no difference.
    pub chance: f64,
    /// The smallest such probability that so many values can give.
    pub chance_min: f64,
    /// How much drift can explain, as the logarithm of a ratio.
    drift: f64,
}

impl Block {
    /// Values of two runs, or of several on two sides, each side in the order of measuring.
    pub fn of_values(above: &[f64], below: &[f64]) -> Block {
        let samples = |run: usize, values: &[f64]| {
            let sample = |(order, &value): (usize, &f64)| Sample {
                order: Some(order as u64),
                run,
                value,
                wander: 0.0,
                in_one_stretch: false,
            };
            values.iter().enumerate().map(sample).collect()
        };
        Block { above: samples(1, above), below: samples(0, below) }
    }
}

impl Difference {
    /// What the blocks say; `None` when a side of all blocks is empty, or a value is not positive.
    pub fn of(blocks: &[Block]) -> Option<Difference> {
        let used: Vec<&Block> =
            blocks.iter().filter(|b| !b.above.is_empty() && !b.below.is_empty()).collect();
        let positive = |s: &Sample| s.value > 0.0 && s.value.is_finite();
        if used.is_empty() || !used.iter().all(|b| b.above.iter().chain(&b.below).all(positive)) {
            return None;
        }
        let effects: Vec<f64> = used.iter().map(|b| effect(b)).collect();
        let values = used.iter().map(|b| b.above.len() + b.below.len()).sum();
        let drifts: Vec<f64> = used.iter().map(|b| drift(b, values)).collect();
        let (chance, chance_min) = rank_sum(&used);
        Some(Difference {
            ratio: median(&effects).exp(),
            chance,
            chance_min,
            drift: median(&drifts),
        })
    }

    fn stands(&self) -> bool {
        let effect = self.ratio.ln().abs();
        effect > NOTEWORTHY && effect > DRIFT_TIMES * self.drift
    }
}

fn logs(samples: &[Sample]) -> Vec<f64> {
    samples.iter().map(|sample| sample.value.ln()).collect()
}

fn effect(block: &Block) -> f64 {
    median(&logs(&block.above)) - median(&logs(&block.below))
}

/// What both sides changed from their first to their second half, extrapolated to the time between
/// them where one was measured after the other. Within a run drift may go on as it went. A new run begins
/// anew, and what still differs wandered, which goes with the root of time: with all of the time a scaling
/// by 2 would drown in noise of 5 % (of 5 sizes, three times each: told in half of all cases). What was
/// measured in one stretch of its run shows no drift of the rest, and cannot be held against another run.
fn drift(block: &Block, values: usize) -> f64 {
    let (above, below) = (Half::of(&block.above), Half::of(&block.below));
    let (Some(above), Some(below)) = (above, below) else { return f64::INFINITY };
    let apart = match (above.middle, below.middle) {
        (Some(one), Some(other)) => (one - other).abs() / above.apart.min(below.apart).max(1.0),
        _ => 1.0,
    };
    let run = |side: &[Sample]| side.first().map(|sample| sample.run);
    let between_runs = run(&block.above) != run(&block.below);
    if between_runs && block.above.iter().chain(&block.below).any(|sample| sample.in_one_stretch) {
        return f64::INFINITY;
    }
    let apart = if between_runs { apart.sqrt() } else { apart };
    let wandered = |side: &[Sample]| side.iter().map(|sample| sample.wander).fold(0.0, f64::max);
    let wandered = wandered(&block.above) + wandered(&block.below);
    let changed = apart.max(1.0) * (above.change + below.change);
    changed.max(wandered).max(likeness(block, values) / DRIFT_TIMES)
}

/// How much of the range of both sides has to be distrusted because neighbours in time are alike: nothing
/// when they are not, by von Neumann's ratio (1941) of squared steps to squared deviations, which is
/// 2 for independent values and goes to 0 for those that wander. Of few `values` in all the ratio tells
/// little, so that their range counts the more.
fn likeness(block: &Block, values: usize) -> f64 {
    let few = (14.0 / values.max(1) as f64).powi(2);
    let (mut steps, mut deviations, mut ranges) = (0.0, 0.0, 0.0);
    for side in [&block.above, &block.below] {
        let mut side = side.clone();
        side.sort_by_key(|sample| sample.order);
        let values = logs(&side);
        let middle = values.iter().sum::<f64>() / values.len() as f64;
        steps += values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum::<f64>();
        deviations += values.iter().map(|value| (value - middle).powi(2)).sum::<f64>();
        let range = Interval::range(&values);
        ranges += range.high - range.low;
    }
    match deviations > 0.0 {
        true => ranges * (few + (2.0 * deviations / steps.max(1e-12) - 1.0).max(0.0)),
        false => 0.0,
    }
}

/// How far the values of a run wandered while it went on: `residuals`, in the order of measuring, are
/// the logarithms of values over the median of their like. The range of the medians of its quarters;
/// of fewer than twenty values nothing is known.
pub fn wander(residuals: &[f64]) -> f64 {
    if residuals.len() < 20 {
        return 0.0;
    }
    let quarters: Vec<f64> = residuals.chunks(residuals.len().div_ceil(4)).map(median).collect();
    let range = Interval::range(&quarters);
    range.high - range.low
}

/// The two halves of a side, in the order of measuring.
struct Half {
    change: f64,
    /// Between the middles of the halves, in values measured.
    apart: f64,
    middle: Option<f64>,
}

impl Half {
    fn of(samples: &[Sample]) -> Option<Half> {
        let mut samples = samples.to_vec();
        samples.sort_by_key(|sample| sample.order);
        let half = samples.len() / 2;
        if half == 0 {
            return None;
        }
        let (first, second) = (&samples[..half], &samples[samples.len() - half..]);
        let logs = logs(&samples);
        let order = |samples: &[Sample]| -> Option<f64> {
            let all: Option<Vec<f64>> =
                samples.iter().map(|sample| sample.order.map(|order| order as f64)).collect();
            all.map(|all| all.iter().sum::<f64>() / all.len() as f64)
        };
        Some(Half {
            change: halves_change(&logs),
            apart: order(second).zip(order(first)).map_or(1.0, |(second, first)| second - first),
            middle: order(&samples),
        })
    }
}

/// Two-sided probability of the sum of ranks over all blocks, and the smallest there can be.
fn rank_sum(blocks: &[&Block]) -> (f64, f64) {
    let mut ranked: Vec<(Vec<usize>, usize, usize)> = blocks.iter().map(|b| ranks(b)).collect();
    if ranked.iter().any(|(ranks, ..)| ranks.len() > EXACT_MAX) {
        let sum = ranked.iter().map(|(_, _, sum)| sum).sum();
        return approximate(&ranked, sum);
    }
    if ranked.iter().all(|(ranks, ..)| ranks.iter().all(|rank| rank.is_multiple_of(2))) {
        // Without ties there are no halves of ranks.
        for (ranks, _, sum) in &mut ranked {
            ranks.iter_mut().for_each(|rank| *rank /= 2);
            *sum /= 2;
        }
    }
    let (mut whole, mut place) = (vec![1.0], 0);
    for (ranks, count, sum) in &ranked {
        let least: usize = ranks[..*count].iter().sum();
        let most: usize = ranks[ranks.len() - count..].iter().sum();
        whole = convolved(&whole, &sums(ranks, *count)[least..=most]);
        place += sum - least;
    }
    let (below, above): (f64, f64) = (whole[..=place].iter().sum(), whole[place..].iter().sum());
    let end = whole[0].min(whole[whole.len() - 1]);
    ((2.0 * below.min(above)).min(1.0), (2.0 * end).min(1.0))
}

/// Twice the rank of each value, how many are above, and the sum of theirs.
fn ranks(block: &Block) -> (Vec<usize>, usize, usize) {
    let mut all: Vec<(f64, bool)> = (block.above.iter().map(|s| (s.value, true)))
        .chain(block.below.iter().map(|s| (s.value, false)))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut ranks, mut sum, mut from) = (Vec::with_capacity(all.len()), 0, 0);
    while from < all.len() {
        let to = from + all[from..].iter().take_while(|one| one.0 == all[from].0).count();
        // Ties share the middle of the ranks from + 1 ..= to.
        let twice = from + 1 + to;
        for one in &all[from..to] {
            ranks.push(twice);
            sum += if one.1 { twice } else { 0 };
        }
        from = to;
    }
    (ranks, block.above.len(), sum)
}

/// The distribution of the sum of `count` of these, each choice as likely.
fn sums(ranks: &[usize], count: usize) -> Vec<f64> {
    let most: usize = ranks[ranks.len() - count..].iter().sum();
    let mut ways = vec![vec![0.0; most + 1]; count + 1];
    ways[0][0] = 1.0;
    for (seen, &rank) in ranks.iter().enumerate() {
        for chosen in (0..count.min(seen + 1)).rev() {
            let (from, to) = ways.split_at_mut(chosen + 1);
            let (from, to) = (&from[chosen], &mut to[0]);
            for (way, target) in from.iter().zip(to.iter_mut().skip(rank)) {
                *target += way;
            }
        }
    }
    let all: f64 = ways[count].iter().sum();
    ways[count].iter().map(|way| way / all).collect()
}

fn convolved(one: &[f64], other: &[f64]) -> Vec<f64> {
    let mut whole = vec![0.0; one.len() + other.len() - 1];
    for (i, p) in one.iter().enumerate().filter(|(_, p)| **p > 0.0) {
        for (j, q) in other.iter().enumerate() {
            whole[i + j] += p * q;
        }
    }
    whole
}

fn approximate(ranked: &[(Vec<usize>, usize, usize)], sum: usize) -> (f64, f64) {
    let (mut middle, mut variance, mut span) = (0.0, 0.0, 0.0);
    for (ranks, count, _) in ranked {
        let (all, count) = (ranks.len() as f64, *count as f64);
        let mean = ranks.iter().sum::<usize>() as f64 / all;
        let spread: f64 = ranks.iter().map(|rank| (*rank as f64 - mean).powi(2)).sum();
        middle += count * mean;
        variance += count * (all - count) / (all * (all - 1.0).max(1.0)) * spread;
        span += count * (all - count);
    }
    let tail = |distance: f64| 2.0 * normal_tail(distance / variance.sqrt().max(1e-9));
    (tail(((sum as f64 - middle).abs() - 1.0).max(0.0)).min(1.0), tail(span).min(1.0))
}

/// The share of a normal distribution above `z` (Abramowitz and Stegun 26.2.17).
fn normal_tail(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let sum = [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_530]
        .iter()
        .fold(0.0, |sum, factor| (sum + factor) * t);
    (sum * (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()).clamp(0.0, 0.5)
}

/// The interval of the ratio of two sides: where the pairs of values lie that a rank-sum test at 5 %
/// would not tell apart (Moses 1953), if there are enough values, else the range of all pairs.
pub fn ratio_interval(block: &Block) -> Interval {
    let (above, below) = (logs(&block.above), logs(&block.below));
    let mut pairs: Vec<f64> =
        above.iter().flat_map(|a| below.iter().map(move |b| (a - b).exp())).collect();
    pairs.sort_by(f64::total_cmp);
    let Some((cut, coverage)) = pairs_left_away(above.len(), below.len()) else {
        return Interval::range(&pairs);
    };
    let (low, high) = (pairs[cut], pairs[pairs.len() - 1 - cut]);
    Interval { low, high, kind: Kind::Median, coverage: Some(coverage) }
}

/// How many of all pairs may be left away at either end of an interval of 95 %.
fn pairs_left_away(above: usize, below: usize) -> Option<(usize, f64)> {
    let all = above + below;
    if all > EXACT_MAX {
        let (a, b) = (above as f64, below as f64);
        let cut = a * b / 2.0 - 1.96 * (a * b * (a + b + 1.0) / 12.0).sqrt();
        return (cut >= 0.0).then_some((cut as usize, COVERAGE));
    }
    let ranks: Vec<usize> = (1..=all).collect();
    let (sums, least) = (sums(&ranks, above), above * (above + 1) / 2);
    let (mut tail, mut cut, mut covered) = (0.0, None, 1.0);
    for (count, chance) in sums[least.min(sums.len())..].iter().enumerate() {
        tail += chance;
        if 1.0 - 2.0 * tail < COVERAGE {
            break;
        }
        (cut, covered) = (Some(count), 1.0 - 2.0 * tail);
    }
    cut.map(|cut| (cut, covered))
}

/// Wilcoxon's signed ranks: the two-sided probability of values as far to one side of 0, were they
/// as often as far to the other, and the smallest that so many can give. Zeros say nothing.
pub fn signed_rank(values: &[f64]) -> (f64, f64) {
    let mut sizes: Vec<(f64, bool)> =
        values.iter().filter(|v| **v != 0.0).map(|v| (v.abs(), *v > 0.0)).collect();
    sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut ranks, mut sum, mut from) = (Vec::new(), 0, 0);
    while from < sizes.len() {
        let to = from + sizes[from..].iter().take_while(|one| one.0 == sizes[from].0).count();
        for one in &sizes[from..to] {
            ranks.push(from + 1 + to);
            sum += if one.1 { from + 1 + to } else { 0 };
        }
        from = to;
    }
    let least = (2.0 * 0.5f64.powi(ranks.len() as i32)).min(1.0);
    if ranks.len() > 4 * EXACT_MAX {
        let squares: f64 = ranks.iter().map(|rank| (*rank as f64).powi(2)).sum();
        let middle = ranks.iter().sum::<usize>() as f64 / 2.0;
        let distance = ((sum as f64 - middle).abs() - 1.0).max(0.0);
        return ((2.0 * normal_tail(distance / (squares / 4.0).sqrt())).min(1.0), least);
    }
    let mut chances = vec![1.0];
    for rank in ranks {
        let mut step = vec![0.0; rank + 1];
        (step[0], step[rank]) = (0.5, 0.5);
        chances = convolved(&step, &chances);
    }
    let (below, above): (f64, f64) = (chances[..=sum].iter().sum(), chances[sum..].iter().sum());
    ((2.0 * below.min(above)).min(1.0), least)
}

/// By how much the middle of the second half of the values differs from that of the first.
pub fn halves_change(values: &[f64]) -> f64 {
    let half = values.len() / 2;
    match half {
        0 => f64::INFINITY,
        _ => (median(&values[values.len() - half..]) - median(&values[..half])).abs(),
    }
}

/// The sign test: how likely are `hits` or more of `tries` when each has this probability.
pub fn binomial_tail(tries: usize, hits: usize, probability: f64) -> f64 {
    let term = |k: usize| {
        let ways: f64 = (0..k).map(|i| ((tries - i) as f64 / (i + 1) as f64).ln()).sum();
        (ways + k as f64 * probability.ln() + (tries - k) as f64 * (1.0 - probability).ln()).exp()
    };
    (hits..=tries).map(term).sum::<f64>().min(1.0)
}

/// All questions of one report. It is asked everything twice: first it only learns what there is
/// to be asked, and says no; then it answers.
#[derive(Debug, Default)]
pub struct Evidence {
    /// The smallest probability that each question could come to.
    asked: RefCell<Vec<f64>>,
    /// What a question has to stay below; none while they are only counted.
    level: Option<f64>,
}

impl Evidence {
    /// Makes a report: `make` asks all its questions, whatever the answers are.
    pub fn report<T>(make: impl Fn(&Evidence) -> T) -> T {
        let counting = Evidence::default();
        make(&counting);
        let level = level(&counting.asked.into_inner());
        make(&Evidence { asked: RefCell::default(), level: Some(level) })
    }

    /// Whether the difference may be stated.
    pub fn shows(&self, difference: &Difference) -> bool {
        let shown = self.unlikely(difference.chance, difference.chance_min);
        shown && difference.stands()
    }

    /// Whether something may be stated that comes about by chance with this probability.
    pub fn unlikely(&self, chance: f64, chance_min: f64) -> bool {
        match self.level {
            Some(level) => chance <= level,
            None => {
                self.asked.borrow_mut().push(chance_min);
                false
            }
        }
    }

    /// Whether there are enough values to show anything.
    pub fn enough(&self, difference: &Difference) -> bool {
        self.could(difference.chance_min)
    }

    /// The same of a question whose smallest probability is known.
    pub fn could(&self, chance_min: f64) -> bool {
        self.level.is_some_and(|level| chance_min <= level)
    }
}

/// The level of a single question: the family's over how many of them could reach it.
fn level(asked: &[f64]) -> f64 {
    let mut count = 1;
    loop {
        let level = FALSE_REPORTS / count as f64;
        let able = asked.iter().filter(|least| **least <= level).count();
        if able <= count {
            return level;
        }
        count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(above: &[f64], below: &[f64]) -> Block {
        let sample = Sample { order: None, run: 0, value: 0.0, wander: 0.0, in_one_stretch: false };
        let side = |values: &[f64]| -> Vec<Sample> {
            values.iter().map(|&value| Sample { value, ..sample }).collect()
        };
        Block { above: side(above), below: side(below) }
    }

    #[test]
    fn the_chance_of_complete_separation_is_that_of_counting() {
        let apart = |n: usize| {
            let (low, high): (Vec<f64>, Vec<f64>) =
                (0..n).map(|i| (1.0 + i as f64 / 1e3, 9.0 + i as f64 / 1e3)).unzip();
            Difference::of(&[block(&high, &low)]).expect("values")
        };
        for (n, ways) in [(1, 2.0), (3, 20.0), (5, 252.0), (10, 184_756.0)] {
            let found = apart(n);
            assert!((found.chance * ways / 2.0 - 1.0).abs() < 1e-9, "{n}: {found:?}");
            assert_eq!(found.chance, found.chance_min);
        }
        let many = apart(100);
        assert!(many.chance < 1e-12 && (many.ratio - 8.6).abs() < 0.5, "{many:?}");
        assert_eq!(Difference::of(&[block(&[1.0], &[])]), None);
        assert_eq!(Difference::of(&[block(&[0.0], &[1.0])]), None);
    }

    #[test]
    fn many_values_are_judged_by_the_normal_distribution() {
        // Ten of twenty ranks, doubled: the middle is 210, the deviation 2 * sqrt(10 * 10 * 21 / 12).
        let ranks: Vec<usize> = (1..=20).map(|rank| 2 * rank).collect();
        let of = |sum| approximate(&[(ranks.clone(), 10, sum)], sum);
        let (chance, least) = of(262);
        // 51 and 100 over 26.458 are 1.9276 and 3.7796 deviations.
        assert!((chance - 0.0539).abs() < 1e-4, "{chance}");
        assert!((least - 0.000_157).abs() < 1e-6, "{least}");
        assert_eq!(of(158).0, chance, "as far on the other side");
        assert!((of(210).0 - 1.0).abs() < 1e-6, "in the middle");
        // Twice the same block: the middle and the variance double.
        let (both, _) = approximate(&[(ranks.clone(), 10, 262), (ranks.clone(), 10, 262)], 524);
        assert!((both - 0.0059).abs() < 1e-4, "103 over 37.417: {both}");
    }

    #[test]
    fn an_interval_of_many_pairs_leaves_away_what_a_test_would_not() {
        // 1250 - 1.96 * sqrt(50 * 50 * 101 / 12).
        assert_eq!(pairs_left_away(50, 50), Some((965, COVERAGE)));
        // 450 - 1.96 * sqrt(20 * 45 * 66 / 12).
        assert_eq!(pairs_left_away(20, 45), Some((312, COVERAGE)));
        // Of 252 orders of five and five, 1, 1 and 2 have the smallest sums: two at either end.
        let (cut, covers) = pairs_left_away(5, 5).expect("values enough");
        assert_eq!(cut, 2);
        assert!((covers - (1.0 - 2.0 * 4.0 / 252.0)).abs() < 1e-9, "{covers}");
        assert_eq!(pairs_left_away(3, 3), None, "one order of twenty at either end is too much");
    }

    #[test]
    fn ties_are_no_difference_and_blocks_add_up() {
        let same = Difference::of(&[block(&[5.0; 10], &[5.0; 10])]).expect("values");
        assert_eq!((same.chance, same.ratio), (1.0, 1.0));
        // Two against two says nothing, six times over it does.
        let pair = block(&[2.0, 2.1], &[1.0, 1.1]);
        let once = Difference::of(std::slice::from_ref(&pair)).expect("values");
        let often = Difference::of(&vec![pair; 6]).expect("values");
        assert!((once.chance - 1.0 / 3.0).abs() < 1e-9 && often.chance < 1e-4);
        assert!((often.chance * 6f64.powi(6) / 2.0 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn questions_that_could_never_be_answered_do_not_count() {
        assert_eq!(level(&[]), 0.01);
        assert_eq!(level(&[0.3; 100]), 0.01);
        assert_eq!(level(&[1e-5; 20]), 0.01 / 20.0);
        // The one of the many that could reach 1 % on its own cannot in a family of two.
        assert_eq!(level(&[0.0079, 0.3]), 0.01);
        assert_eq!(level(&[0.0079, 0.0079]), 0.005);
    }

    #[test]
    fn binomial_tails_are_those_of_coins() {
        assert!((binomial_tail(10, 10, 0.5) - 0.5f64.powi(10)).abs() < 1e-12);
        assert!((binomial_tail(3, 0, 0.2) - 1.0).abs() < 1e-12);
        assert!((normal_tail(1.96) - 0.025).abs() < 1e-4);
    }
}
