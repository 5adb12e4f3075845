//! Tuning: one plain run, one recorded run, predictions of all stacks the trace gives reason for, and the
//! best of them for real, in the rounds of a tournament.
//!
//! The budget is of time. A run begins only where there is room for it; whoever interrupts, and a command
//! that fails meanwhile, end the rounds, and what is known so far stands.

use crate::loop_once::{Job, Loop, words};
use crate::runs::{Run, ending};
use crate::{Laboratory, StudyError, Watcher};
use iolab_report::advice::{
    Candidate, Candidates, Estimate, Permission, best_of_kinds, candidates, ranked,
};
use iolab_report::study::{Turn, round, writes_elsewhere};
use iolab_report::tune::{Entered, Plan, Ran, Tournament, Tuned, plan};
use iolab_trace::Trace;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

/// Of the budget, predictions get this share at most.
const PREDICTING: f64 = 0.25;
/// Runs of a field at most, however much time there is: more rounds tell nothing new.
const RUNS_MAX: usize = 300;
/// Stacks of one kind in the field at most: a simulation tells parameters apart well, and kinds less.
const OF_EACH_KIND: usize = 2;
/// What is predicted to be slower than this, relative to plain, does not run.
const HOPELESS: f64 = 1.1;

/// What a tuning may do.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// How long it may take.
    pub budget: Duration,
    /// What the user consents to.
    pub permission: Permission,
}

/// What plain and candidates left that the first run did not.
#[derive(Default)]
struct Differences {
    plain: BTreeMap<String, String>,
}

impl Job<'_> {
    /// Tunes the command, and gives the user's directory back as it was.
    ///
    /// # Errors
    /// That the command or the directories will not do, or that the user has stopped it before the first
    /// round; later, what is known stands, see [`Tuned::incomplete`].
    pub fn tune(
        &self,
        tuning: &Tuning,
        laboratory: &dyn Laboratory,
        watcher: &mut dyn Watcher,
    ) -> Result<Tuned, StudyError> {
        self.in_a_workplace(laboratory, |under_way| under_way.tune(tuning, watcher))
    }
}

impl Loop<'_> {
    fn tune(mut self, tuning: &Tuning, watcher: &mut dyn Watcher) -> Result<Tuned, StudyError> {
        let began = Instant::now();
        watcher.step("running the command as it is");
        let first = self.first_run()?;
        // A run is as long as that, with a fresh place before it and a comparison after it.
        let run_s = began.elapsed().as_secs_f64();
        watcher.step("recording it");
        let recorded = self.record(&first)?;
        self.notes.extend(writes_elsewhere(&recorded, self.job.directory));
        let platform = self.platform(watcher)?;
        let directory = self.job.directory.to_string_lossy().into_owned();
        let found = candidates(&recorded, Some(&directory), tuning.permission);
        watcher.step(&format!("predicting {} stacks", found.stacks.len()));
        let until = Instant::now() + tuning.budget.mul_f64(PREDICTING);
        let estimates = self.estimates(&recorded, &platform, &found, until)?;
        let (field, predicted) = self.field(&found, &estimates);
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
        let mut counted = 2;
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
        let entered = |(at, candidate): (usize, Candidate)| Entered {
            candidate,
            predicted: predicted[at],
            ratios: tournament.ratios(at).to_vec(),
            exit: tournament.exit(at).cloned(),
        };
        Ok(Tuned {
            command: words(self.job.command),
            directory,
            platform: platform.name.clone(),
            rank_count: recorded.header.rank_count(),
            candidate_count: found.stacks.len(),
            simulated_count: estimates.iter().skip(1).flatten().count(),
            outcome: tournament.outcome(),
            field: field.into_iter().take(plan.field).enumerate().map(entered).collect(),
            plain_s,
            run_count: counted,
            withheld: found.withheld,
            notes: self.notes,
            incomplete: self.incomplete,
        })
    }

    /// The plain run first, then every stack.
    fn estimates(
        &self,
        trace: &Trace,
        platform: &iolab_sim::platform::Platform,
        found: &Candidates,
        until: Instant,
    ) -> Result<Vec<Option<Estimate>>, StudyError> {
        let mut stacks = vec![&[][..]];
        stacks.extend(found.stacks.iter().map(|candidate| candidate.stack.as_slice()));
        let runner = self.runner;
        let goes_on = || Instant::now() < until && runner.check().is_ok();
        let estimates = self.laboratory.predict_all(trace, platform, &stacks, &goes_on);
        runner.check()?;
        Ok(estimates?)
    }

    /// Who runs, best prediction first, and what is predicted of each. Without predictions it is the
    /// simplest ones.
    fn field(
        &mut self,
        found: &Candidates,
        estimates: &[Option<Estimate>],
    ) -> (Vec<Candidate>, Vec<Option<f64>>) {
        let Some(plain) = estimates[0] else {
            self.notes.push("the plain run could not be predicted, so nothing is".to_owned());
            let field: Vec<Candidate> = found.stacks.clone();
            let predicted = vec![None; field.len()];
            return (field, predicted);
        };
        let estimates = &estimates[1..];
        let mut places = ranked(&found.stacks, estimates);
        let wall_s = |at: usize| estimates[at].map_or(f64::INFINITY, |estimate| estimate.wall_s);
        places.retain(|&at| wall_s(at) < plain.wall_s * HOPELESS);
        let chosen = best_of_kinds(&found.stacks, &places, OF_EACH_KIND, usize::MAX);
        let field = chosen.iter().map(|&at| found.stacks[at].clone()).collect();
        let predicted = chosen.iter().map(|&at| Some(plain.wall_s / wall_s(at))).collect();
        (field, predicted)
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
        let judged = |(at, (run, differences)): (usize, (Run, BTreeMap<String, String>))| {
            let mut wrong = differences.iter().filter(|(name, _)| !seen.plain.contains_key(*name));
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

    fn compared(
        &self,
        command: &mut Command,
        first: &Run,
    ) -> Result<(Run, BTreeMap<String, String>), StudyError> {
        let run = self.fresh_run(command)?;
        let differences = self.differences(&run, first)?;
        Ok((run, differences))
    }
}
