//! Rounds of runs as a machine: who runs next, who is out, who has won.

use crate::advice::NOTEWORTHY;
use crate::statistics::{Interval, Kind, median};

/// Candidates that run for real at most.
const FIELD_MAX: usize = 12;
/// Rounds before the first half goes; each level has one more, since those who are left are nearer to each
/// other.
const FIRST_ROUNDS: usize = 2;
/// Who has less than that of the leader's speed is out, though the faster half has room.
const BEHIND: f64 = 0.7;
/// Pairs of plain and winner that confirm it: of six on, the interval of their median is exact.
const PAIRS: std::ops::RangeInclusive<usize> = 6..=20;
/// After so many pairs one looks: where all of them are faster than plain, which chance does once in 64 tunings,
/// or most are slower, the rest would tell nothing new.
const LOOK: usize = 6;

/// How a budget of runs is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Candidates that run.
    pub field: usize,
    /// Pairs that confirm the winner.
    pub pairs: usize,
}

/// Spends so many runs on so many candidates; nothing where they are too few to say anything.
pub fn plan(runs: usize, candidates: usize) -> Option<Plan> {
    let pairs = (runs / 5).clamp(*PAIRS.start(), *PAIRS.end());
    let selecting = runs.checked_sub(2 * pairs)?;
    let fits = |field: &usize| selection_runs(*field) <= selecting;
    let field = (1..=candidates.min(FIELD_MAX)).rev().find(fits)?;
    Some(Plan { field, pairs })
}

impl Plan {
    /// Runs of the command at most.
    pub fn runs(&self) -> usize {
        selection_runs(self.field) + 2 * self.pairs
    }
}

/// Runs until one of so many is left.
fn selection_runs(field: usize) -> usize {
    let (mut left, mut rounds, mut runs) = (field, FIRST_ROUNDS, 0);
    while left > 1 {
        runs += rounds * (left + 1);
        (left, rounds) = (left.div_ceil(2), rounds + 1);
    }
    runs
}

/// How a run of a candidate went.
#[derive(Clone, Debug, PartialEq)]
pub enum Ran {
    /// As the plain one, in so many seconds.
    Right(f64),
    /// It left something else: never to be recommended.
    Wrong(String),
    /// It ended otherwise than plain.
    Failed(String),
}

/// Why a candidate is out.
#[derive(Clone, Debug, PartialEq)]
pub enum Exit {
    /// It left something else.
    Wrong(String),
    /// It ended otherwise than plain.
    Failed(String),
    /// Others were faster.
    Slower,
}

/// What is to be said at the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The winner is faster than plain, beyond what chance explains.
    Helps,
    /// Nothing can be recommended.
    NothingHelps,
    /// There were too few runs to tell.
    Undecided,
}

/// What the runs came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// What is to be said.
    pub verdict: Verdict,
    /// Who was confirmed, or would have been.
    pub winner: Option<usize>,
    /// How many times as fast as plain in runs of confirmation, and the ends of the interval.
    pub speedup: Option<(f64, Interval)>,
    /// Pairs of runs that confirmed it.
    pub confirmed: usize,
}

/// The rounds of a tuning. Candidates are numbers below the size of the field.
#[derive(Clone, Debug)]
pub struct Tournament {
    pairs: usize,
    /// Who is not out, in the order they entered.
    left: Vec<usize>,
    /// Rounds of this level, and how many of them have been.
    rounds: usize,
    done: usize,
    /// Plain's time over the candidate's, by candidate and round, of the selection.
    ratios: Vec<Vec<f64>>,
    exits: Vec<Option<Exit>>,
    /// The same of the winner, in runs that confirm it.
    confirmed: Vec<f64>,
    has_ended: bool,
}

impl Tournament {
    /// Begins with all of the field.
    pub fn new(plan: Plan) -> Tournament {
        Tournament {
            pairs: plan.pairs,
            left: (0..plan.field).collect(),
            rounds: FIRST_ROUNDS,
            done: 0,
            ratios: vec![Vec::new(); plan.field],
            exits: vec![None; plan.field],
            confirmed: Vec::new(),
            has_ended: plan.field == 0,
        }
    }

