//! The loop, step by step: one plain run, one recorded run, findings, predictions, then rounds of
//! plain and reshaped runs, compared.
//!
//! The user's slips come out before anything is touched; from then on every way out puts the user's
//! directory back.

use crate::runs::{Run, Runner, begin, ending};
use crate::same::Same;
use crate::tree::{self, Span};
use crate::tuning::Search;
use crate::workplace::Workplace;
use crate::{Laboratory, StudyError, Watcher};
use iolab_policy::insitu::StrategySpec;
use iolab_policy::insitu::stacking::{self, Consent, Setting};
use iolab_report::advice::Withheld;
use iolab_report::prediction::Predicted;
use iolab_report::study::{
    Candidate, Shown, Study, Tried, best, candidates, conclude, median_interval, plain_missed,
    short_run, span_seconds, why, without_prediction, writes_elsewhere,
};
use iolab_report::{Analysis, Report};
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

/// Of more strategies than that eight rounds cannot tell whether they are faster.
const ADVISED_MAX: usize = 6;

/// A command that is run over and over, and the places that takes.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Predict with this instead of measuring the storage first.
    pub platform: Option<&'a Platform>,
    /// The program and its arguments.
    pub command: &'a [OsString],
    /// The `iolab` that records it and runs it under strategies.
    pub iolab: &'a Path,
    /// Where the user stands.
    pub start: &'a Path,
    /// Where the command writes.
    pub directory: &'a Path,
    /// Where the report goes.
    pub results: &'a Path,
    /// How files are compared that may be the same with other bytes.
    pub same: &'a [Same],
}

/// What a study tries.
#[derive(Clone, Copy, Debug)]
pub struct Trials<'a> {
    /// Rounds; each runs the command plain and once under every strategy.
    pub rounds: usize,
    /// Strategies, or stacks of them, that the user asks for.
    pub wanted: &'a [String],
    /// Which others are tried, beside `null`.
    pub others: Others<'a>,
}

/// Which strategies are tried that nobody has asked for.
#[derive(Clone, Copy, Debug)]
pub enum Others<'a> {
    /// None.
    Nothing,
    /// Remedies of the findings, and what many calls of a kind call for.
    Remedies,
    /// The most promising stacks that the recorded run gives reason for, as a tuning has them.
    Advised(Search<'a>),
}

impl Job<'_> {
    /// Studies the command, and gives the user's directory back as it was.
    ///
    /// # Errors
    /// That the command, the strategies or the directories will not do, or that the user has stopped it;
    /// what comes between two rounds leaves the rounds before, see [`Study::incomplete`].
    pub fn study(
        &self,
        trials: &Trials,
        laboratory: &dyn Laboratory,
        watcher: &mut dyn Watcher,
    ) -> Result<Study, StudyError> {
        // Slips of the user come out before anything is touched.
        for text in trials.wanted {
            Candidate::parse(text, &self.directory.to_string_lossy(), "asked for")?;
        }
        self.in_a_workplace(laboratory, |under_way| under_way.study(trials, watcher))
    }

    /// Sets the user's directory aside, and gives it back whatever comes of it.
    pub(crate) fn in_a_workplace<T>(
        &self,
        laboratory: &dyn Laboratory,
        work: impl FnOnce(Loop) -> Result<T, StudyError>,
    ) -> Result<T, StudyError> {
        let runner = Runner::new()?;
        let place = Workplace::claim(self.directory, self.results)?;
        let outcome = work(Loop {
            job: self,
            laboratory,
            place: &place,
            runner: &runner,
            has_ranks: false,
            notes: Vec::new(),
            incomplete: None,
        });
        place.restore()?;
        outcome
    }
}

/// A study under way.
pub(crate) struct Loop<'a> {
    pub(crate) job: &'a Job<'a>,
    pub(crate) laboratory: &'a dyn Laboratory,
    pub(crate) place: &'a Workplace,
    pub(crate) runner: &'a Runner,
    /// The command is a parallel program, as its recorded run shows.
    has_ranks: bool,
    pub(crate) notes: Vec<String>,
    pub(crate) incomplete: Option<String>,
}

