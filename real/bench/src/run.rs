//! Runs a plan: the same code on every rank, results on rank 0.
//!
//! Repetitions are rounds over all cases, so that what drifts meets all of them alike. For every case
//! of a round: make what has to be there (setup), bring the caches into their
//! state, run the timed phases, verify. Ranks agree after every stage, so an error on one ends
//! the run on all, and the files are removed whatever happens.

use crate::case_setup::first_version;
use crate::cell::{Abilities, refusal};
use crate::failure::{BenchError, agree};
use crate::files::{Cleaning, TestFiles, Uses};
use crate::found::other_than;
use crate::plan::{Case, Plan, Temporal};
use crate::predict::predict;
use crate::progress::{KeptRecords, Progress, end_early};
use crate::record_file::RecordFile;
use crate::runner::Runner;
use crate::steps::{self, Step, steps};
use crate::surroundings::{clock_identity, processors, surroundings};
use iolab_backend::Needs;
use iolab_comm::{Comm, PredictedComm, largest};
use iolab_host::tick::{TickClock, monotonic};
use iolab_report::bench::{FORMAT_VERSION, Measurement, Outcome, Refused, summarise};
use iolab_sim::platform::Platform;
use std::time::Duration;

/// Runs all cases of the plan on its `files`. `observe` is told on rank 0 how it goes. A run that
/// fails after something was measured has an outcome on rank 0, which says so.
///
/// # Errors
/// The first error of any rank, on every rank.
pub fn run(
    plan: &Plan,
    comm: &dyn Comm,
    abilities: &Abilities,
    files: &TestFiles,
    observe: &dyn Fn(Progress),
) -> Result<Outcome, BenchError> {
    let traces: Vec<_> = plan.cases.iter().map(|case| case.spatial.fingerprint()).collect();
    ranks_agree(&format!("{}\n{traces:?}", plan.text), comm)?;
    let first = comm.rank().0 == 0;
    let _cleaning = Cleaning(Some(files).filter(|_| first));
    files.make(comm, Uses::of(plan, comm.size(), abilities))?;
    let clock = TickClock::calibrate(Duration::from_millis(5));
    let barrier_cost_ns = barrier_cost(comm)?;
    let records = KeptRecords::of(record_file(plan, comm)?);
    let one_clock = share_a_clock(comm)?;
    let runner = Runner { plan, comm, clock, one_clock, barrier_cost_ns, files, records: &records };
    let (runs, refused) = sorted_out(plan, comm.size(), abilities);
    let mut outcome = begun(plan, comm, refused, &clock);
    if first {
        observe(Progress::Begun(&outcome, &records));
    }
    let measured = runner.all_cases(&runs, &mut outcome, observe);
    let measured = measured.and_then(|()| agree(comm, records.finish()));
    match measured {
        Ok(()) => outcome.summaries = summarise(&outcome),
        Err(error) if !first || outcome.measurements.is_empty() => return Err(error),
        Err(error) => {
            // What was recorded of it is as good as what was measured.
            let _ = records.finish();
            end_early(&mut outcome, plan, &error.to_string());
        }
    }
    Ok(outcome)
}

/// The outcome without measurements.
fn begun(plan: &Plan, comm: &dyn Comm, refused: Vec<Refused>, clock: &TickClock) -> Outcome {
    Outcome {
        format: "iolab-bench".to_owned(),
        format_version: FORMAT_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        plan: plan.text.clone(),
        seed: plan.seed.0,
        ranks: comm.size(),
        communication: comm.kind().to_owned(),
        clock: clock.source().to_owned(),
        clock_cost_ns: clock.cost(),
        surroundings: surroundings(&plan.target),
        warnings: warnings(comm),
        summaries: Vec::new(),
        measurements: Vec::new(),
        refused,
        incomplete: None,
    }
}

/// A case that runs, with the platform where it is predicted.
type Planned<'a> = (&'a Case, Option<&'a Platform>);

/// The cases that run, and those that do not.
fn sorted_out<'a>(
    plan: &'a Plan,
    ranks: u32,
    abilities: &'a Abilities,
) -> (Vec<Planned<'a>>, Vec<Refused>) {
    let (mut runs, mut refused) = (Vec::new(), Vec::new());
    for case in &plan.cases {
        match refusal(case, plan, ranks, abilities) {
            Some(reason) => refused.push(refused_case(case, reason)),
            None => {
                let platform = abilities.platform.as_ref();
                let platform = platform.filter(|_| case.method.needs == Needs::Platform);
                runs.push((case, platform));
            }
        }
    }
    (runs, refused)
}

/// Whether the stamps of all ranks are of one clock.
pub(crate) fn share_a_clock(comm: &dyn Comm) -> Result<bool, BenchError> {
    let heard = comm.gather(clock_identity().as_bytes())?;
    Ok(heard.iter().all(|other| *other == heard[0]))
}

/// The file of single operations, on rank 0 when one is wanted.
fn record_file(plan: &Plan, comm: &dyn Comm) -> Result<Option<RecordFile>, BenchError> {
    let wanted = plan.records.as_ref().filter(|_| comm.rank().0 == 0);
    let made = wanted.map(|path| RecordFile::create(path)).transpose();
    agree(comm, made.as_ref().map(|_| ()).map_err(Clone::clone))?;
    Ok(made.ok().flatten())
}

fn refused_case(case: &Case, reason: String) -> Refused {
    Refused {
        test: case.test.clone(),
        spatial: case.spatial.text(),
        temporal: case.temporal.name().to_owned(),
        method: case.method.name.to_owned(),
        reason,
    }
}

