//! What a run came to, as dictionaries and lists for the package to name.

use iolab_report::simulation::csv;
use iolab_sim::band::Band;
use iolab_sim::cluster::ServerTotals;
use iolab_sim::program::PhaseTotals;
use iolab_sim::workload::{ApplicationOutcome, LinkOutcome, Outcome, ServerOutcome};
use iolab_vocab::Nanos;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// The whole outcome of the median run of what has this name, and the band it is of.
pub(crate) fn dictionary<'py>(
    py: Python<'py>,
    name: &str,
    (outcome, band): &(Outcome, Band),
) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("low", band.low)?;
    result.set_item("high", band.high)?;
    result.set_item("tie_seeds", band.count)?;
    result.set_item("seconds", outcome.end.seconds())?;
    result.set_item("event_count", outcome.event_count)?;
    result.set_item("event_hash", outcome.event_hash)?;
    result.set_item("lost_packet_count", outcome.lost_packet_count)?;
    result.set_item("applications", list(py, &outcome.applications, application)?)?;
    result.set_item("servers", list(py, &outcome.servers, server)?)?;
    result.set_item("links", list(py, &outcome.links, link)?)?;
    result.set_item("csv", csv(name, outcome, band, None))?;
    Ok(result)
}

fn list<'py, T>(
    py: Python<'py>,
    items: &[T],
    one: impl Fn(Python<'py>, &T) -> PyResult<Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, items.iter().map(|item| one(py, item)).collect::<PyResult<Vec<_>>>()?)
}

fn application<'py>(py: Python<'py>, one: &ApplicationOutcome) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("name", &one.name)?;
    result.set_item("rank_count", one.rank_count)?;
    result.set_item("seconds", one.end.seconds())?;
    result.set_item("phases", list(py, &one.phases, phase)?)?;
    result.set_item("notes", &one.notes)?;
    Ok(result)
}

fn phase<'py>(py: Python<'py>, one: &PhaseTotals) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("name", &one.name)?;
    result.set_item("start_seconds", one.start.map(Nanos::seconds))?;
    result.set_item("end_seconds", one.end.seconds())?;
    result.set_item("rank_seconds", Nanos(one.rank_nanos).seconds())?;
    result.set_item("calls", one.calls)?;
    result.set_item("read_bytes", one.read_bytes)?;
    result.set_item("written_bytes", one.written_bytes)?;
    Ok(result)
}

fn server<'py>(py: Python<'py>, one: &ServerOutcome) -> PyResult<Bound<'py, PyDict>> {
    let totals: &ServerTotals = &one.totals;
    let result = PyDict::new(py);
    result.set_item("name", &one.name)?;
    result.set_item("accesses", totals.device.access_count())?;
    result.set_item("no_seek", totals.device.no_seek_count)?;
    result.set_item("near", totals.device.near_count)?;
    result.set_item("far", totals.device.far_count)?;
    result.set_item("read_bytes", totals.device.read_bytes)?;
    result.set_item("written_bytes", totals.device.written_bytes)?;
    result.set_item("busy_seconds", Nanos(totals.device.busy_nanos).seconds())?;
    result.set_item("queue_max", totals.queue_max)?;
    result.set_item("found_bytes", totals.memory.found_bytes)?;
    result.set_item("kept_bytes_max", totals.memory.kept_bytes_max)?;
    Ok(result)
}

fn link<'py>(py: Python<'py>, one: &LinkOutcome) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("name", &one.name)?;
    result.set_item("kind", one.kind.name())?;
    result.set_item("packets", one.totals.packets)?;
    result.set_item("bytes", one.totals.bytes)?;
    result.set_item("busy_seconds", Nanos(one.totals.busy_nanos).seconds())?;
    Ok(result)
}
