//! Tuning: one plain run, one recorded run, predictions of all stacks the trace gives reason for, and the
//! best of them for real, in the rounds of a tournament.
//!
//! The budget is of time. A run begins only where there is room for it; whoever interrupts, and a command
//! that fails meanwhile, end the rounds, and what is known so far stands.

use crate::loop_once::{Job, Loop, words};
use crate::runs::{Run, begin, ending};
use crate::{Laboratory, StudyError, Watcher, tree};
use iolab_policy::insitu::StrategySpec;
use iolab_report::advice::{Candidate, Candidates, Estimate, Means, Permission, candidates, field};
use iolab_report::study::{Turn, not_compared, round, writes_elsewhere};
use iolab_report::tune::{Entered, Plan, Ran, Tournament, Tuned, plan};
use iolab_sim::platform::Platform;
use iolab_trace::Trace;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Of the budget, predictions get this share at most.
const PREDICTING: f64 = 0.25;
/// Where a stack leaves something else, so many more plain runs at most have the chance to do the same.
const DOUBTS: usize = 4;
/// Runs of a field at most, however much time there is: more rounds tell nothing new.
const RUNS_MAX: usize = 300;

/// What a search for stacks may do.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// What the user consents to.
    pub permission: Permission,
    /// A directory on quicker storage, for strategies that want one.
    pub fast_place: Option<&'a str>,
    /// How long predictions may take, and the runs after them.
    pub budget: Duration,
}

/// What a search has found, before any of it has run.
pub(crate) struct Searched {
    pub(crate) found: Candidates,
    /// Who is to run, the most promising first, and how many times as fast as plain it is predicted to be.
    pub(crate) field: Vec<(Candidate, Option<f64>)>,
    /// Stacks that were simulated.
    pub(crate) simulated_count: usize,
}

/// A run, and in what it differs from the first one.
type Compared = (Run, BTreeMap<String, String>);

/// In what plain runs differ from the first one.
#[derive(Default)]
struct Differences {
    plain: BTreeMap<String, String>,
    /// Plain runs that were made for nothing else.
    doubted: usize,
}

impl Differences {
    /// Whether a plain run has differed so, too. Where plain runs have a file with other bytes, one without the file
    /// is wrong all the same. Where they name files anew each time, as git names a pack by what is in it, another
    /// name of that sort is as good as theirs.
    fn excuses(&self, name: &str, what: &str) -> bool {
        // "is missing", "is new", "is of another kind"
        let is_about_being = |what: &str| what.starts_with("is ");
        let is_of_the_sort = |(other, known): (&String, &String)| {
            what == tree::NEW && known == tree::NEW && sort(other) == sort(name)
        };
        self.plain.get(name).is_some_and(|known| !is_about_being(what) || is_about_being(known))
            || self.plain.iter().any(is_of_the_sort)
    }

    /// Those that no plain run has shown.
    fn not_excused<'a>(
        &'a self,
        differences: &'a BTreeMap<String, String>,
    ) -> impl Iterator<Item = (&'a String, &'a String)> {
        differences.iter().filter(|(name, what)| !self.excuses(name, what))
    }
}

/// Files of one directory with the same ending are of one sort.
fn sort(name: &str) -> (Option<&Path>, Option<&OsStr>) {
    (Path::new(name).parent(), Path::new(name).extension())
}

impl Job<'_> {
    /// Tunes the command, and gives the user's directory back as it was.
    ///
    /// # Errors
    /// That the command or the directories will not do, or that the user has stopped it before the first
    /// round; later, what is known stands, see [`Tuned::incomplete`].
    pub fn tune(
        &self,
        tuning: &Search,
        laboratory: &dyn Laboratory,
        watcher: &mut dyn Watcher,
    ) -> Result<Tuned, StudyError> {
        self.in_a_workplace(laboratory, |under_way| under_way.tune(tuning, watcher))
    }
}

