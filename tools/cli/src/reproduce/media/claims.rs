//! What the evaluation concluded from its disks, per direction, judged from bands.
//!
//! A case speaks for a piece of advice only where the bands of both ways to do it are disjoint, and
//! a factor worth the trouble lies between their medians; anything else is no difference.

use super::study::{Pair, Study};
use iolab_sim::band::Band;
use iolab_sim::evaluation::{Case, Operation, Test};

/// How a conclusion fares on one medium, in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Side {
    /// How many times faster what it recommends is: the geometric mean over cases, of medians.
    pub(crate) factor: f64,
    /// Cases it is about.
    pub(crate) count: u32,
    /// Of these, where it helps.
    pub(crate) helps: u32,
    /// Where it harms.
    pub(crate) harms: u32,
}

/// How a conclusion fares on both media.
pub(crate) struct Verdict {
    pub(crate) claim: &'static str,
    pub(crate) operation: Operation,
    pub(crate) hdd: Side,
    pub(crate) other: Side,
}

/// Below this a factor is no reason to do anything.
const WORTH: f64 = 1.1;

/// Whether doing it the fast way is faster by a factor that matters, with disjoint bands.
pub(crate) fn helps(slow: &Band, fast: &Band) -> bool {
    fast.is_below(slow) && slow.median / fast.median >= WORTH
}

impl Side {
    /// Of pairs of bands: what a conclusion advises against, and for.
    fn of(pairs: &[(Band, Band)]) -> Option<Side> {
        let count = |is_it: &dyn Fn(&Band, &Band) -> bool| {
            pairs.iter().filter(|(slow, fast)| is_it(slow, fast)).count() as u32
        };
        Some(Side {
            factor: mean(pairs.iter().map(|(slow, fast)| slow.median / fast.median))?,
            count: pairs.len() as u32,
            helps: count(&|slow, fast| helps(slow, fast)),
            harms: count(&|slow, fast| helps(fast, slow)),
        })
    }

    /// `3.12x` with what stands against a plain answer.
    pub(crate) fn words(&self) -> String {
        let &Side { factor, count, helps, harms } = self;
        match (helps, harms) {
            (0, 0) => format!("{factor:.2}x, no difference"),
            (all, 0) if all == count => format!("{factor:.2}x"),
            (0, all) if all == count => format!("{factor:.2}x"),
            _ => format!("{factor:.2}x, +{helps} -{harms} of {count}"),
        }
    }

