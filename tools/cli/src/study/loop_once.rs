//! The loop, step by step: one plain run, one recorded run, findings, predictions, then rounds of
//! plain and reshaped runs, compared.

use super::progress::Progress;
use super::runs::{Run, Runner, ending};
use super::tree::Span;
use super::workplace::Workplace;
use super::{tree, write};
use crate::failure::Failure;
use crate::simulate::predicted::over_ties;
use crate::simulate::read_platform;
use crate::{calibrate, trace_file};
use iolab_report::prediction::Predicted;
use iolab_report::study::{
    Candidate, Runs, Shown, Study, Tried, Turn, best, candidates, conclude, median_interval,
    not_deterministic, plain_missed, round, short_run, span_seconds, without_prediction,
    writes_elsewhere,
};
use iolab_report::{Analysis, Report};
use iolab_sim::band::tie_seeds;
use iolab_sim::cluster::Order;
use iolab_sim::guest;
use iolab_sim::platform::Platform;
use iolab_trace::Trace;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

/// A recorded run that takes this many times the first one was disturbed.
const DISTURBED: f64 = 1.15;
/// A machine that stays busy is not waited for longer than this.
const RECORDINGS_MAX: usize = 3;

/// What to study and how.
pub(crate) struct Settings<'a> {
    pub(crate) rounds: usize,
    pub(crate) wanted: &'a [String],
    pub(crate) only_wanted: bool,
    pub(crate) platform: Option<&'a Platform>,
    pub(crate) command: &'a [OsString],
    /// Where the user stands.
    pub(crate) start: &'a Path,
    /// Where the command writes.
    pub(crate) directory: &'a Path,
    /// Where the report goes.
    pub(crate) results: &'a Path,
}

impl Settings<'_> {
    pub(crate) fn run(&self) -> Result<Study, Failure> {
        // Slips of the user come out before anything is touched.
        for text in self.wanted {
            Candidate::parse(text, &self.directory.to_string_lossy(), "asked for")?;
        }
        let runner = Runner::new()?;
        let mut progress = Progress::new();
        let place = Workplace::claim(self.directory, self.results)?;
        let study = Loop {
            settings: self,
            place: &place,
            runner: &runner,
            notes: Vec::new(),
            incomplete: None,
        }
        .run(&mut progress);
        place.restore()?;
        study
    }
}

struct Loop<'a> {
    settings: &'a Settings<'a>,
    place: &'a Workplace,
    runner: &'a Runner,
    notes: Vec<String>,
    incomplete: Option<String>,
}