    /// Who runs in the next round, beside plain; nothing at the end.
    pub fn next_round(&self) -> Option<&[usize]> {
        (!self.has_ended && !self.left.is_empty()).then_some(self.left.as_slice())
    }

    /// Whether the winner is being confirmed.
    pub fn is_confirming(&self) -> bool {
        self.left.len() == 1
    }

    /// Takes in a round: seconds of the plain run, and how each candidate's run went.
    pub fn heard(&mut self, plain_s: f64, ran: &[(usize, Ran)]) {
        let was_confirming = self.is_confirming();
        for (at, ran) in ran {
            let exit = match ran {
                Ran::Right(seconds) => {
                    let ratio = plain_s / seconds.max(1e-9);
                    match was_confirming {
                        true => self.confirmed.push(ratio),
                        false => self.ratios[*at].push(ratio),
                    }
                    continue;
                }
                Ran::Wrong(what) => Exit::Wrong(what.clone()),
                Ran::Failed(what) => Exit::Failed(what.clone()),
            };
            self.exits[*at] = Some(exit);
            self.left.retain(|other| other != at);
        }
        if was_confirming {
            return self.end_if_confirmed();
        }
        self.done += 1;
        if self.done >= self.rounds {
            self.halve();
        }
        match self.left.is_empty() {
            true => self.call_back(),
            false => self.end_if_hopeless(),
        }
    }

    /// The faster half stays, if it is not far behind the leader, nor slower than plain.
    fn halve(&mut self) {
        let mut places = self.left.clone();
        // The sort is stable: of equals the one that was predicted to be faster stays.
        places.sort_by(|a, b| self.selected(*b).total_cmp(&self.selected(*a)));
        let Some(leader) = places.first().map(|&at| self.selected(at)) else { return };
        let is_near = |at: usize| self.selected(at) > (leader * BEHIND).max(1.0);
        let near = places.iter().filter(|&&at| is_near(at)).count().max(1);
        for at in places.split_off(near.min(places.len().div_ceil(2))) {
            self.exits[at] = Some(Exit::Slower);
        }
        places.sort_unstable();
        self.left = places;
        (self.rounds, self.done) = (self.rounds + 1, 0);
    }

    /// A winner that was not faster even where it was picked for it needs no more runs.
    fn end_if_hopeless(&mut self) {
        if let [winner] = self.left[..] {
            let seen = !self.ratios[winner].is_empty();
            self.has_ended = seen && self.selected(winner) <= 1.0;
        }
    }

    fn end_if_confirmed(&mut self) {
        if self.left.is_empty() {
            self.confirmed.clear();
            self.call_back();
        } else {
            self.has_ended = self.says_enough();
        }
    }

    /// Whether the pairs so far say what all of them would. By chance a stack that brings nothing passes the first look
    /// once in 64 tunings and the end once in 40: together less often than once in 20.
    fn says_enough(&self) -> bool {
        let count = self.confirmed.len();
        let middle = || median(&self.confirmed);
        let are_all_faster = || self.confirmed.iter().all(|ratio| *ratio > 1.0);
        let is_told = || middle() <= 1.0 || are_all_faster() && middle() > 1.0 + NOTEWORTHY;
        count >= self.pairs || count == LOOK && is_told()
    }

    /// The winner was wrong after all: the best of those that were only slower is to be confirmed.
    fn call_back(&mut self) {
        let slower = (0..self.exits.len()).filter(|&at| self.exits[at] == Some(Exit::Slower));
        let next = slower.max_by(|a, b| self.selected(*a).total_cmp(&self.selected(*b)));
        if let Some(next) = next {
            self.exits[next] = None;
            self.left = vec![next];
            self.end_if_hopeless();
        }
    }

    /// Times as fast as plain, by the rounds of the selection.
    fn selected(&self, at: usize) -> f64 {
        median(&self.ratios[at])
    }