    fn effect(&self) -> Effect {
        match (self.helps, self.harms) {
            (0, 0) => Effect::None,
            (all, 0) if all == self.count => Effect::Helps,
            (0, all) if all == self.count => Effect::Harms,
            _ => Effect::Depends,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Helps,
    Harms,
    None,
    Depends,
}

impl Verdict {
    pub(crate) fn word(&self) -> &'static str {
        use Effect::{Depends, Harms, Helps, None};
        match (self.hdd.effect(), self.other.effect()) {
            (Helps, Helps) if self.other.factor >= self.hdd.factor * 0.8 => "survives",
            (Helps, Helps) => "survives, weaker",
            (Helps, Harms) => "reversed",
            (Helps, None) => "gone",
            (None, Helps) => "new",
            (Harms, Helps) => "harmed, now helps",
            (Harms, None) => "harmed, no difference now",
            (None, Harms) => "harms now",
            (Harms, Harms) => "harms on both",
            (None, None) => "no difference on either",
            (Depends, _) | (_, Depends) => "depends on the case",
        }
    }
}

/// Picks the cases that do what a conclusion advises against, and the one to hold against each.
struct Claim {
    text: &'static str,
    is_slow: fn(&Case) -> bool,
    fast: fn(Case) -> Case,
}

fn with_test(case: Case, test: Test) -> Case {
    Case { test, ..case }
}

const ALL: u64 = u64::MAX;

const CLAIMS: &[Claim] = &[
    Claim {
        text: "two-phase instead of single blocks, without cache",
        is_slow: |case| plain(case, Test::Individual(1)),
        fast: |case| with_test(case, Test::Collective("two-phase")),
    },
    Claim {
        text: "two-phase instead of one call for all blocks, without cache",
        is_slow: |case| plain(case, Test::Individual(ALL)),
        fast: |case| with_test(case, Test::Collective("two-phase")),
    },
    Claim {
        text: "two-phase instead of one call for all blocks, server-directed",
        is_slow: |case| case.test == Test::Individual(ALL) && case.cache == "server-directed",
        fast: |case| with_test(case, Test::Collective("two-phase")),
    },
    Claim {
        text: "interleaved instead of plain two-phase",
        is_slow: |case| case.test == Test::Collective("two-phase"),
        fast: |case| with_test(case, Test::Collective("interleaved-two-phase")),
    },
    Claim {
        text: "write-behind instead of no cache",
        is_slow: |case| none_of_many(case) && case.operation == Operation::Write,
        fast: |case| Case { cache: "write-behind", ..case },
    },
    Claim {
        text: "aggregation instead of write-behind",
        is_slow: |case| {
            is_individual(case)
                && case.cache == "write-behind"
                && case.operation == Operation::Write
        },
        fast: |case| Case { cache: "aggregation", ..case },
    },
    Claim {
        text: "aggregation instead of no cache, many blocks per call",
        is_slow: |case| none_of_many(case) && case.operation == Operation::Read,
        fast: |case| Case { cache: "aggregation", ..case },
    },
    Claim {
        text: "server-directed instead of aggregation: random blocks",
        is_slow: |case| case.test == Test::Random && case.cache == "aggregation",
        fast: |case| Case { cache: "server-directed", ..case },
    },
    Claim {
        text: "a hundred blocks per call instead of one, without cache",
        is_slow: |case| plain(case, Test::Individual(1)),
        fast: |case| with_test(case, Test::Individual(100)),
    },
    Claim {
        text: "all blocks per call instead of a hundred, server-directed",
        is_slow: |case| case.test == Test::Individual(100) && case.cache == "server-directed",
        fast: |case| with_test(case, Test::Individual(ALL)),
    },
    Claim {
        text: "blocks of 512 KiB instead of 5 KiB, one per call, without cache",
        is_slow: |case| plain(case, Test::Individual(1)) && case.block_bytes == 5120,
        fast: |case| Case { block_bytes: 524_288, ..case },
    },
    Claim {
        text: "accessing in order instead of at random, without cache",
        is_slow: |case| plain(case, Test::Random),
        fast: |case| with_test(case, Test::Individual(1)),
    },
];

fn plain(case: &Case, test: Test) -> bool {
    case.test == test && case.cache == "none"
}

fn is_individual(case: &Case) -> bool {
    matches!(case.test, Test::Individual(_))
}

fn none_of_many(case: &Case) -> bool {
    matches!(case.test, Test::Individual(blocks) if blocks > 1) && case.cache == "none"
}

fn find(study: &Study, case: Case) -> Option<&Pair> {
    study.pairs.iter().find(|pair| pair.case == case)
}

/// The geometric mean of many factors.
pub(crate) fn mean(factors: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = factors.fold((0.0, 0), |(sum, count), one| (sum + one.ln(), count + 1));
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

/// Every conclusion that the cases at hand say something about, direction by direction.
pub(crate) fn verdicts(study: &Study) -> Vec<Verdict> {
    let directions = [Operation::Read, Operation::Write, Operation::Mixed];
    let all = CLAIMS.iter().flat_map(|claim| directions.map(|operation| (claim, operation)));
    all.filter_map(|(claim, operation)| judge(study, claim, operation)).collect()
}

fn judge(study: &Study, claim: &Claim, operation: Operation) -> Option<Verdict> {
    let is_meant = |case: &Case| case.operation == operation && (claim.is_slow)(case);
    let slow = study.pairs.iter().filter(|pair| is_meant(&pair.case));
    let both: Vec<(&Pair, &Pair)> =
        slow.filter_map(|slow| Some((slow, find(study, (claim.fast)(slow.case))?))).collect();
    let side = |band: fn(&Pair) -> Band| {
        Side::of(&both.iter().map(|(slow, fast)| (band(slow), band(fast))).collect::<Vec<_>>())
    };
    let (hdd, other) = (side(|pair| pair.hdd)?, side(|pair| pair.other)?);
    Some(Verdict { claim: claim.text, operation, hdd, other })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(seconds: f64) -> Band {
        Band::of(&[seconds * 0.9, seconds, seconds * 1.1]).unwrap()
    }

    fn study(times: &[(Test, Operation, f64, f64)]) -> Study {
        let pair = |&(test, operation, hdd, other): &(Test, Operation, f64, f64)| Pair {
            case: Case { test, cache: "none", block_bytes: 5120, operation },
            hdd: around(hdd),
            other: around(other),
        };
        let pairs = times.iter().map(pair).collect();
        let differs_in_devices_only = true;
        Study { pairs, other: "x".to_owned(), differs_in_devices_only, draws: 1, tie_seeds: 3 }
    }

    const SINGLE: Test = Test::Individual(1);
    const TOGETHER: Test = Test::Collective("two-phase");

    #[test]
    fn a_conclusion_is_judged_by_the_ratio_on_either_medium() {
        let reads = [(SINGLE, Operation::Read, 80.0, 4.0), (TOGETHER, Operation::Read, 10.0, 5.0)];
        let study = study(&reads);
        let verdict = &verdicts(&study)[0];
        assert_eq!(verdict.word(), "reversed");
        assert!((verdict.hdd.factor - 8.0).abs() < 1e-12);
        assert!((verdict.other.factor - 0.8).abs() < 1e-12);
    }

    #[test]
    fn each_direction_has_a_verdict_of_its_own() {
        let study = study(&[
            (SINGLE, Operation::Read, 80.0, 40.0),
            (TOGETHER, Operation::Read, 10.0, 5.0),
            (SINGLE, Operation::Write, 10.0, 5.0),
            (TOGETHER, Operation::Write, 80.0, 40.0),
        ]);
        let words: Vec<_> = verdicts(&study)[..2].iter().map(|one| one.word()).collect();
        assert_eq!(words, ["survives", "harms on both"]);
    }

    #[test]
    fn nothing_is_concluded_where_bands_meet_however_far_the_medians_are_apart() {
        let mut study =
            study(&[(SINGLE, Operation::Read, 14.1, 1.0), (TOGETHER, Operation::Read, 10.0, 1.0)]);
        study.pairs[1].hdd = Band::of(&[9.0, 10.0, 13.0]).unwrap();
        let verdict = &verdicts(&study)[0];
        assert_eq!(verdict.word(), "no difference on either");
        assert_eq!(verdict.hdd.words(), "1.41x, no difference");
    }

    #[test]
    fn conclusions_without_cases_are_left_out() {
        assert!(verdicts(&study(&[(SINGLE, Operation::Read, 1.0, 1.0)])).is_empty());
    }
}
