//! The runs of a study: a program as it is, recorded, and under every strategy, round by round.
//!
//! Every run starts from the same files: a fresh copy of the user's directory stands in its place
//! (`workplace`), the command is started there, watched and timed (`runs`), and what it leaves is
//! compared with what the first plain run left (`tree`). The user's directory is whole at every
//! moment, under one of two names, also when the study is killed. `loop_once` is the order of all
//! that, `rounds` its timed part, `tuning` the search for the best stack; what the runs say is for [`iolab_report::study`] to conclude.
//!
//! A study costs two runs of the command plus one per round and strategy, and room for two copies of
//! its output directory.

mod error;
mod loop_once;
mod rounds;
mod runs;
mod same;
mod tree;
mod tuning;
mod workplace;

pub use error::StudyError;
pub use loop_once::{Job, Others, Trials};
pub use same::Same;
pub use tuning::Search;

use iolab_policy::insitu::StrategySpec;
use iolab_report::advice::Estimate;
use iolab_report::prediction::Predicted;
use iolab_sim::platform::Platform;
use iolab_trace::Trace;
use iolab_vocab::Refusal;
use std::path::Path;

/// Whoever sees the steps and runs of a study go by.
pub trait Watcher {
    /// A step begins.
    fn step(&self, text: &str);
    /// So many runs come now.
    fn begin_runs(&mut self, count: usize);
    /// The next run is of this kind.
    fn run(&self, label: &str);
    /// The runs are over.
    fn end_runs(&self);
}

/// What a study needs beside runs: predictions on all processors, a model of the storage, and traces
/// on disk. The command that shows the study has all of that.
pub trait Laboratory {
    /// Predicts the recorded program under these strategies, top first.
    ///
    /// # Errors
    /// Why it cannot be predicted.
    fn predict(
        &self,
        trace: &Trace,
        platform: &Platform,
        stack: &[StrategySpec],
    ) -> Result<Predicted, Refusal>;

    /// Predicts it under each of these stacks in one order of simultaneous events, as long as `goes_on`;
    /// nothing of those that come later, or cannot be predicted.
    ///
    /// # Errors
    /// Why none can be.
    fn predict_all(
        &self,
        trace: &Trace,
        platform: &Platform,
        stacks: &[&[StrategySpec]],
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Option<Estimate>>, Refusal>;

    /// Measures the storage of a directory, where it may make files and removes them, and keeps what came of it
    /// among the results.
    ///
    /// # Errors
    /// What went wrong there.
    fn measure(&self, scratch: &Path, results: &Path) -> Result<Platform, StudyError>;

    /// Reads what `iolab record` has written.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn load(&self, path: &Path) -> Result<Trace, StudyError>;

    /// Writes a trace among the results.
    ///
    /// # Errors
    /// Why it cannot be written.
    fn save(&self, path: &Path, trace: &Trace) -> Result<(), StudyError>;
}