    /// Plain's time over a candidate's, by round of the selection.
    pub fn ratios(&self, at: usize) -> &[f64] {
        &self.ratios[at]
    }

    /// Why a candidate is out, if it is.
    pub fn exit(&self, at: usize) -> Option<&Exit> {
        self.exits[at].as_ref()
    }

    /// What the runs so far come to.
    pub fn outcome(&self) -> Outcome {
        let confirmed = self.confirmed.len();
        let nobody =
            Outcome { verdict: Verdict::NothingHelps, winner: None, speedup: None, confirmed };
        let [winner] = self.left[..] else {
            let verdict = if self.left.is_empty() { nobody.verdict } else { Verdict::Undecided };
            return Outcome { verdict, ..nobody };
        };
        let winner = Some(winner);
        if self.confirmed.is_empty() {
            let verdict = if self.has_ended { nobody.verdict } else { Verdict::Undecided };
            return Outcome { verdict, winner, ..nobody };
        }
        let (middle, interval) = (median(&self.confirmed), Interval::of_median(&self.confirmed));
        let verdict = match interval.kind {
            Kind::Median if interval.low > 1.0 && middle > 1.0 + NOTEWORTHY => Verdict::Helps,
            Kind::Median => Verdict::NothingHelps,
            Kind::Range | Kind::Unknown => Verdict::Undecided,
        };
        Outcome { verdict, winner, speedup: Some((middle, interval)), confirmed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_vocab::{Random, Seed};

    /// Noise with a heavy tail on a machine that gets slower and faster: one run in ten is disturbed, some
    /// by half of their time.
    struct Machine {
        random: Random,
        run: u64,
    }

    impl Machine {
        fn seconds(&mut self, truth: f64) -> f64 {
            self.run += 1;
            let unit = |random: &mut Random| random.below(10_000) as f64 / 10_000.0;
            let noise = 1.0 + 0.04 * (unit(&mut self.random) + unit(&mut self.random) - 1.0);
            let is_disturbed = unit(&mut self.random) < 0.1;
            let hit = if is_disturbed { 1.0 + unit(&mut self.random) / 2.0 } else { 1.0 };
            let drift = 1.0 + 0.1 * (self.run as f64 / 25.0).sin();
            truth * noise * hit * drift
        }
    }

    /// A tuning of candidates whose true times are these, plain taking 1; the number of its runs too.
    fn tuned(truths: &[f64], seed: u64, right: impl Fn(usize, u64) -> bool) -> (Outcome, u64) {
        let mut machine = Machine { random: Random::new(Seed(seed)), run: 0 };
        let mut tournament = Tournament::new(Plan { field: truths.len(), pairs: 10 });
        while let Some(round) = tournament.next_round().map(<[usize]>::to_vec) {
            let plain = machine.seconds(1.0);
            let ran: Vec<(usize, Ran)> = round
                .into_iter()
                .map(|at| match (machine.seconds(truths[at]), machine.run) {
                    (seconds, run) if right(at, run) => (at, Ran::Right(seconds)),
                    _ => (at, Ran::Wrong("data differs".to_owned())),
                })
                .collect();
            tournament.heard(plain, &ran);
        }
        (tournament.outcome(), machine.run)
    }

    #[test]
    fn where_nothing_helps_nothing_is_recommended_in_19_of_20_tunings() {
        let helps = |truth: f64| {
            let one =
                |seed: &u64| tuned(&[truth; 8], *seed, |_, _| true).0.verdict == Verdict::Helps;
            (0..400).filter(one).count()
        };
        for truth in [1.0, 1.01, 1.2] {
            assert!(helps(truth) <= 20, "{} of 400 at {truth}", helps(truth));
        }
    }

    #[test]
    fn a_clear_gain_is_found_and_recommended() {
        let truths = [1.0, 1.1, 0.95, 0.7, 1.0, 1.3, 0.98, 0.9];
        let found = (0..200).filter(|&seed| {
            let (outcome, _) = tuned(&truths, seed, |_, _| true);
            outcome.verdict == Verdict::Helps && outcome.winner == Some(3)
        });
        let found = found.count();
        assert!(found >= 190, "{found} of 200");
    }

    #[test]
    fn what_was_wrong_once_is_never_recommended_however_fast_it_is() {
        for seed in 0..50 {
            // The fastest is wrong from the start, the next one late, when it is being confirmed.
            let right = |at, run| match at {
                0 => false,
                1 => run < 15,
                _ => true,
            };
            let (outcome, _) = tuned(&[0.2, 0.5, 0.7, 1.0], seed, right);
            assert!(!matches!(outcome.winner, Some(0 | 1)), "seed {seed}: {outcome:?}");
        }
        let (outcome, _) = tuned(&[0.2, 0.3], 1, |_, _| false);
        assert_eq!((outcome.verdict, outcome.winner), (Verdict::NothingHelps, None));
    }

    #[test]
    fn a_plan_keeps_to_its_runs_and_says_when_they_are_too_few() {
        assert_eq!(plan(11, 5), None);
        assert_eq!(plan(12, 5), Some(Plan { field: 1, pairs: 6 }));
        assert_eq!(plan(1000, 3), Some(Plan { field: 3, pairs: 20 }));
        for runs in 12..300 {
            let Plan { field, pairs } = plan(runs, 100).unwrap();
            let (_, ran) = tuned(&vec![0.5; field], runs as u64, |_, _| true);
            assert!(selection_runs(field) + 2 * pairs <= runs);
            assert!(ran as usize <= selection_runs(field) + 2 * 10, "{ran} of {field}");
        }
    }

    #[test]
    fn where_all_that_are_left_turn_out_wrong_the_best_of_the_slower_ones_comes_back() {
        let mut tournament = Tournament::new(Plan { field: 4, pairs: 8 });
        let mut round = 0;
        while let Some(left) = tournament.next_round().map(<[usize]>::to_vec) {
            round += 1;
            let ran = left.into_iter().map(|at| match at {
                0 | 1 if round > 2 => (at, Ran::Wrong("data differs".to_owned())),
                _ => (at, Ran::Right([0.4, 0.5, 0.55, 0.9][at])),
            });
            tournament.heard(1.0, &ran.collect::<Vec<_>>());
        }
        let outcome = tournament.outcome();
        assert_eq!((outcome.verdict, outcome.winner), (Verdict::Helps, Some(2)));
    }

    #[test]
    fn six_pairs_are_enough_where_all_say_the_same_and_an_outlier_asks_for_all() {
        let confirmed = |slow: &[usize]| {
            let mut tournament = Tournament::new(Plan { field: 1, pairs: 20 });
            for pair in 0.. {
                if tournament.next_round().is_none() {
                    break;
                }
                let seconds = if slow.contains(&pair) { 1.5 } else { 0.5 };
                tournament.heard(1.0, &[(0, Ran::Right(seconds))]);
            }
            (tournament.outcome().confirmed, tournament.outcome().verdict)
        };
        assert_eq!(confirmed(&[]), (6, Verdict::Helps));
        assert_eq!(confirmed(&[3]), (20, Verdict::Helps));
        assert_eq!(confirmed(&[0, 1, 2, 3, 4]), (6, Verdict::NothingHelps));
        assert_eq!(confirmed(&[0, 2, 4, 8, 9, 10, 11, 12]), (20, Verdict::NothingHelps));
    }

    #[test]
    fn a_winner_that_was_interrupted_early_is_undecided() {
        let mut tournament = Tournament::new(Plan { field: 1, pairs: 8 });
        assert_eq!(tournament.outcome().verdict, Verdict::Undecided);
        (0..5).for_each(|_| tournament.heard(1.0, &[(0, Ran::Right(0.5))]));
        assert_eq!(tournament.outcome().verdict, Verdict::Undecided);
        tournament.heard(1.0, &[(0, Ran::Right(0.5))]);
        assert_eq!(tournament.outcome().verdict, Verdict::Helps);
    }
}
