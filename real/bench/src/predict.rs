//! The same plan predicted on a platform instead of run: the pattern's operations become the
//! programs of a simulated cluster, and its virtual clock gives what a real one would have given.
//!
//! The phases are those of a run: open, barrier, operations, sync, barrier, close, timed by the same
//! rule. An operation is one request, with a list of extents where it is not contiguous. The model
//! has no page cache on the clients, so every read is a cold one. Each phase is told by its median
//! over the usual number of orders of simultaneous events, with its range; every run is
//! deterministic, so one repetition says all. No file is touched.

mod predicted_program;

use crate::cache::CacheState;
use crate::phase::named;
use crate::plan::{Case, Plan};
use crate::steps::{self, Step, steps};
use iolab_policy::collective::catalog::CollectiveSelection;
use iolab_report::bench::{Measurement, PhaseLabel, measurement};
use iolab_sim::band::tie_seeds;
use iolab_sim::cluster::{Cluster, FileState, Order, Setup};
use iolab_sim::platform::Platform;
use iolab_sim::queue::Ordered;
use iolab_vocab::{Rank, Seed};
use predicted_program::{Phase, PhasePlan, PredictedProgram};

/// Why a case cannot be predicted, if it cannot.
pub(crate) fn refusal(
    case: &Case,
    plan: &Plan,
    ranks: u32,
    platform: Option<&Platform>,
) -> Option<String> {
    let method = case.method.name;
    let Some(platform) = platform else {
        return Some(format!("{method} needs a platform: --platform NAME"));
    };
    if let Err(error) = platform.check() {
        return Some(format!("{} is no cluster: {}", platform.name, error.message));
    }
    let clients = platform.client_count();
    if clients < u64::from(ranks) {
        return Some(format!("{} has {clients} clients, {ranks} ranks are wanted", platform.name));
    }
    match () {
        () if plan.cache == CacheState::Warm => {
            Some(format!("the clients of {} have no page cache to be warm", platform.name))
        }
        () if plan.time_limit > 0.0 => Some("a prediction has no time limit".to_owned()),
        () => None,
    }
}

/// What every phase of the case would measure.
///
/// # Errors
/// A message and a way out, when pattern and platform do not fit.
pub(crate) fn predict(
    case: &Case,
    plan: &Plan,
    ranks: u32,
    platform: &Platform,
) -> Result<Vec<Measurement>, (String, String)> {
    let mut runs = Vec::new();
    for tie_seed in tie_seeds(Order::Documented, None, None) {
        runs.push(rehearse(case, plan, ranks, platform, tie_seed)?);
    }
    let count = runs.first().map_or(0, Vec::len);
    Ok((0..count).map(|phase| median(runs.iter().map(|run| &run[phase]).collect())).collect())
}

/// The run of a phase that is in the middle, and what the others took.
fn median(mut runs: Vec<&Measurement>) -> Measurement {
    runs.sort_by_key(|run| run.transfer_ns);
    let mut chosen = runs[(runs.len() - 1) / 2].clone();
    chosen.predicted_range_ns = Some((runs[0].transfer_ns, runs[runs.len() - 1].transfer_ns));
    chosen
}

/// The phases in one order of simultaneous events.
fn rehearse(
    case: &Case,
    plan: &Plan,
    ranks: u32,
    platform: &Platform,
    tie_seed: Seed,
) -> Result<Vec<Measurement>, (String, String)> {
    let pattern = case.pattern(ranks, plan.seed).map_err(|error| (error.message, error.hint))?;
    let own_file = case.own_file(pattern.as_ref());
    let end = (0..ranks).map(|rank| pattern.operations(case.rank(Rank(rank)))).max().unwrap_or(0);
    let exists = !matches!(steps(case.temporal).first(), Some(Step::Timed { fresh: true, .. }));
    let bytes = if exists { case.header + pattern.file_bytes() } else { 0 };
    let files = if own_file { ranks } else { 1 };
    let (acts, labels): (Vec<Phase>, Vec<PhaseLabel>) = acts(case, plan).into_iter().unzip();
    let phase_plan = PhasePlan { case: case.clone(), pattern, ranks, own_file, end, acts };
    let (program, results) = PredictedProgram::new(phase_plan);
    let hinted = case.hints.iter().find(|(key, _)| key == "cache");
    let setup = Setup {
        order: Order::Documented,
        cache: hinted.map(|(_, layer)| layer.clone()),
        collectives: CollectiveSelection::default(),
        files: vec![FileState { bytes }; files as usize],
        programs: vec![Box::new(program)],
    };
    let told = |message: String, hint: &str| (message, hint.to_owned());
    let mut cluster = Cluster::build(platform, setup, Ordered::new(tie_seed))
        .map_err(|error| told(error.message, &error.hint))?;
    cluster.run().map_err(|error| told(error.message(), error.hint()))?;
    let phases = results.lock().map_err(|_| told("the prediction broke off".into(), ""))?;
    let measured = phases.iter().zip(&labels).map(|(phase, label)| {
        let mut result = measurement(&phase.times(), label, 0, true);
        result.predicted = Some(platform.name.clone());
        named(&mut result, case, plan, 0);
        result
    });
    Ok(measured.collect())
}

/// The timed phases of a case, with what is told about each.
fn acts(case: &Case, plan: &Plan) -> Vec<(Phase, PhaseLabel)> {
    let mut acts = Vec::new();
    for step in steps(case.temporal) {
        let Step::Timed { name, work, fresh, .. } = step else { continue };
        let reading = work == [steps::Act::Read];
        let works = work.iter().map(|act| act.work(case, plan.seed)).collect();
        let act = Phase { works, reading, sync: plan.sync && !reading };
        acts.push((act, steps::label(name, work, fresh, "cold")));
    }
    acts
}