pub(crate) fn warnings(comm: &dyn Comm) -> Vec<String> {
    let (ranks, processors) = (comm.size() as usize, processors());
    let mut warnings = Vec::new();
    if ranks > processors && comm.kind() != PredictedComm::KIND {
        warnings.push(format!(
            "{ranks} ranks share {processors} processors: times contain waiting for the processor, \
             and MPICH's collectives may take milliseconds each"
        ));
    }
    warnings
}

/// All ranks must have read the same plan with the same version.
pub(crate) fn ranks_agree(plan: &str, comm: &dyn Comm) -> Result<(), BenchError> {
    let said = format!("{}\n{plan}", env!("CARGO_PKG_VERSION"));
    let heard = comm.gather(said.as_bytes())?;
    match heard.iter().position(|other| *other != heard[0]) {
        None => Ok(()),
        Some(rank) => Err(BenchError::OnRank {
            rank: rank as u32,
            message: "has another plan, trace or version of iolab than rank 0".to_owned(),
            hint: "start all ranks with the same command and plan file".to_owned(),
        }),
    }
}

/// The median of some barriers that all ranks enter at once.
fn barrier_cost(comm: &dyn Comm) -> Result<u64, BenchError> {
    let mut costs = Vec::new();
    for _ in 0..21 {
        let start = monotonic();
        comm.barrier()?;
        costs.push(monotonic() - start);
    }
    costs.sort_unstable();
    Ok(costs[costs.len() / 2])
}

impl Runner<'_> {
    /// Measures repetition by repetition, case by case.
    fn all_cases(
        &self,
        runs: &[Planned],
        outcome: &mut Outcome,
        observe: &dyn Fn(Progress),
    ) -> Result<(), BenchError> {
        let first = self.comm.rank().0 == 0;
        for repetition in 0..self.plan.repetitions {
            // Whether the case before left what it should have: nobody reads what was found wrong.
            let mut sound = false;
            for (index, (case, platform)) in runs.iter().enumerate() {
                let before = runs[..index].last().filter(|_| sound);
                let written = before.filter(|(before, _)| case.reads_what(before, self.plan));
                let phases = match platform {
                    // The model is deterministic: once is enough.
                    Some(_) if repetition > 0 => continue,
                    Some(platform) => self.predicted(case, platform)?,
                    None => self.case(case, index, written.is_some(), repetition)?,
                };
                phases.iter().filter(|_| first).for_each(|one| observe(Progress::Measured(one)));
                sound = phases.iter().all(|phase| phase.invalid.is_none());
                outcome.measurements.extend(phases);
            }
        }
        Ok(())
    }

    /// One process is enough to predict what all ranks would do.
    fn predicted(&self, case: &Case, platform: &Platform) -> Result<Vec<Measurement>, BenchError> {
        let first = self.comm.rank().0 == 0;
        let phases = match first {
            true => predict(case, self.plan, self.comm.size(), platform),
            false => Ok(Vec::new()),
        };
        agree(self.comm, phases.as_ref().map(|_| ()).map_err(Clone::clone))?;
        Ok(phases.unwrap_or_default())
    }

    /// One repetition of a case; `index` is its place among those that run. With `written` the case
    /// before it has left what this one is to read.
    fn case(
        &self,
        case: &Case,
        index: usize,
        written: bool,
        repetition: u32,
    ) -> Result<Vec<Measurement>, BenchError> {
        if case.temporal == Temporal::Metadata {
            return self.metadata(case, repetition);
        }
        let writer = if written { index - 1 } else { index };
        let built = self.scene(case, first_version(writer, repetition));
        agree(self.comm, built.as_ref().map(|_| ()).map_err(Clone::clone))?;
        let Ok(mut scene) = built else { return Ok(Vec::new()) };
        scene.noncontiguous = largest(self.comm, scene.noncontiguous.into())? > 0;
        scene.undefined_gaps = written && scene.may_fill_gaps();
        let existing = self.files.existing() && !written;
        if existing && self.plan.verify && case.method.keeps_data {
            scene.before = self.found_version(&scene)?;
            scene.version = other_than(scene.before, scene.version);
        }
        let mut cache = String::new();
        let mut data = "";
        let mut measurements = Vec::new();
        for step in steps(case.temporal) {
            match step {
                // What exists is what is read.
                Step::Setup if existing => {
                    // Of a file of none of our versions everything is wrong.
                    scene.before = Some(scene.before.unwrap_or(scene.version));
                    data = "as it was found";
                }
                Step::Setup if written => {
                    scene.before = Some(scene.version);
                    data = "as the pattern wrote it";
                }
                Step::Setup if case.method.keeps_data => {
                    self.setup(&mut scene)?;
                    scene.before = Some(scene.version);
                    data = "written in one piece";
                }
                Step::Caches if case.method.keeps_data => cache = self.caches(&scene)?,
                Step::Setup | Step::Caches => {}
                Step::Timed { name, work, fresh, generation } => {
                    let label = steps::label(name, work, fresh, &cache);
                    let scene = &mut scene;
                    let mut phase =
                        self.phase(scene, work, fresh, generation, &label, repetition)?;
                    if !data.is_empty() {
                        phase.settings.insert("data".to_owned(), data.to_owned());
                    }
                    measurements.push(phase);
                    scene.before = Some(scene.after(work, generation));
                    // What a second reading finds is what the first left.
                    cache = format!("after {name}");
                }
            }
        }
        Ok(measurements)
    }
}
