//! Simulator and traces for Python: a thin layer under the package `iolab`.
//!
//! Text and plain values come in, plain values go out; the package in `python/iolab` gives them
//! types and names. Runs leave the interpreter to others, except while a policy written in Python
//! is asked. Whatever is wrong becomes `iolab.Error` with a way out.

mod cache;
mod collective;
mod failure;
mod outcome;
mod parts;
mod run;
mod traces;

use failure::{Raise, error};
use iolab_policy::cache::catalog;
use iolab_policy::collective::CollectiveKind;
use iolab_sim::platform::{LOCAL_PRESETS, PRESETS, Platform};
use iolab_sim::workload::Workload;
use pyo3::prelude::*;

/// The names and texts of the platforms that come along.
#[pyfunction]
fn presets() -> Vec<(&'static str, &'static str)> {
    PRESETS.iter().chain(LOCAL_PRESETS).copied().collect()
}

/// Names and summaries of the cache layers.
#[pyfunction]
fn caches() -> Vec<(&'static str, &'static str)> {
    catalog::ROWS.iter().map(|row| (row.name, row.summary)).collect()
}

/// Commands, names and summaries of the collective algorithms; for each command the default first.
#[pyfunction]
fn collectives() -> Vec<(&'static str, &'static str, &'static str)> {
    let of = |kind: CollectiveKind| {
        kind.rows().map(move |row| (kind.name(), row.name, row.summary)).collect::<Vec<_>>()
    };
    CollectiveKind::ALL.into_iter().flat_map(of).collect()
}

/// Refuses a text that is no platform.
#[pyfunction]
fn check_platform(py: Python<'_>, text: &str) -> PyResult<()> {
    Platform::parse(text).map(|_| ()).raise(py)
}

/// Refuses a text that is no workload.
#[pyfunction]
fn check_workload(py: Python<'_>, text: &str) -> PyResult<()> {
    Workload::parse(text).map(|_| ()).raise(py)
}

/// What was a dictionary in Python, as TOML.
#[pyfunction]
fn toml_of_json(py: Python<'_>, json: &str) -> PyResult<String> {
    let hint = "use dictionaries with text keys, lists, text, numbers and booleans, no None";
    let value: toml::Value = serde_json::from_str(json)
        .map_err(|wrong| error(py, &format!("this cannot be written as TOML: {wrong}"), hint))?;
    toml::to_string(&value)
        .map_err(|wrong| error(py, &format!("this cannot be written as TOML: {wrong}"), hint))
}

/// What the package `iolab` is built on; not for direct use.
#[pymodule]
fn _iolab(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<cache::CacheEvent>()?;
    module.add_class::<cache::CacheAction>()?;
    module.add_class::<collective::CollectiveAction>()?;
    module.add_class::<run::Recording>()?;
    module.add_class::<traces::LoadedTrace>()?;
    module.add_class::<traces::LoadedReport>()?;
    module.add_class::<traces::LoadedComparison>()?;
    module.add_function(wrap_pyfunction!(presets, module)?)?;
    module.add_function(wrap_pyfunction!(caches, module)?)?;
    module.add_function(wrap_pyfunction!(collectives, module)?)?;
    module.add_function(wrap_pyfunction!(check_platform, module)?)?;
    module.add_function(wrap_pyfunction!(check_workload, module)?)?;
    module.add_function(wrap_pyfunction!(toml_of_json, module)?)?;
    module.add_function(wrap_pyfunction!(run::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(traces::unfinished, module)?)?;
    Ok(())
}
