//! A run under way: what whoever watches it is told, so that nothing measured is lost with it, and
//! what a run that ended early says of itoutcome.

use crate::plan::{Case, Plan};
use crate::record_file::RecordFile;
use iolab_backend::Needs;
use iolab_report::bench::{Incomplete, Measurement, Outcome, summarise};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// What is told of a run, on rank 0.
#[derive(Clone, Copy)]
pub enum Progress<'a> {
    /// It begins: the outcome with everything but measurements, and the file of single operations.
    Begun(&'a Outcome, &'a KeptRecords),
    /// A phase was measured.
    Measured(&'a Measurement),
}

/// The file of single operations while it is written, where one is.
#[derive(Clone, Default)]
pub struct KeptRecords(Arc<Mutex<Option<RecordFile>>>);

impl KeptRecords {
    pub(crate) fn of(file: Option<RecordFile>) -> KeptRecords {
        KeptRecords(Arc::new(Mutex::new(file)))
    }

    /// Does something with the file, if there is one.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut RecordFile) -> T) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(work)
    }

    /// Completes the file with what it has; nothing can be added then.
    ///
    /// # Errors
    /// Why it could not be written, and a way out.
    pub fn finish(&self) -> Result<(), (String, String)> {
        let file = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        file.map_or(Ok(()), RecordFile::finish)
    }
}

/// The run has ended before its plan: says why and what is missing, and sums up the rest.
pub fn end_early(outcome: &mut Outcome, plan: &Plan, reason: &str) {
    let missing = plan.cases.iter().filter_map(|case| missing_of(outcome, plan, case)).collect();
    outcome.incomplete = Some(Incomplete { reason: reason.to_owned(), missing });
    outcome.summaries = summarise(outcome);
}

fn missing_of(outcome: &Outcome, plan: &Plan, case: &Case) -> Option<String> {
    let key = |test: &str, spatial: &str, temporal: &str, method: &str| {
        [test, spatial, temporal, method].map(str::to_owned)
    };
    let (spatial, temporal) = (case.spatial.text(), case.temporal.name());
    let wanted = key(&case.test, &spatial, temporal, case.method.name);
    let refused = outcome.refused.iter();
    let mut refused = refused.map(|one| key(&one.test, &one.spatial, &one.temporal, &one.method));
    if refused.any(|one| one == wanted) {
        return None;
    }
    let repetitions = if case.method.needs == Needs::Platform { 1 } else { plan.repetitions };
    let measured: BTreeSet<u32> = (outcome.measurements.iter())
        .filter(|one| key(&one.test, &one.spatial, &one.temporal, &one.method) == wanted)
        .map(|one| one.repetition)
        .collect();
    let what = format!("{}: {temporal} {spatial} {}", case.test, case.method.name);
    match measured.len() as u32 {
        all if all >= repetitions => None,
        0 => Some(what),
        some => Some(format!("{what}, {} of {repetitions} repetitions", repetitions - some)),
    }
}
