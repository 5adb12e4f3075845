//! Errors on their way to Python: `iolab.Error(message, hint)`, and what a policy raised.

use iolab_vocab::Refusal;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// `iolab.Error` with a message and a way out.
pub(crate) fn error(py: Python<'_>, message: &str, hint: &str) -> PyErr {
    of_class(py, "Error", message, hint)
}

fn of_class(py: Python<'_>, class: &str, message: &str, hint: &str) -> PyErr {
    let made = py
        .import("iolab.errors")
        .and_then(|module| module.getattr(class)?.call1((message, hint)))
        .map(PyErr::from_value);
    made.unwrap_or_else(|_| PyRuntimeError::new_err(format!("{message}\nhint: {hint}")))
}

/// Turns a refusal into an exception.
pub(crate) trait Raise<T>: Sized {
    /// One of that class of `iolab.errors`.
    fn raise_as(self, py: Python<'_>, class: &str) -> PyResult<T>;

    fn raise(self, py: Python<'_>) -> PyResult<T> {
        self.raise_as(py, "Error")
    }
}

impl<T> Raise<T> for Result<T, Refusal> {
    fn raise_as(self, py: Python<'_>, class: &str) -> PyResult<T> {
        self.map_err(|refusal| of_class(py, class, &refusal.message, &refusal.hint))
    }
}

/// The first thing that went wrong in a policy of a run; from then on its policies do nothing,
/// so that the run soon ends.
#[derive(Clone, Default)]
pub(crate) struct Trouble(Arc<Mutex<Option<PyErr>>>);

impl Trouble {
    pub(crate) fn is_there(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Keeps an exception that is not the policy's own fault (an interrupt).
    pub(crate) fn keep(&self, raised: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(raised);
    }

    /// Keeps what a policy raised, as the cause of an error that says where.
    pub(crate) fn raised(&self, py: Python<'_>, place: &str, raised: PyErr) {
        let message = format!("{place}: {raised}");
        let hint = "the exception below is what the policy raised";
        let told = of_class(py, "PolicyError", &message, hint);
        told.set_cause(py, Some(raised));
        self.keep(told);
    }

    /// Keeps that a policy broke the discipline of its family.
    pub(crate) fn broken(&self, py: Python<'_>, place: &str, what: &str) {
        let hint = "docs/howto/python.md says what a policy must answer to which event";
        self.keep(of_class(py, "PolicyError", &format!("{place}: {what}"), hint));
    }
}
