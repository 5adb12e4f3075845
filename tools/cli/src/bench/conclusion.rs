//! How a run ends, whatever ends it: nothing measured is lost, what is missing is told, files go.
//!
//! A run comes to its end by itself, by a signal, by the loss of a rank, or by the death of this
//! process. In the first case the caller presents what was found; in the next two a thread does, as
//! rank 0 may be busy for hours; in the last a process does that was told of everything measured.

use crate::failure::Failure;
use crate::output::Output;
use iolab_bench::{
    Incomplete, KeptRecords, Measurement, Outcome, OverlapOutcome, OverlapPlan, OverlapPoint, Plan,
    TestFiles, end_early, overlap_end_early,
};
use iolab_host::fork::{end_dependent, leave};
use iolab_host::interruption::{self, Interruptions};
use iolab_host::vigil::Vigil;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// As `eprintln!`, but whoever listened may be gone: an mpiexec that was ended takes standard error
/// with it, and that must not keep the files from being removed.
macro_rules! tell {
    ($($words:tt)*) => { _ = writeln!(std::io::stderr(), $($words)*) };
}

/// A result document that grows while a run goes on.
pub(crate) trait Document: Clone + Serialize + DeserializeOwned + Send {
    /// What was to be measured.
    type Plan: Sync;
    /// What it grows by.
    type Part: Clone + Serialize + DeserializeOwned;

    fn add(&mut self, part: Self::Part);
    fn is_empty(&self) -> bool;
    fn end_early(&mut self, plan: &Self::Plan, reason: &str);
    fn incomplete(&self) -> Option<&Incomplete>;
}

impl Document for Outcome {
    type Plan = Plan;
    type Part = Measurement;

    fn add(&mut self, part: Measurement) {
        self.measurements.push(part);
    }

    fn is_empty(&self) -> bool {
        self.measurements.is_empty()
    }

    fn end_early(&mut self, plan: &Plan, reason: &str) {
        end_early(self, plan, reason);
    }

    fn incomplete(&self) -> Option<&Incomplete> {
        self.incomplete.as_ref()
    }
}

impl Document for OverlapOutcome {
    type Plan = OverlapPlan;
    type Part = OverlapPoint;

    fn add(&mut self, part: OverlapPoint) {
        self.points.push(part);
    }

    fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    fn end_early(&mut self, plan: &OverlapPlan, reason: &str) {
        overlap_end_early(self, plan, reason);
    }

    fn incomplete(&self) -> Option<&Incomplete> {
        self.incomplete.as_ref()
    }
}

/// Where a run writes its results.
pub(crate) trait Places: Clone + Send {
    /// Leaves out what was written before the process that wrote was killed.
    fn leave_out_written(&mut self);
}

impl Places for Option<Output> {
    fn leave_out_written(&mut self) {
        self.take_if(|output| output.is_written());
    }
}

/// Writes and prints a document, to the places given.
pub(crate) type Present<'a, D, O> = &'a (dyn Fn(&D, O) -> Result<(), Failure> + Sync);

/// A run, as whoever ends it sees it.
pub(crate) struct Conclusion<'a, D: Document, O: Places> {
    plan: &'a D::Plan,
    files: &'a TestFiles,
    present: Present<'a, D, O>,
    state: Mutex<State<D, O>>,
}

struct State<D, O> {
    document: Option<D>,
    records: KeptRecords,
    outputs: O,
    vigil: Option<Vigil>,
}

/// What the process that cleans up hears before results are written.
const PRESENTS: &[u8] = b"presents";

impl<D, O> State<D, O> {
    /// Says something to the process that cleans up.
    fn say(&mut self, words: &[u8]) {
        if let Some(vigil) = &mut self.vigil {
            vigil.say(words);
        }
    }

    fn tell(&mut self, what: &impl Serialize) {
        if let Ok(text) = serde_json::to_vec(what) {
            self.say(&text);
        }
    }
}

