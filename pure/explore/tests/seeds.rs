//! Seeds that must pass. Defects that seeds have found are planted again in `plants.rs`: the run of a seed
//! changes with what is drawn for it.

use iolab_explore::{Fault, Mark, Marks, Mask, explore};

/// Rare branches: a run over so many seeds must meet each of them.
const SEEDS: u64 = 1_000;

#[test]
fn no_seed_breaks_a_promise_and_every_rare_branch_is_met() {
    let mut marks = Marks::default();
    for seed in 0..SEEDS {
        let outcome = explore(seed, &Mask::default());
        assert_eq!(outcome.defect, None, "iolab fs explore --seed {seed}");
        marks.add(&outcome.marks);
    }
    // It is no branch of the machines that an oracle gives up.
    let missed: Vec<Mark> =
        marks.missed().filter(|&mark| mark != Mark::NamesUndecided && mark != Mark::Busy).collect();
    assert!(missed.is_empty(), "{missed:?} are never met");
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 0..20 {
        assert_eq!(explore(seed, &Mask::default()), explore(seed, &Mask::default()), "{seed}");
    }
}

#[test]
fn without_faults_nothing_is_slow_or_fails() {
    let mask = Mask { without: Fault::ALL.into_iter().collect(), ..Mask::default() };
    for seed in 0..200 {
        let outcome = explore(seed, &mask);
        assert_eq!(outcome.defect, None, "iolab fs explore --seed {seed}{mask}");
        for mark in [Mark::TimedOut, Mark::SessionLost, Mark::RankFailed, Mark::AskedAgain] {
            assert_eq!(outcome.marks.count(mark), 0, "{mark:?} at seed {seed}");
        }
    }
}
