//! Traces on disk, whoever wrote them, and what they say: reports, comparisons, columns.

use crate::failure::{Raise, error};
use crate::run::Recording;
use iolab_host::result_file::{ResultFile, Writing};
use iolab_report::compare::{Comparison, Run, compare};
use iolab_report::{Analysis, Report, report_page, text};
use iolab_trace::{Event, Trace};
use iolab_traces::Format;
use iolab_vocab::Refusal;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A trace in memory.
#[pyclass(frozen, module = "iolab")]
pub struct LoadedTrace(Trace);

#[pymethods]
impl LoadedTrace {
    /// Reads a trace; `format` names the tool where content does not tell it. `progress` is called with the rows
    /// of each group that was read, and with those of the trace.
    #[staticmethod]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        format: Option<&str>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<LoadedTrace> {
        let format = format.map(|name| format_of(py, name)).transpose()?;
        let mut raised = None;
        let loaded = py.detach(|| {
            if let Some(format) = format.or_else(|| Format::of(&path)) {
                return format.load(&path);
            }
            let opened = iolab_traces::open(&path)?;
            let total = opened.rows();
            let read = opened.into_trace_with(|rows| {
                let Some(progress) = &progress else { return };
                if let Err(error) = Python::attach(|py| progress.call1(py, (rows, total))) {
                    raised.get_or_insert(error);
                }
            });
            read.map_err(|error| iolab_traces::unreadable(&path, &error))
        });
        match raised {
            Some(error) => Err(error),
            None => Ok(LoadedTrace(loaded.raise_as(py, "TraceError")?)),
        }
    }

    fn __len__(&self) -> usize {
        self.0.events.len()
    }

    /// The header, as JSON.
    fn header(&self) -> String {
        serde_json::to_string(&self.0.header).expect("a header is plain data")
    }

    /// The program in it, to run in the simulator.
    fn recording(&self, py: Python<'_>) -> PyResult<Recording> {
        py.detach(|| Recording::of(&self.0)).raise(py)
    }

    /// Writes it as a trace of iolab: there with all its content, or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let written = py.detach(|| {
            let saved = written(&path, |sink| {
                iolab_iot::write(&self.0, BufWriter::new(sink)).map_err(io::Error::other)
            });
            saved.map_err(|error| cannot_write(&path, &error))
        });
        written.raise(py)
    }

    /// What is said about it.
    fn report(&self, py: Python<'_>) -> LoadedReport {
        LoadedReport(py.detach(|| Analysis::of(&self.0)))
    }

    /// Its columns: numbers as the bytes of an array with its type, names as numbers into a list.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        let events = &self.0.events;
        let names = Names { events, columns: &columns };
        columns.set_item("rank", array(py, events, "<i4", |event| event.rank.to_le_bytes())?)?;
        columns.set_item("process", array(py, events, "<u4", |it| it.process.to_le_bytes())?)?;
        columns.set_item("thread", array(py, events, "<u4", |it| it.thread.to_le_bytes())?)?;
        names.put(py, "layer", |event| event.function.layer().name())?;
        names.put(py, "op", |event| event.function.name())?;
        let files = &self.0.header.files;
        let file = |event: &Event| {
            let index = event.file.index().filter(|&index| index < files.len());
            index.map_or(-1, |index| index as i32).to_le_bytes()
        };
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        columns.set_item("path", (array(py, events, "<i4", file)?, paths))?;
        columns.set_item("fd", array(py, events, "<i4", |event| event.fd.to_le_bytes())?)?;
        let long: [(&str, Value); 7] = [
            ("offset", |event| event.offset),
            ("length", |event| event.length),
            ("argument", |event| event.argument),
            ("start_ns", |event| event.start.0 as i64),
            ("end_ns", |event| event.end.0 as i64),
            ("result", |event| event.result),
            ("parent", |event| event.parent),
        ];
        for (name, value) in long {
            columns.set_item(name, array(py, events, "<i8", |it| value(it).to_le_bytes())?)?;
        }
        Ok(columns)
    }
}

/// What a column has of a row.
type Value = fn(&Event) -> i64;

/// Where columns of names go.
struct Names<'a, 'py> {
    events: &'a [Event],
    columns: &'a Bound<'py, PyDict>,
}

impl<'py> Names<'_, 'py> {
    /// A column of few names: their numbers, in the order they first come in.
    fn put(
        &self,
        py: Python<'py>,
        column: &str,
        name: impl Fn(&Event) -> &'static str,
    ) -> PyResult<()> {
        let mut names: Vec<&'static str> = Vec::new();
        let numbers: Vec<i32> = self
            .events
            .iter()
            .map(|event| {
                let name = name(event);
                // The names are constants, and few.
                let known = names.iter().position(|other| std::ptr::eq(*other, name));
                let at = known.or_else(|| names.iter().position(|other| *other == name));
                at.unwrap_or_else(|| {
                    names.push(name);
                    names.len() - 1
                }) as i32
            })
            .collect();
        let numbers = array(py, &numbers, "<i4", |number: &i32| number.to_le_bytes())?;
        self.columns.set_item(column, (numbers, names))
    }
}

