//! One run, from text and objects of Python to a dictionary.

use crate::failure::{Raise, Trouble, error};
use crate::outcome;
use crate::parts::PythonParts;
use iolab_policy::collective::{CollectiveKind, CollectiveSelection};
use iolab_policy::insitu::StrategySpec;
use iolab_policy::insitu::stacking::{self, Consent, Setting};
use iolab_sim::band::{Band, over_ties, tie_seeds};
use iolab_sim::cluster::Order;
use iolab_sim::platform::Platform;
use iolab_sim::scenario::Scenario;
use iolab_sim::workload::{Job, Outcome, Settings, Workload, prepare, recorded, simulate_with};
use iolab_trace::Trace;
use iolab_vocab::{Refusal, Seed};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// A recorded parallel program.
#[pyclass(frozen, module = "iolab")]
pub struct Recording(recorded::Recording);

impl Recording {
    /// The program in a trace.
    pub(crate) fn of(trace: &Trace) -> Result<Recording, Refusal> {
        recorded::Recording::of(trace).map(Recording)
    }
}

#[pymethods]
impl Recording {
    /// Name of the program.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// Processes of the program.
    #[getter]
    fn rank_count(&self) -> u32 {
        self.0.rank_count()
    }
}

/// What runs: a workload as TOML, or a recording.
#[derive(FromPyObject)]
pub(crate) enum Program<'py> {
    Text(String),
    Recorded(Bound<'py, Recording>),
}

/// Runs a program on a platform (as TOML). `cache` is a name or makes layers, `collectives` has a
/// name or a maker by command; `apply` has strategies. The result is the median run of a band, `seeds` and `tie_seed` as on
/// the command line.
#[pyfunction]
#[pyo3(signature = (program, platform, cache, collectives, apply, order, seeds, tie_seed, seed, faults))]
#[allow(clippy::too_many_arguments, reason = "each is a keyword of the package's function")]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    program: Program<'py>,
    platform: &str,
    cache: Option<Bound<'py, PyAny>>,
    collectives: &Bound<'py, PyDict>,
    apply: Vec<String>,
    order: &str,
    seeds: Option<u64>,
    tie_seed: Option<u64>,
    seed: Option<u64>,
    faults: Option<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let platform = Platform::parse(platform).raise(py)?;
    let trouble = Trouble::default();
    let order = order_of(py, order)?;
    let faults = faults.map(|text| Scenario::parse(text).raise(py)).transpose()?;
    let strategies = StrategySpec::parse_each(&apply).raise(py)?;
    stacking::check(&strategies, Setting::Scratch, Consent::default()).raise(py)?;
    let mut settings = Settings { order, faults, strategies, ..Settings::default() };
    let mut parts = PythonParts { cache: None, collectives: Vec::new(), trouble: trouble.clone() };
    match cache {
        Some(cache) if cache.is_callable() => parts.cache = Some(cache.unbind()),
        Some(cache) => settings.cache = Some(cache.extract()?),
        None => {}
    }
    choose(py, collectives, &mut settings.collectives, &mut parts)?;
    if seeds == Some(0) || seeds.is_some_and(|count| count > 1) && tie_seed.is_some() {
        let message = match tie_seed {
            None => "seeds = 0".to_owned(),
            Some(seed) => format!("seeds beside tie_seed = {seed}"),
        };
        return Err(error(py, &message, "give seeds = 1 or more, or tie_seed for a single run"));
    }
    let seeds = tie_seeds(settings.order, seeds, tie_seed.map(Seed));
    let subject = match program {
        Program::Recorded(recording) => Subject::Recorded(recording.unbind()),
        Program::Text(text) => {
            let workload = match seed {
                Some(seed) => Workload::parse_seeded(&text, Seed(seed)),
                None => Workload::parse(&text),
            };
            Subject::Described(Box::new(workload.raise(py)?))
        }
    };
    let outcome = py.detach(|| {
        let run = |tie_seed| {
            let settings = Settings { tie_seed, ..settings.clone() };
            carry_out(subject.job(&platform)?, &platform, &settings, parts.again(), &trouble)
        };
        match parts.is_empty() {
            true => at_once(&seeds, &run),
            false => over_ties(&seeds, run, |outcome| outcome.end.seconds()),
        }
    });
    match (trouble.take(), outcome) {
        (Some(raised), _) => Err(raised),
        (None, outcome) => outcome::dictionary(py, subject.name(), &outcome.raise(py)?),
    }
}

/// What runs, from its beginning for each run.
enum Subject {
    Described(Box<Workload>),
    Recorded(Py<Recording>),
}

impl Subject {
    fn name(&self) -> &str {
        match self {
            Subject::Described(workload) => &workload.name,
            Subject::Recorded(recording) => recording.get().0.name(),
        }
    }

    fn job(&self, platform: &Platform) -> Result<Job, Refusal> {
        match self {
            Subject::Described(workload) => prepare(workload, platform),
            Subject::Recorded(recording) => Ok(recording.get().0.job()),
        }
    }
}

type Ran = Result<Outcome, Refusal>;

/// Runs with all tie seeds, on all cores; only for what never asks the interpreter.
fn at_once(
    seeds: &[Seed],
    run: &(impl Fn(Seed) -> Ran + Sync),
) -> Result<(Outcome, Band), Refusal> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut outcomes: VecDeque<Ran> = VecDeque::new();
    for together in seeds.chunks(cores) {
        outcomes.extend(std::thread::scope(|scope| {
            let running: Vec<_> =
                together.iter().map(|&seed| scope.spawn(move || run(seed))).collect();
            let ended = running.into_iter().map(|one| match one.join() {
                Ok(outcome) => outcome,
                Err(panicked) => std::panic::resume_unwind(panicked),
            });
            ended.collect::<Vec<_>>()
        }));
    }
    let mut next = || outcomes.pop_front().expect("each seed has an outcome");
    over_ties(seeds, |_| next(), |outcome| outcome.end.seconds())
}

/// One run without the interpreter; now and then it is asked for an interrupt.
fn carry_out(
    job: Job,
    platform: &Platform,
    settings: &Settings,
    parts: PythonParts,
    trouble: &Trouble,
) -> Ran {
    simulate_with(job, platform, settings, Box::new(parts), &mut |_| {
        if let Err(raised) = Python::attach(|py| py.check_signals()) {
            trouble.keep(raised);
        }
        match trouble.is_there() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })
}

fn order_of(py: Python<'_>, order: &str) -> PyResult<Order> {
    match order {
        "documented" => Ok(Order::Documented),
        "published" => Ok(Order::Published),
        other => {
            let message = format!("there is no order `{other}` of simultaneous events");
            Err(error(py, &message, "choose from documented, published"))
        }
    }
}

/// Sorts names and makers apart.
fn choose<'py>(
    py: Python<'py>,
    wishes: &Bound<'py, PyDict>,
    choices: &mut CollectiveSelection,
    parts: &mut PythonParts,
) -> PyResult<()> {
    for (command, wish) in wishes {
        let command: String = command.extract()?;
        if !wish.is_callable() {
            let name: String = wish.extract()?;
            choices.choose(&format!("{command}={name}")).raise(py)?;
            continue;
        }
        match CollectiveKind::ALL.into_iter().find(|kind| kind.name() == command) {
            Some(kind) => parts.collectives.push((kind, wish.unbind())),
            None => {
                let message = format!("there is no collective command `{command}`");
                let hint = format!(
                    "choose from {}",
                    CollectiveKind::ALL.map(CollectiveKind::name).join(", ")
                );
                return Err(error(py, &message, &hint));
            }
        }
    }
    Ok(())
}
