//! What the evaluation concluded from its disks, as ratios of run times that either medium has.

use super::{Pair, Study};
use iolab_sim::evaluation::{Case, Operation, Test};

/// How a conclusion fares: how many times faster what it recommends is, on either medium.
pub(crate) struct Verdict {
    pub(crate) claim: &'static str,
    pub(crate) hdd: f64,
    pub(crate) other: f64,
}

/// Below this a factor is no reason to do anything.
const WORTH: f64 = 1.1;

impl Verdict {
    pub(crate) fn word(&self) -> &'static str {
        match (self.hdd >= WORTH, self.other >= WORTH, self.other < 1.0 / WORTH) {
            (true, true, _) if self.other >= self.hdd * 0.8 => "survives",
            (true, true, _) => "survives, weaker",
            (true, _, true) => "reversed",
            (true, _, _) => "gone",
            (false, true, _) => "new",
            (false, ..) if self.hdd < 1.0 / WORTH && self.other < 1.0 / WORTH => "harms on both",
            (false, ..) => "never mattered here",
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
        text: "two-phase instead of single blocks, without cache: reads",
        is_slow: |case| plain(case, Test::Individual(1)) && case.operation == Operation::Read,
        fast: |case| with_test(case, Test::Collective("two-phase")),
    },
    Claim {
        text: "two-phase instead of single blocks, without cache: writes",
        is_slow: |case| plain(case, Test::Individual(1)) && case.operation == Operation::Write,
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
        text: "write-behind instead of no cache: writes",
        is_slow: |case| none_of_many(case) && case.operation == Operation::Write,
        fast: |case| Case { cache: "write-behind", ..case },
    },
    Claim {
        text: "aggregation instead of write-behind: writes",
        is_slow: |case| {
            is_individual(case)
                && case.cache == "write-behind"
                && case.operation == Operation::Write
        },
        fast: |case| Case { cache: "aggregation", ..case },
    },
    Claim {
        text: "aggregation instead of no cache: reads of many blocks per call",
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

/// Every conclusion that the cases at hand say something about.
pub(crate) fn verdicts(study: &Study) -> Vec<Verdict> {
    let judge = |claim: &Claim| {
        let slow = study.pairs.iter().filter(|pair| (claim.is_slow)(&pair.case));
        let both: Vec<(&Pair, &Pair)> =
            slow.filter_map(|slow| Some((slow, find(study, (claim.fast)(slow.case))?))).collect();
        let hdd = mean(both.iter().map(|(slow, fast)| slow.hdd / fast.hdd))?;
        let other = mean(both.iter().map(|(slow, fast)| slow.other / fast.other))?;
        Some(Verdict { claim: claim.text, hdd, other })
    };
    CLAIMS.iter().filter_map(judge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(times: &[(Test, f64, f64)]) -> Study {
        let pair = |&(test, hdd, other): &(Test, f64, f64)| Pair {
            case: Case { test, cache: "none", block_bytes: 5120, operation: Operation::Read },
            hdd,
            other,
        };
        Study { pairs: times.iter().map(pair).collect(), other: "x".to_owned(), seeds: 1 }
    }

    #[test]
    fn a_conclusion_is_judged_by_the_ratio_on_either_medium() {
        let study =
            study(&[(Test::Individual(1), 80.0, 4.0), (Test::Collective("two-phase"), 10.0, 5.0)]);
        let verdict = &verdicts(&study)[0];
        assert_eq!(verdict.word(), "reversed");
        assert!((verdict.hdd - 8.0).abs() < 1e-12);
        assert!((verdict.other - 0.8).abs() < 1e-12);
    }

    #[test]
    fn conclusions_without_cases_are_left_out() {
        assert!(verdicts(&study(&[(Test::Individual(1), 1.0, 1.0)])).is_empty());
    }
}