impl Loop<'_> {
    fn tune(mut self, tuning: &Search, watcher: &mut dyn Watcher) -> Result<Tuned, StudyError> {
        let began = Instant::now();
        begin(watcher);
        let first = self.first_run()?;
        // A run is as long as that, with a fresh place before it and a comparison after it.
        let run_s = began.elapsed().as_secs_f64();
        watcher.step("recording it");
        let recorded = self.record(&first)?;
        self.notes.extend(writes_elsewhere(&recorded, self.job.directory));
        let platform = self.platform(watcher)?;
        let layers = self.record_layers(&recorded, &first);
        let searched = self.search(tuning, &recorded, layers.as_ref(), &platform, watcher)?;
        let (field, predicted): (Vec<Candidate>, Vec<_>) = searched.field.into_iter().unzip();
        let left = tuning.budget.saturating_sub(began.elapsed()).as_secs_f64();
        let runs = ((left / run_s.max(1e-3)) as usize).min(RUNS_MAX);
        let plan = plan(runs, field.len());
        if plan.is_none() && !field.is_empty() {
            self.incomplete = Some(format!(
                "a run takes {run_s:.2} s, so the budget is too small for any to tell"
            ));
        }
        let plan = plan.unwrap_or(Plan { field: 0, pairs: 0 });
        let mut tournament = Tournament::new(plan);
        let mut plain_s = Vec::new();
        watcher.begin_runs(if plan.field == 0 { 0 } else { runs.min(plan.runs()) });
        let mut counted = 2 + usize::from(layers.is_some());
        let mut seen = Differences::default();
        while let Some(left) = tournament.next_round().map(<[usize]>::to_vec) {
            if began.elapsed().as_secs_f64() + run_s * (1 + left.len()) as f64
                > tuning.budget.as_secs_f64()
            {
                self.incomplete = Some("the budget is spent".to_owned());
                break;
            }
            match self.one_round(plain_s.len(), &field, &left, &first, &mut seen, watcher) {
                Ok((plain, ran)) => {
                    counted += 1 + ran.len();
                    tournament.heard(plain, &ran);
                    plain_s.push(plain);
                }
                Err(failure) => {
                    self.incomplete = Some(failure.message);
                    break;
                }
            }
        }
        watcher.end_runs();
        self.notes.extend(not_compared(&seen.plain));
        let entered = |(at, candidate): (usize, Candidate)| Entered {
            candidate,
            predicted: predicted[at],
            ratios: tournament.ratios(at).to_vec(),
            exit: tournament.exit(at).cloned(),
        };
        Ok(Tuned {
            command: words(self.job.command),
            directory: self.job.directory.to_string_lossy().into_owned(),
            platform: platform.name.clone(),
            rank_count: recorded.header.rank_count(),
            kinds: by_kind(&searched.found.stacks),
            candidate_count: searched.found.stacks.len(),
            simulated_count: searched.simulated_count,
            outcome: tournament.outcome(),
            field: field.into_iter().take(plan.field).enumerate().map(entered).collect(),
            plain_s,
            run_count: counted + seen.doubted,
            withheld: searched.found.withheld,
            idle: searched.found.idle,
            not_compared: seen.plain.into_keys().collect(),
            notes: self.notes,
            incomplete: self.incomplete,
        })
    }

    /// The stacks that have a reason in the recorded run, in the order in which they are to run. `layers` is the same
    /// run with calls of the layers above POSIX.
    pub(crate) fn search(
        &mut self,
        search: &Search,
        recorded: &Trace,
        layers: Option<&Trace>,
        platform: &Platform,
        watcher: &dyn Watcher,
    ) -> Result<Searched, StudyError> {
        let directory = self.job.directory.to_string_lossy();
        // Results inside of the output directory stand aside with it while the command runs.
        let trace = self.job.results.join("recorded.iot");
        let is_apart = self.place.results() == self.job.results;
        let means = Means {
            recorded: trace.to_str().filter(|_| is_apart),
            fast_place: search.fast_place,
            compares_contents: !self.job.same.is_empty(),
        };
        let seen = layers.unwrap_or(recorded);
        let found = candidates(seen, Some(&directory), search.permission, means);
        let is_predicted = |candidate: &&Candidate| candidate.is_predictable();
        let count = found.stacks.iter().filter(is_predicted).count();
        let untold = match found.stacks.len() - count {
            0 => String::new(),
            more => format!("; {more} more can only be run"),
        };
        watcher.step(&format!("predicting {count} stacks{untold}"));
        let until = Instant::now() + search.budget.mul_f64(PREDICTING);
        let (plain, estimates) = self.estimates(recorded, platform, &found, until)?;
        if plain.is_none() {
            self.notes.push("the plain run could not be predicted, so nothing is".to_owned());
        }
        let plain_s = plain.map(|estimate| estimate.wall_s);
        let factor = |at: usize| Some(plain_s? / estimates[at]?.wall_s);
        let field = field(&found.stacks, plain_s, &estimates);
        let field = field.into_iter().map(|at| (found.stacks[at].clone(), factor(at))).collect();
        let simulated_count = estimates.iter().flatten().count();
        Ok(Searched { found, field, simulated_count })
    }

    /// The plain run, then every stack that a simulation can tell of.
    fn estimates(
        &self,
        trace: &Trace,
        platform: &Platform,
        found: &Candidates,
        until: Instant,
    ) -> Result<(Option<Estimate>, Vec<Option<Estimate>>), StudyError> {
        let is_told = |at: &usize| found.stacks[*at].is_predictable();
        let told: Vec<usize> = (0..found.stacks.len()).filter(is_told).collect();
        let mut stacks: Vec<&[StrategySpec]> = vec![&[]];
        stacks.extend(told.iter().map(|&at| found.stacks[at].stack.as_slice()));
        let runner = self.runner;
        let goes_on = || Instant::now() < until && runner.check().is_ok();
        let predicted = self.laboratory.predict_all(trace, platform, &stacks, &goes_on);
        runner.check()?;
        let mut predicted = predicted?.into_iter();
        let plain = predicted.next().flatten();
        let mut estimates = vec![None; found.stacks.len()];
        told.into_iter().zip(predicted).for_each(|(at, estimate)| estimates[at] = estimate);
        Ok((plain, estimates))
    }

    /// Plain and each candidate that is left once; what candidates leave is judged when the plain run has
    /// been, since what plain runs differ in is nobody's fault.
    fn one_round(
        &mut self,
        number: usize,
        field: &[Candidate],
        left: &[usize],
        first: &Run,
        seen: &mut Differences,
        watcher: &mut dyn Watcher,
    ) -> Result<(f64, Vec<(usize, Ran)>), StudyError> {
        let (mut plain_s, mut ran) = (None, Vec::new());
        for turn in round(number, left.len()) {
            match turn {
                Turn::Plain => {
                    watcher.run("plain");
                    let (run, differences) = self.compared(&mut self.plain(), first)?;
                    if !run.status.success() {
                        let said = run.errors.last_lines();
                        return Err(StudyError::new(format!(
                            "a plain run failed ({}): {said}",
                            ending(run.status)
                        )));
                    }
                    seen.plain.extend(differences);
                    plain_s = Some(run.seconds);
                }
                Turn::Under(place) => {
                    let candidate = &field[left[place]];
                    watcher.run(&candidate.label());
                    let mut command = self.under(&candidate.stack);
                    ran.push((left[place], self.compared(&mut command, first)?));
                }
            }
        }
        self.doubt(&ran, first, seen, watcher)?;
        let judged = |(at, (run, differences)): (usize, Compared)| {
            let mut wrong = seen.not_excused(&differences);
            let said = || format!("{}: {}", ending(run.status), run.errors.last_lines());
            (
                at,
                match (run.status.success(), wrong.next()) {
                    (false, _) => Ran::Failed(said()),
                    (true, Some((name, what))) => Ran::Wrong(format!("{name} {what}")),
                    (true, None) => Ran::Right(run.seconds),
                },
            )
        };
        let ran = ran.into_iter().map(judged).collect();
        Ok((plain_s.expect("each round has a plain run"), ran))
    }

    /// Looks whether it is the command itself that leaves now this and now that: what a stack has left otherwise is
    /// only its fault where plain runs never leave it so.
    fn doubt(
        &self,
        ran: &[(usize, Compared)],
        first: &Run,
        seen: &mut Differences,
        watcher: &dyn Watcher,
    ) -> Result<(), StudyError> {
        for _ in 0..DOUBTS {
            let is_wrong = |(_, (run, differences)): &(usize, Compared)| {
                run.status.success() && seen.not_excused(differences).next().is_some()
            };
            if !ran.iter().any(is_wrong) {
                break;
            }
            watcher.run("plain, in doubt");
            let (run, differences) = self.compared(&mut self.plain(), first)?;
            seen.doubted += 1;
            if run.status.success() {
                seen.plain.extend(differences);
            }
        }
        Ok(())
    }

    fn compared(&self, command: &mut Command, first: &Run) -> Result<Compared, StudyError> {
        let run = self.fresh_run(command)?;
        let differences = self.differences(&run, first)?;
        Ok((run, differences))
    }
}

