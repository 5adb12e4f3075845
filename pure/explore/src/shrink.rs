//! A failing seed made smaller: parts of it are left out as long as it fails.

use crate::plan::{Fault, Mask};
use crate::{Outcome, explore};

/// More runs are not made.
const RUNS_MAX: usize = 200;

/// The largest mask found with which a seed still fails, and how it fails then.
pub fn shrink(seed: u64, mask: &Mask) -> (Mask, Outcome) {
    let mut best = (mask.clone(), explore(seed, mask));
    let failing = kind(&best.1);
    let mut runs = 0;
    loop {
        let before = best.0.clone();
        for candidate in smaller(&before) {
            if runs == RUNS_MAX {
                return best;
            }
            runs += 1;
            let candidate = joined(&best.0, &candidate);
            let outcome = explore(seed, &candidate);
            if kind(&outcome) == failing {
                best = (candidate, outcome);
            }
        }
        if best.0 == before {
            return best;
        }
    }
}

/// A defect without its numbers and details: another one may not take its place.
fn kind(outcome: &Outcome) -> Option<String> {
    let words = |defect: &String| defect.chars().filter(|c| !c.is_ascii_digit()).take(40).collect();
    outcome.defect.as_ref().map(words)
}

/// Masks with one thing more.
fn smaller(mask: &Mask) -> Vec<Mask> {
    let mut all = Vec::new();
    let with = |change: &dyn Fn(&mut Mask)| {
        let mut mask = mask.clone();
        change(&mut mask);
        mask
    };
    for fault in Fault::ALL.into_iter().filter(|fault| !mask.without.contains(fault)) {
        all.push(with(&|mask| {
            mask.without.insert(fault);
        }));
    }
    for program in (0..3).filter(|program| !mask.idle.contains(program)) {
        all.push(with(&|mask| {
            mask.idle.insert(program);
        }));
    }
    for rounds in [1, 2, 4, 6, 8, 10, 14, 18] {
        if mask.rounds.is_none_or(|most| rounds < most) {
            all.push(with(&|mask| mask.rounds = Some(rounds)));
        }
    }
    for round in (0..mask.rounds.unwrap_or(25)).filter(|round| !mask.skipped.contains(round)) {
        all.push(with(&|mask| {
            mask.skipped.insert(round);
        }));
    }
    all
}

/// What either leaves out.
fn joined(one: &Mask, other: &Mask) -> Mask {
    let rounds = [one.rounds, other.rounds].into_iter().flatten().min();
    Mask {
        without: one.without.union(&other.without).copied().collect(),
        idle: one.idle.union(&other.idle).copied().collect(),
        rounds,
        skipped: one.skipped.union(&other.skipped).copied().collect(),
    }
}