/// The bytes of an array, and the type of its elements as numpy writes it.
fn array<'py, T, const N: usize>(
    py: Python<'py>,
    items: &[T],
    kind: &'static str,
    bytes_of: impl Fn(&T) -> [u8; N],
) -> PyResult<(Bound<'py, PyBytes>, &'static str)> {
    let fill = |bytes: &mut [u8]| {
        for (item, place) in items.iter().zip(bytes.as_chunks_mut::<N>().0) {
            *place = bytes_of(item);
        }
        Ok(())
    };
    Ok((PyBytes::new_with(py, items.len() * N, fill)?, kind))
}

/// A report.
#[pyclass(frozen, module = "iolab")]
pub struct LoadedReport(Report);

#[pymethods]
impl LoadedReport {
    /// All of it, as `iolab report --json` prints it.
    fn json(&self) -> String {
        serde_json::to_string(&self.0).expect("a report is plain data")
    }

    /// As `iolab report` prints it.
    fn text(&self) -> String {
        text::write(&self.0, text::Style::default())
    }

    /// Writes a page with the timeline of the trace that it is of.
    fn save(&self, py: Python<'_>, trace: &Bound<'_, LoadedTrace>, path: PathBuf) -> PyResult<()> {
        let trace = &trace.get().0;
        save_page(py, &path, || report_page(&self.0, trace))
    }
}

/// What differs between two runs, or several of each.
#[pyclass(frozen, module = "iolab")]
pub struct LoadedComparison(Comparison);

#[pymethods]
impl LoadedComparison {
    /// Holds the runs of one side, each with its name, against those of the other.
    #[staticmethod]
    fn of(
        py: Python<'_>,
        a: Vec<(String, Bound<'_, LoadedTrace>)>,
        b: Vec<(String, Bound<'_, LoadedTrace>)>,
    ) -> LoadedComparison {
        let (a, b) = (named(&a), named(&b));
        LoadedComparison(py.detach(|| compare(&runs(&a), &runs(&b))))
    }

    /// All of it, as `iolab compare --json` prints it.
    fn json(&self) -> String {
        serde_json::to_string(&self.0).expect("a comparison is plain data")
    }

    /// As `iolab compare` prints it.
    fn text(&self) -> String {
        self.0.text()
    }

    /// By how much longer B takes than A, as a share of A.
    fn slower_by(&self) -> f64 {
        self.0.slower_by()
    }

    /// Whether nothing differs.
    fn is_equal(&self) -> bool {
        self.0.is_equal()
    }

    /// Writes a page with the timelines of the first runs.
    fn save(
        &self,
        py: Python<'_>,
        a: (String, Bound<'_, LoadedTrace>),
        b: (String, Bound<'_, LoadedTrace>),
        path: PathBuf,
    ) -> PyResult<()> {
        let (a, b) = ([a], [b]);
        let (a, b) = (named(&a), named(&b));
        save_page(py, &path, || self.0.page(&runs(&a)[0], &runs(&b)[0]))
    }
}

type Named<'a> = Vec<(String, &'a Trace)>;

fn named<'a>(side: &'a [(String, Bound<'_, LoadedTrace>)]) -> Named<'a> {
    side.iter().map(|(name, trace)| (name.clone(), &trace.get().0)).collect()
}

fn runs<'a>(side: &Named<'a>) -> Vec<Run<'a>> {
    side.iter().map(|(name, trace)| Run { name: name.clone(), trace }).collect()
}

/// What a reader of the trace should know besides: that it comes from the parts of a job that was cut off.
#[pyfunction]
pub(crate) fn unfinished(path: PathBuf) -> Option<String> {
    iolab_traces::unfinished(&path)
}

fn format_of(py: Python<'_>, name: &str) -> PyResult<Format> {
    match name {
        "strace" => Ok(Format::Strace),
        "hdtrace" => Ok(Format::Hdtrace),
        "darshan" => Ok(Format::Darshan),
        "dftracer" => Ok(Format::Dftracer),
        "otf2" => Ok(Format::Otf2),
        "recorder" => Ok(Format::Recorder),
        other => {
            let message = format!("there is no format `{other}` of traces");
            Err(error(
                py,
                &message,
                "choose from strace, hdtrace, darshan, dftracer, otf2, recorder",
            ))
        }
    }
}

fn save_page(py: Python<'_>, path: &Path, page: impl FnOnce() -> Vec<u8> + Send) -> PyResult<()> {
    let saved = py.detach(|| {
        let bytes = page();
        let saved = written(path, |sink| sink.write_all(&bytes));
        saved.map_err(|error| cannot_write(path, &error))
    });
    saved.raise(py)
}

/// Has `fill` write a file: there with all its content, or not at all.
fn written(path: &Path, fill: impl FnOnce(&mut Writing) -> io::Result<()>) -> io::Result<()> {
    let mut writing = ResultFile::at(path)?.begin()?;
    fill(&mut writing)?;
    match writing.finish()? {
        None => Ok(()),
        Some(beside) => Err(io::Error::other(format!(
            "a file came to lie there meanwhile and stays; the result is in {}",
            beside.display()
        ))),
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Refusal {
    Refusal::new(
        format!("cannot write {}: {error}", path.display()),
        "name a place where a file can be written",
    )
}