fn by_kind(candidates: &[Candidate]) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    candidates.iter().for_each(|it| *kinds.entry(it.kind().join(" + ")).or_default() += 1);
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_plain_runs_differ_in_is_excused_and_a_file_that_is_gone_is_not() {
        let plain = [("log", "differs from byte 3 on"), ("lock", "is missing")];
        let plain = plain.map(|(name, what)| (name.to_owned(), what.to_owned())).into();
        let seen = Differences { plain, doubted: 0 };
        assert!(seen.excuses("log", "has 7 bytes instead of 9"));
        assert!(!seen.excuses("log", "is missing") && !seen.excuses("data", "is missing"));
        assert!(seen.excuses("lock", "is missing") && seen.excuses("lock", "has mode 600"));
    }

    #[test]
    fn where_plain_runs_name_files_anew_each_time_so_may_others() {
        let plain = [("pack/1.pack", "is missing"), ("pack/2.pack", tree::NEW)];
        let plain = plain.map(|(name, what)| (name.to_owned(), what.to_owned())).into();
        let seen = Differences { plain, doubted: 0 };
        assert!(
            seen.excuses("pack/3.pack", tree::NEW) && seen.excuses("pack/1.pack", "is missing")
        );
        for name in ["3.pack", "pack/3.tmp", "pack/old/3.pack"] {
            assert!(!seen.excuses(name, tree::NEW), "{name}");
        }
        assert!(!seen.excuses("pack/3.pack", "is missing"));
    }
}