impl<'a, D: Document, O: Places> Conclusion<'a, D, O> {
    pub(crate) fn new(
        plan: &'a D::Plan,
        files: &'a TestFiles,
        outputs: O,
        present: Present<'a, D, O>,
    ) -> Conclusion<'a, D, O> {
        let records = KeptRecords::default();
        let state = Mutex::new(State { document: None, records, outputs, vigil: None });
        Conclusion { plan, files, present, state }
    }

    fn state(&self) -> MutexGuard<'_, State<D, O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever is killed ends nothing properly, so somebody else has to. Before any thread.
    pub(crate) fn watch_over(&self) -> Result<(), Failure> {
        let outputs = self.state().outputs.clone();
        let vigil = Vigil::over(|said| self.end_of_the_dead(&said, outputs)).map_err(|error| {
            Failure::new(format!("cannot start the process that cleans up: {error}"))
                .hint("the number of processes of a user may be limited (ulimit -u)")
        })?;
        self.state().vigil = Some(vigil);
        Ok(())
    }

    /// What the process that cleans up does when this one has ended. The others of an MPI job may
    /// live a moment longer and make names in a directory anew, so once is not enough.
    fn end_of_the_dead(&self, said: &[Vec<u8>], mut outputs: O) {
        let concluded = said.last().is_some_and(Vec::is_empty);
        if said.iter().any(|word| word == PRESENTS) {
            outputs.leave_out_written();
        }
        if !concluded {
            tell!("iolab: the run was ended from outside; its files are removed");
        }
        self.files.remove();
        if !concluded && let Some(mut document) = document_of::<D>(said) {
            document.end_early(self.plan, "the run was ended from outside");
            if let Err(failure) = (self.present)(&document, outputs) {
                tell!("{failure}");
            }
            self.tell_missing(&document);
        }
        for rest in [300, 1000] {
            std::thread::sleep(Duration::from_millis(rest));
            self.files.remove();
        }
    }

    /// The run begins.
    pub(crate) fn begin(&self, document: &D, records: KeptRecords) {
        let mut state = self.state();
        state.tell(document);
        state.records = records;
        state.document = Some(document.clone());
    }

    /// Something was measured.
    pub(crate) fn add(&self, part: &D::Part) {
        let mut state = self.state();
        state.tell(part);
        if let Some(document) = &mut state.document {
            document.add(part.clone());
        }
    }

    /// Does the work of rank 0; a signal meanwhile ends the run properly.
    pub(crate) fn interruptible<T>(&self, work: impl FnOnce() -> T) -> T
    where
        O: Sync,
    {
        let Ok(mut interruptions) = Interruptions::expect() else { return work() };
        std::thread::scope(|scope| {
            scope.spawn(move || {
                if let Ok(signal @ 1..) = interruptions.wait() {
                    tell!("iolab: the run was ended from outside; its files are removed");
                    let reason = format!("interrupted by {}", interruption::name(signal));
                    self.conclude(&reason, 128 + signal);
                }
            });
            let result = work();
            Interruptions::forget();
            result
        })
    }

    /// Ends the run now, and this process with it.
    pub(crate) fn conclude(&self, reason: &str, code: i32) -> ! {
        // Kept for ever: whoever comes later has nothing to present any more.
        let mut state = self.state();
        end_dependent();
        self.files.remove();
        let _ = state.records.finish();
        tell!("error: {reason}");
        let document = state.document.take().filter(|document| !document.is_empty());
        if let Some(mut document) = document {
            state.say(PRESENTS);
            document.end_early(self.plan, reason);
            if let Err(failure) = (self.present)(&document, state.outputs.clone()) {
                tell!("{failure}");
            }
            self.tell_missing(&document);
        }
        state.say(&[]);
        let _ = std::io::stdout().flush();
        leave(code)
    }

    fn tell_missing(&self, document: &D) {
        if let Some(incomplete) = document.incomplete() {
            tell!("{}", incomplete.words());
        }
    }

    /// The run has come to its end by itself.
    pub(crate) fn presented(&self, document: &D) -> Result<(), Failure> {
        let outputs = {
            let mut state = self.state();
            state.say(PRESENTS);
            state.outputs.clone()
        };
        (self.present)(document, outputs)?;
        match document.incomplete() {
            None => Ok(()),
            Some(incomplete) => Err(Failure::new(&incomplete.reason)
                .note(incomplete.words())
                .hint("what was measured before stands; mend the cause and run the rest")),
        }
    }
}

impl<D: Document, O: Places> Drop for Conclusion<'_, D, O> {
    fn drop(&mut self) {
        if !std::thread::panicking()
            && let Some(vigil) = self.state().vigil.take()
        {
            vigil.call_off();
        }
    }
}

/// The document that was said at first, with all parts that were said after it.
fn document_of<D: Document>(said: &[Vec<u8>]) -> Option<D> {
    let (first, parts) = said.split_first()?;
    let mut document: D = serde_json::from_slice(first).ok()?;
    parts.iter().filter_map(|part| serde_json::from_slice(part).ok()).for_each(|part| {
        document.add(part);
    });
    (!document.is_empty()).then_some(document)
}
