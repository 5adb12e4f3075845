//! One run, from text and objects of Python to a dictionary.

use crate::failure::{Raise, Trouble, error};
use crate::outcome;
use crate::parts::PythonParts;
use iolab_policy::collective::{Choices, Serves};
use iolab_sim::cluster::{Order, OwnParts};
use iolab_sim::guest::SimulationError;
use iolab_sim::platform::Platform;
use iolab_sim::scenario::Scenario;
use iolab_sim::workload::{Job, Outcome, Settings, Workload, prepare, recorded, simulate_with};
use iolab_trace::import::hdtrace::{Project, TraceFile};
use iolab_vocab::Seed;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::ControlFlow;

/// A recorded parallel program.
#[pyclass(frozen, module = "iolab")]
pub struct Recording(recorded::Recording);

#[pymethods]
impl Recording {
    /// Names of the trace files that belong to a project of HDTrace called `stem.proj`.
    #[staticmethod]
    fn hdtrace_names(
        py: Python<'_>,
        file: &str,
        project: &[u8],
        stem: &str,
    ) -> PyResult<Vec<String>> {
        Ok(Project::parse(file, project).raise(py)?.trace_names(stem))
    }

    /// Takes a project of HDTrace and its trace files in that order, each with its name.
    #[staticmethod]
    fn hdtrace(
        py: Python<'_>,
        file: &str,
        project: &[u8],
        traces: Vec<(String, Vec<u8>)>,
    ) -> PyResult<Recording> {
        let project = Project::parse(file, project).raise(py)?;
        let traces: Vec<_> = traces.iter().map(|(name, bytes)| TraceFile { name, bytes }).collect();
        let trace = project.import(&traces).raise(py)?;
        Ok(Recording(recorded::Recording::of(&trace).raise(py)?))
    }

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
/// name or a maker by command.
#[pyfunction]
#[pyo3(signature = (program, platform, cache, collectives, order, tie_seed, seed, faults))]
#[allow(clippy::too_many_arguments, reason = "each is a keyword of the package's function")]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    program: Program<'py>,
    platform: &str,
    cache: Option<Bound<'py, PyAny>>,
    collectives: &Bound<'py, PyDict>,
    order: &str,
    tie_seed: u64,
    seed: Option<u64>,
    faults: Option<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let platform = Platform::parse(platform).raise(py)?;
    let trouble = Trouble::default();
    let mut settings = Settings { tie_seed: Seed(tie_seed), ..Settings::default() };
    settings.order = order_of(py, order)?;
    settings.faults = faults.map(|text| Scenario::parse(text).raise(py)).transpose()?;
    let mut parts = PythonParts { cache: None, collectives: Vec::new(), trouble: trouble.clone() };
    match cache {
        Some(cache) if cache.is_callable() => parts.cache = Some(cache.unbind()),
        Some(cache) => settings.cache = Some(cache.extract()?),
        None => {}
    }
    choose(py, collectives, &mut settings.collectives, &mut parts)?;
    let job = match program {
        Program::Recorded(recording) => recording.get().0.job(),
        Program::Text(text) => {
            let workload = match seed {
                Some(seed) => Workload::parse_seeded(&text, Seed(seed)),
                None => Workload::parse(&text),
            };
            prepare(&workload.raise(py)?, &platform).raise(py)?
        }
    };
    let outcome = py.detach(|| carry_out(job, &platform, &settings, Box::new(parts), &trouble));
    match (trouble.take(), outcome) {
        (Some(raised), _) => Err(raised),
        (None, outcome) => outcome::dictionary(py, &outcome.raise(py)?),
    }
}

/// Runs without the interpreter; now and then it is asked for an interrupt.
fn carry_out(
    job: Job,
    platform: &Platform,
    settings: &Settings,
    parts: Box<dyn OwnParts>,
    trouble: &Trouble,
) -> Result<Outcome, SimulationError> {
    simulate_with(job, platform, settings, parts, &mut |_| {
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
    choices: &mut Choices,
    parts: &mut PythonParts,
) -> PyResult<()> {
    for (command, wish) in wishes {
        let command: String = command.extract()?;
        if !wish.is_callable() {
            let name: String = wish.extract()?;
            choices.choose(&format!("{command}={name}")).raise(py)?;
            continue;
        }
        match Serves::ALL.into_iter().find(|serves| serves.name() == command) {
            Some(serves) => parts.collectives.push((serves, wish.unbind())),
            None => {
                let message = format!("there is no collective command `{command}`");
                let hint = format!("choose from {}", Serves::ALL.map(Serves::name).join(", "));
                return Err(error(py, &message, &hint));
            }
        }
    }
    Ok(())
}
