//! The timed part of a study: rounds of runs, each plain once and once under every strategy.
//!
//! A strategy under which a run failed is not run again. A round that does not come to its end is
//! left out, and the rounds before it stand.

use crate::loop_once::Loop;
use crate::runs::{Run, ending};
use crate::{StudyError, Watcher};
use iolab_report::study::{Candidate, Runs, Turn, not_deterministic, round};
use std::process::Command;

impl Loop<'_> {
    /// All rounds: what the plain runs and each candidate's runs came to.
    pub(crate) fn rounds(
        &mut self,
        rounds: usize,
        candidates: &[Candidate],
        first: &Run,
        watcher: &mut dyn Watcher,
    ) -> Result<(Runs, Vec<Runs>), StudyError> {
        let (mut plain, mut seen) = (Runs::default(), Vec::new());
        seen.resize_with(candidates.len(), Runs::default);
        watcher.begin_runs(rounds * (1 + candidates.len()));
        for number in 0..rounds {
            let counts: Vec<usize> = seen.iter().map(|one| one.seconds.len()).collect();
            let ran = self.round(number, candidates, first, watcher, (&mut plain, &mut seen));
            let Err(failure) = ran else { continue };
            if number == 0 {
                return Err(failure);
            }
            // The rounds before stand; what this one began is not to be weighed with them.
            plain.seconds.truncate(number);
            seen.iter_mut().zip(counts).for_each(|(one, count)| one.seconds.truncate(count));
            let what = format!("ended in round {} of {rounds}: {}", number + 1, failure.message);
            self.notes.push(what.clone());
            self.incomplete = Some(what);
            break;
        }
        watcher.end_runs();
        self.notes.extend(not_deterministic(&plain));
        Ok((plain, seen))
    }

    fn round(
        &mut self,
        number: usize,
        candidates: &[Candidate],
        first: &Run,
        watcher: &mut dyn Watcher,
        (plain, seen): (&mut Runs, &mut [Runs]),
    ) -> Result<(), StudyError> {
        let mut finished = Vec::new();
        for turn in round(number, candidates.len()) {
            match turn {
                Turn::Plain => {
                    watcher.run("plain");
                    self.turn(&mut self.plain(), first, plain)?;
                    if let Some(failure) = &plain.failure {
                        return Err(StudyError::new(format!("a plain run failed: {failure}"))
                            .hint("a study needs a command that succeeds every time"));
                    }
                }
                Turn::Under(index) if seen[index].failure.is_none() => {
                    watcher.run(&candidates[index].label);
                    let mut command = self.under(&candidates[index].stack);
                    self.turn(&mut command, first, &mut seen[index])?;
                    finished.push(index);
                }
                Turn::Under(_) => watcher.run("(failed before)"),
            }
        }
        let latest = *plain.seconds.last().expect("each round has a plain run");
        finished.into_iter().for_each(|index| seen[index].plain.push(latest));
        Ok(())
    }

    fn turn(&self, command: &mut Command, first: &Run, seen: &mut Runs) -> Result<(), StudyError> {
        let run = self.fresh_run(command)?;
        if !run.status.success() {
            let said = run.errors.last_lines();
            seen.failure = Some(format!("{}: {said}", ending(run.status)));
        }
        seen.seconds.push(run.seconds);
        for (name, what) in self.differences(&run, first)? {
            seen.differences.entry(name).or_insert(what);
        }
        Ok(())
    }
}