impl Loop<'_> {
    fn run(mut self, progress: &mut Progress) -> Result<Study, Failure> {
        progress.step("running the command as it is");
        let first = self.first_run()?;
        progress.step("recording it");
        let recorded = self.record(&first)?;
        let report = Analysis::of(&recorded);
        self.notes.extend(writes_elsewhere(&recorded, self.settings.directory));
        let platform = self.platform(progress)?;
        let candidates = self.candidates(&recorded, &report)?;
        progress.step("predicting");
        let plain_simulated = self.predict(&recorded, &platform, None);
        let predicted: Vec<_> = (candidates.iter())
            .map(|candidate| self.predict(&recorded, &platform, Some(candidate)))
            .map(|predicted| predicted.map(|predicted| predicted.band))
            .collect();
        self.notes.extend(plain_simulated.as_ref().and_then(short_run));
        let plain_predicted = plain_simulated.map(|predicted| predicted.band);
        let (plain, seen) = self.rounds(&candidates, &first, progress)?;
        if let Some(band) = plain_predicted {
            let measured = median_interval(&plain.seconds);
            self.notes.extend(plain_missed(measured, band, span_seconds(&recorded)));
        }
        let tried = conclude(candidates, seen, &plain, plain_predicted, &predicted);
        let shown = match self.incomplete {
            None => self.shown(&tried, &recorded, &platform, progress),
            Some(_) => None,
        };
        Ok(Study {
            command: words(self.settings.command),
            directory: self.settings.directory.to_owned(),
            rounds: self.settings.rounds,
            recorded,
            report,
            platform,
            plain: plain.seconds,
            plain_predicted,
            tried,
            shown,
            notes: self.notes,
            incomplete: self.incomplete,
        })
    }

    /// The command itself, plain.
    fn plain(&self) -> Command {
        let mut command = Command::new(&self.settings.command[0]);
        command.args(&self.settings.command[1..]);
        command
    }

    /// The command behind `iolab` with these arguments.
    fn behind(&self, arguments: &[OsString]) -> Result<Command, Failure> {
        let iolab = std::env::current_exe().map_err(Failure::new)?;
        let mut command = Command::new(iolab);
        command.args(arguments).arg("--").args(self.settings.command);
        Ok(command)
    }

    fn under(&self, candidate: &Candidate) -> Result<Command, Failure> {
        let mut arguments = vec![OsString::from("run")];
        for text in candidate.texts() {
            arguments.extend(["--apply".into(), text.into()]);
        }
        self.behind(&arguments)
    }

    fn fresh_run(&self, command: &mut Command) -> Result<Run, Failure> {
        // What nobody touches afterwards has the time of its copy.
        let since = SystemTime::now();
        self.place.refresh()?;
        let run = self.runner.run(command, self.settings.start)?;
        Ok(Run { span: Some(Span { since, until: SystemTime::now() }), ..run })
    }

    /// The run everything else is compared with.
    fn first_run(&self) -> Result<Run, Failure> {
        let run = self.fresh_run(&mut self.plain())?;
        if !run.status.success() {
            let said = run.errors.last_lines();
            let what = format!("the command itself ended with {}: {said}", ending(run.status));
            return Err(Failure::new(what)
                .hint("a study needs a command that succeeds; try it without iolab first"));
        }
        self.place.collect("reference")?;
        Ok(run)
    }

    /// Everything in which what was just left behind differs from the first run.
    fn differences(&self, run: &Run, first: &Run) -> Result<BTreeMap<String, String>, Failure> {
        let left = self.place.collect("last")?;
        let reference = self.place.aside().join("reference");
        let span = |run: &Run| run.span.expect("a run in a fresh place has its time");
        let before = tree::Left { tree: &reference, span: span(first) };
        let after = tree::Left { tree: &left, span: span(run) };
        let files = tree::differences(before, after).map_err(Failure::new)?;
        let mut found: BTreeMap<String, String> =
            files.into_iter().map(|(name, what)| (name.display().to_string(), what)).collect();
        if run.output != first.output {
            found.insert("stdout".to_owned(), "differs".to_owned());
        }
        tree::remove(&left).map_err(Failure::new)?;
        Ok(found)
    }

    /// Records the command; again, when something else slowed the machine down meanwhile, for a
    /// prediction starts from the times in the trace.
    fn record(&mut self, first: &Run) -> Result<Trace, Failure> {
        let mut best = self.record_once(first)?;
        for _ in 1..RECORDINGS_MAX {
            if span_seconds(&best) <= DISTURBED * first.seconds {
                break;
            }
            let next = self.record_once(first)?;
            if span_seconds(&next) < span_seconds(&best) {
                best = next;
            }
        }
        trace_file::save(&self.settings.results.join("recorded.iot"), &best)?;
        Ok(best)
    }

    fn record_once(&mut self, first: &Run) -> Result<Trace, Failure> {
        let kept = self.place.aside().join("recorded.iot");
        let run = self.fresh_run(&mut self.behind(&record_to(&kept))?)?;
        if !run.status.success() {
            let said = run.errors.last_lines();
            return Err(Failure::new(format!("recording failed ({}): {said}", ending(run.status))));
        }
        let differences = self.differences(&run, first)?;
        if let Some((name, what)) = differences.first_key_value() {
            self.notes.push(format!("in the recorded run {name} {what}"));
        }
        trace_file::load(&kept)
    }

    fn platform(&self, progress: &Progress) -> Result<Platform, Failure> {
        if let Some(platform) = self.settings.platform {
            return Ok(platform.clone());
        }
        progress.step("measuring the storage");
        let calibration = calibrate::measure(self.place.aside())?;
        let path = self.settings.results.join("this-machine.toml");
        write(&path, calibrate::platform_text(&calibration)?.as_bytes())?;
        read_platform(&path.to_string_lossy())
    }

    fn candidates(&self, trace: &Trace, report: &Report) -> Result<Vec<Candidate>, Failure> {
        let directory = self.settings.directory.to_string_lossy();
        let remedies: Vec<String> = (report.findings.iter())
            .filter_map(|finding| finding.remedy.as_ref()?.strategy.clone())
            .collect();
        let nothing = Trace::default();
        let (remedies, trace): (&[String], &Trace) = match self.settings.only_wanted {
            true => (&[], &nothing),
            false => (&remedies, trace),
        };
        Ok(candidates(self.settings.wanted, remedies, trace, &directory)?)
    }

    fn predict(
        &mut self,
        trace: &Trace,
        platform: &Platform,
        candidate: Option<&Candidate>,
    ) -> Option<Predicted> {
        let stack = candidate.map_or(&[][..], |candidate| &candidate.stack);
        let seeds = tie_seeds(Order::Documented, None, None);
        match over_ties(trace, platform, stack, &guest::Settings::default(), &seeds) {
            Ok(predicted) => Some(predicted),
            Err(error) => {
                let label = candidate.map(|candidate| candidate.label.as_str());
                self.notes.push(without_prediction(label, &error.message));
                None
            }
        }
    }

    /// All rounds: what the plain runs and each candidate's runs came to.
    fn rounds(
        &mut self,
        candidates: &[Candidate],
        first: &Run,
        progress: &mut Progress,
    ) -> Result<(Runs, Vec<Runs>), Failure> {
        let (mut plain, mut seen) = (Runs::default(), Vec::new());
        seen.resize_with(candidates.len(), Runs::default);
        progress.begin_runs(self.settings.rounds * (1 + candidates.len()));
        for number in 0..self.settings.rounds {
            let counts: Vec<usize> = seen.iter().map(|one| one.seconds.len()).collect();
            let ran = self.round(number, candidates, first, progress, (&mut plain, &mut seen));
            let Err(failure) = ran else { continue };
            if number == 0 {
                return Err(failure);
            }
            // The rounds before stand; what this one began is not to be weighed with them.
            plain.seconds.truncate(number);
            seen.iter_mut().zip(counts).for_each(|(one, count)| one.seconds.truncate(count));
            let rounds = self.settings.rounds;
            let what = format!("ended in round {} of {rounds}: {}", number + 1, failure.message());
            self.notes.push(what.clone());
            self.incomplete = Some(what);
            break;
        }
        progress.end_runs();
        self.notes.extend(not_deterministic(&plain));
        Ok((plain, seen))
    }

    fn round(
        &mut self,
        number: usize,
        candidates: &[Candidate],
        first: &Run,
        progress: &mut Progress,
        (plain, seen): (&mut Runs, &mut [Runs]),
    ) -> Result<(), Failure> {
        let mut finished = Vec::new();
        for turn in round(number, candidates.len()) {
            match turn {
                Turn::Plain => {
                    progress.run("plain");
                    self.turn(&mut self.plain(), first, plain)?;
                    if let Some(failure) = &plain.failure {
                        return Err(Failure::new(format!("a plain run failed: {failure}"))
                            .hint("a study needs a command that succeeds every time"));
                    }
                }
                Turn::Under(index) if seen[index].failure.is_none() => {
                    progress.run(&candidates[index].label);
                    let mut command = self.under(&candidates[index])?;
                    self.turn(&mut command, first, &mut seen[index])?;
                    finished.push(index);
                }
                Turn::Under(_) => progress.run("(failed before)"),
            }
        }
        let latest = *plain.seconds.last().expect("each round has a plain run");
        finished.into_iter().for_each(|index| seen[index].plain.push(latest));
        Ok(())
    }

    fn turn(&self, command: &mut Command, first: &Run, seen: &mut Runs) -> Result<(), Failure> {
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

    /// The fastest right strategy, once more for the timeline: simulated, and recorded for real.
    fn shown(
        &mut self,
        tried: &[Tried],
        recorded: &Trace,
        platform: &Platform,
        progress: &Progress,
    ) -> Option<Shown> {
        let best = best(tried)?;
        progress.step(&format!("recording it under {}", best.candidate.label));
        let simulated = self.predict(recorded, platform, Some(&best.candidate));
        let measured = match self.record_under(&best.candidate) {
            Ok(trace) => Some(trace),
            Err(failure) => {
                self.notes.push(format!("no trace of the reshaped run: {failure}"));
                None
            }
        };
        let simulated = simulated.map(|predicted| predicted.prediction.trace);
        let results = self.settings.results;
        for (name, trace) in [("simulated.iot", &simulated), ("reshaped.iot", &measured)] {
            if let Some(trace) = trace
                && let Err(failure) = trace_file::save(&results.join(name), trace)
            {
                self.notes.push(failure.to_string());
            }
        }
        Some(Shown { label: best.candidate.label.clone(), simulated, measured })
    }

    fn record_under(&self, candidate: &Candidate) -> Result<Trace, Failure> {
        let kept = self.place.aside().join("reshaped.iot");
        let iolab = std::env::current_exe().map_err(Failure::new)?;
        let mut command = Command::new(&iolab);
        command.args(record_to(&kept)).arg("--").arg(&iolab).arg("run");
        for text in candidate.texts() {
            command.arg("--apply").arg(text);
        }
        command.arg("--").args(self.settings.command);
        let run = self.fresh_run(&mut command)?;
        match run.status.success() {
            true => trace_file::load(&kept),
            false => Err(Failure::new(run.errors.last_lines())),
        }
    }
}

fn record_to(path: &Path) -> [OsString; 3] {
    ["record".into(), "-o".into(), path.into()]
}

fn words(command: &[OsString]) -> Vec<String> {
    command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}