impl Loop<'_> {
    fn study(mut self, trials: &Trials, watcher: &mut dyn Watcher) -> Result<Study, StudyError> {
        begin(watcher);
        let first = self.first_run()?;
        watcher.step("recording it");
        let recorded = self.record(&first)?;
        let report = Analysis::of(&recorded);
        self.notes.extend(writes_elsewhere(&recorded, self.job.directory));
        let platform = self.platform(watcher)?;
        let mut candidates = self.candidates(trials, &recorded, &report)?;
        if let Others::Advised(search) = &trials.others {
            let advised = self.advised(search, &recorded, &first, &platform, watcher)?;
            let known = |it: &Candidate| candidates.iter().any(|other| other.stack == it.stack);
            let more: Vec<_> = advised.into_iter().filter(|it| !known(it)).collect();
            candidates.extend(more);
        }
        watcher.step("predicting");
        let plain_simulated = self.predict(&recorded, &platform, None);
        let predicted: Vec<_> = (candidates.iter())
            .map(|candidate| self.predict(&recorded, &platform, Some(candidate)))
            .map(|predicted| predicted.map(|predicted| predicted.band))
            .collect();
        self.notes.extend(plain_simulated.as_ref().and_then(short_run));
        let plain_predicted = plain_simulated.map(|predicted| predicted.band);
        let (plain, seen) = self.rounds(trials.rounds, &candidates, &first, watcher)?;
        if let Some(band) = plain_predicted {
            let measured = median_interval(&plain.seconds);
            self.notes.extend(plain_missed(measured, band, span_seconds(&recorded)));
        }
        let tried = conclude(candidates, seen, &plain, plain_predicted, &predicted);
        let shown = match self.incomplete {
            None => self.shown(&tried, &recorded, &platform, watcher),
            Some(_) => None,
        };
        Ok(Study {
            command: words(self.job.command),
            directory: self.job.directory.to_owned(),
            rounds: trials.rounds,
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
    pub(crate) fn plain(&self) -> Command {
        let mut command = Command::new(&self.job.command[0]);
        command.args(&self.job.command[1..]);
        command
    }

    /// The command behind `iolab` with these arguments.
    fn behind(&self, arguments: &[OsString]) -> Command {
        let mut command = Command::new(self.job.iolab);
        command.args(arguments).arg("--").args(self.job.command);
        command
    }

    pub(crate) fn under(&self, stack: &[StrategySpec]) -> Command {
        self.behind(&run_under(stack))
    }

    pub(crate) fn fresh_run(&self, command: &mut Command) -> Result<Run, StudyError> {
        // What nobody touches afterwards has the time of its copy.
        let since = SystemTime::now();
        self.place.refresh()?;
        let run = self.runner.run(command, self.job.start)?;
        Ok(Run { span: Some(Span { since, until: SystemTime::now() }), ..run })
    }

    /// The run everything else is compared with.
    pub(crate) fn first_run(&self) -> Result<Run, StudyError> {
        let run = self.fresh_run(&mut self.plain())?;
        if !run.status.success() {
            let said = run.errors.last_lines();
            let what = format!("the command itself ended with {}: {said}", ending(run.status));
            return Err(StudyError::new(what)
                .hint("a study needs a command that succeeds; try it without iolab first"));
        }
        self.place.collect("reference")?;
        Ok(run)
    }

    /// Everything in which what was just left behind differs from the first run.
    pub(crate) fn differences(
        &self,
        run: &Run,
        first: &Run,
    ) -> Result<BTreeMap<String, String>, StudyError> {
        let left = self.place.collect("last")?;
        let reference = self.place.aside().join("reference");
        let span = |run: &Run| run.span.expect("a run in a fresh place has its time");
        let before = tree::Left { tree: &reference, span: span(first) };
        let after = tree::Left { tree: &left, span: span(run) };
        let files = tree::differences(before, after).map_err(StudyError::new)?;
        let is_same =
            |name: &Path| self.job.same.iter().any(|same| same.holds(name, &reference, &left));
        let mut found: BTreeMap<String, String> = (files.into_iter())
            .filter(|(name, _)| !is_same(name))
            .map(|(name, what)| (name.display().to_string(), what))
            .collect();
        let is_reordered = self.has_ranks && run.output.has_lines_of(&first.output);
        if run.output != first.output && !is_reordered {
            found.insert("stdout".to_owned(), "differs".to_owned());
        }
        tree::remove(&left).map_err(StudyError::new)?;
        Ok(found)
    }

    /// Records the command; again, when something else slowed the machine down meanwhile, for a
    /// prediction starts from the times in the trace.
    pub(crate) fn record(&mut self, first: &Run) -> Result<Trace, StudyError> {
        let mut best = self.record_once(&[], first)?;
        for _ in 1..RECORDINGS_MAX {
            if span_seconds(&best) <= DISTURBED * first.seconds {
                break;
            }
            let next = self.record_once(&[], first)?;
            if span_seconds(&next) < span_seconds(&best) {
                best = next;
            }
        }
        self.laboratory.save(&self.place.results().join("recorded.iot"), &best)?;
        Ok(best)
    }

    /// Records a parallel program once more, with the calls of its layers: a prediction starts from a run that was
    /// disturbed by nothing else, and what strategies of these layers would find to do is seen in no other. None
    /// of a program without ranks, or where that fails.
    pub(crate) fn record_layers(&mut self, recorded: &Trace, first: &Run) -> Option<Trace> {
        if recorded.header.rank_count() == 0 {
            return None;
        }
        match self.record_once(&["--layer", "posix,stdio,mpi,hdf5,netcdf"], first) {
            Ok(trace) => Some(trace),
            Err(failure) => {
                self.notes
                    .push(format!("calls of MPI-IO, HDF5 and NetCDF are not known: {failure}"));
                None
            }
        }
    }

    fn record_once(&mut self, options: &[&str], first: &Run) -> Result<Trace, StudyError> {
        let kept = self.place.aside().join("recorded.iot");
        let mut arguments = record_to(&kept).to_vec();
        arguments.extend(options.iter().map(OsString::from));
        let run = self.fresh_run(&mut self.behind(&arguments))?;
        if !run.status.success() {
            let said = run.errors.last_lines();
            return Err(StudyError::new(format!(
                "recording failed ({}): {said}",
                ending(run.status)
            )));
        }
        let trace = self.laboratory.load(&kept)?;
        self.has_ranks = trace.header.rank_count() > 1;
        let differences = self.differences(&run, first)?;
        if let Some((name, what)) = differences.first_key_value() {
            self.notes.push(format!("in the recorded run {name} {what}"));
        }
        Ok(trace)
    }

    pub(crate) fn platform(&self, watcher: &dyn Watcher) -> Result<Platform, StudyError> {
        if let Some(platform) = self.job.platform {
            return Ok(platform.clone());
        }
        watcher.step("measuring the storage");
        self.laboratory.measure(self.place.aside(), self.place.results())
    }

    fn candidates(
        &self,
        trials: &Trials,
        trace: &Trace,
        report: &Report,
    ) -> Result<Vec<Candidate>, StudyError> {
        let directory = self.job.directory.to_string_lossy();
        let remedies: Vec<String> = (report.findings.iter())
            .filter_map(|finding| finding.remedy.as_ref()?.strategy.clone())
            .collect();
        let nothing = Trace::default();
        let (remedies, trace): (&[String], &Trace) = match trials.others {
            Others::Remedies => (&remedies, trace),
            Others::Nothing | Others::Advised(_) => (&[], &nothing),
        };
        Ok(candidates(trials.wanted, remedies, trace, &directory)?)
    }

    /// The most promising stacks that a study can compare, and a note of each that is left out.
    fn advised(
        &mut self,
        search: &Search,
        recorded: &Trace,
        first: &Run,
        platform: &Platform,
        watcher: &dyn Watcher,
    ) -> Result<Vec<Candidate>, StudyError> {
        let layers = self.record_layers(recorded, first);
        let searched = self.search(search, recorded, layers.as_ref(), platform, watcher)?;
        for Withheld { reason, flag } in &searched.found.withheld {
            self.notes.push(format!("left out, {flag} would let it in: {reason}"));
        }
        let mut advised = Vec::new();
        for (candidate, _) in searched.field {
            let label = candidate.label();
            match stacking::check(&candidate.stack, Setting::Compared, Consent::default()) {
                Ok(_) if advised.len() < ADVISED_MAX => {
                    advised.push(Candidate { label, stack: candidate.stack, reason: "advised" });
                }
                Ok(_) => {}
                Err(refusal) => {
                    self.notes.push(format!("{label} is left out: {}", refusal.message));
                }
            }
        }
        Ok(advised)
    }

    fn predict(
        &mut self,
        trace: &Trace,
        platform: &Platform,
        candidate: Option<&Candidate>,
    ) -> Option<Predicted> {
        let stack = candidate.map_or(&[][..], |candidate| &candidate.stack);
        match self.laboratory.predict(trace, platform, stack) {
            Ok(predicted) => Some(predicted),
            Err(error) => {
                let label = candidate.map(|candidate| candidate.label.as_str());
                self.notes.push(without_prediction(label, &error.message));
                None
            }
        }
    }

    /// The fastest right strategy, once more for the timeline: simulated, and recorded for real.
    fn shown(
        &mut self,
        tried: &[Tried],
        recorded: &Trace,
        platform: &Platform,
        watcher: &dyn Watcher,
    ) -> Option<Shown> {
        let best = best(tried)?;
        watcher.step(&format!("recording it under {}", best.candidate.label));
        let simulated = self.predict(recorded, platform, Some(&best.candidate));
        let measured = match self.record_under(&best.candidate) {
            Ok(trace) => Some(trace),
            Err(failure) => {
                self.notes.push(format!("no trace of the reshaped run: {failure}"));
                None
            }
        };
        let simulated = simulated.map(|predicted| predicted.prediction.trace);
        let results = self.place.results();
        for (name, trace) in [("simulated.iot", &simulated), ("reshaped.iot", &measured)] {
            if let Some(trace) = trace
                && let Err(failure) = self.laboratory.save(&results.join(name), trace)
            {
                self.notes.push(failure.to_string());
            }
        }
        let why = measured.as_ref().and_then(|measured| why(best, recorded, measured));
        Some(Shown { label: best.candidate.label.clone(), simulated, measured, why })
    }

    fn record_under(&self, candidate: &Candidate) -> Result<Trace, StudyError> {
        let kept = self.place.aside().join("reshaped.iot");
        let iolab = self.job.iolab;
        let mut command = Command::new(iolab);
        command.args(record_to(&kept)).arg("--").arg(iolab).args(run_under(&candidate.stack));
        command.arg("--").args(self.job.command);
        let run = self.fresh_run(&mut command)?;
        match run.status.success() {
            true => self.laboratory.load(&kept),
            false => Err(StudyError::new(run.errors.last_lines())),
        }
    }
}

/// `iolab run` under a candidate. Whoever studies a strategy has consented to what it may do: the files
/// are compared, and go.
fn run_under(stack: &[StrategySpec]) -> Vec<OsString> {
    let mut arguments = vec![OsString::from("run"), "--quiet".into()];
    for spec in stack {
        arguments.extend(["--apply".into(), OsString::from(&spec.text)]);
    }
    let flags = Consent::to(stack).flags();
    arguments.extend(flags.flat_map(|flag| flag.split(' ')).map(OsString::from));
    arguments
}

fn record_to(path: &Path) -> [OsString; 3] {
    ["record".into(), "-o".into(), path.into()]
}

pub(crate) fn words(command: &[OsString]) -> Vec<String> {
    command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}
