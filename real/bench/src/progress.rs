//! A run under way: what whoever watches it is told, so that nothing measured is lost with it, and
//! what a run that ended early says of itself.

use crate::outcome::{Measurement, Outcome, summarise};
use crate::overlap::{OverlapOutcome, OverlapPlan, overlap_summaries};
use crate::plan::{Case, Plan};
use crate::record_file::RecordFile;
use iolab_backend::Needs;
use serde::{Deserialize, Serialize};
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

/// Why a run ended before its plan did, and what it has not measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incomplete {
    /// What ended it.
    pub reason: String,
    /// The cases of the plan that lack repetitions, each in a line.
    pub missing: Vec<String>,
}

impl Incomplete {
    /// What is to be told beside the reason.
    pub fn words(&self) -> String {
        const SHOWN: usize = 8;
        let shown: Vec<&str> = self.missing.iter().take(SHOWN).map(String::as_str).collect();
        let more = match self.missing.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!("\n  and {more} more"),
        };
        format!("not measured:\n  {}{more}", shown.join("\n  "))
    }
}

impl Outcome {
    /// The run has ended before its plan: says why and what is missing, and sums up the rest.
    pub fn end_early(&mut self, plan: &Plan, reason: &str) {
        let missing = plan.cases.iter().filter_map(|case| self.missing_of(plan, case)).collect();
        self.incomplete = Some(Incomplete { reason: reason.to_owned(), missing });
        self.summaries = summarise(&self.measurements);
    }

    fn missing_of(&self, plan: &Plan, case: &Case) -> Option<String> {
        let key = |test: &str, spatial: &str, temporal: &str, method: &str| {
            [test, spatial, temporal, method].map(str::to_owned)
        };
        let (spatial, temporal) = (case.spatial.text(), case.temporal.name());
        let wanted = key(&case.test, &spatial, temporal, case.method.name);
        let refused = self.refused.iter();
        let mut refused =
            refused.map(|one| key(&one.test, &one.spatial, &one.temporal, &one.method));
        if refused.any(|one| one == wanted) {
            return None;
        }
        let repetitions = if case.method.needs == Needs::Platform { 1 } else { plan.repetitions };
        let measured: BTreeSet<u32> = (self.measurements.iter())
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
}

impl OverlapOutcome {
    /// The run has ended before its plan: says why and what is missing, and sums up the rest.
    pub fn end_early(&mut self, plan: &OverlapPlan, reason: &str) {
        let mut missing = Vec::new();
        for (index, case) in plan.cases.iter().enumerate() {
            let refused = |one: &crate::outcome::Refused| {
                one.test == case.test
                    && one.spatial == case.spatial.text()
                    && one.temporal == case.direction_name()
                    && one.method == case.method.name
            };
            let wanted = case.ratios.len() * plan.repetitions as usize;
            let measured = self.points.iter().filter(|point| point.case == index).count();
            if measured < wanted && !self.refused.iter().any(refused) {
                let rest = wanted - measured;
                missing.push(format!("{}: {rest} of {wanted} points", case.title()));
            }
        }
        self.incomplete = Some(Incomplete { reason: reason.to_owned(), missing });
        self.summaries = overlap_summaries(&self.points);
    }
}
