//! Replay: the calls of a trace once more, on scratch files, checked against what was recorded.
//!
//! Every process and thread of the trace is a thread here. Calls that meet at a file, at a
//! descriptor table or at the names of files happen in the recorded order; calls that do not meet
//! run as freely as they did. Paths are mapped below one scratch directory; files that existed
//! before the program ran are made beforehand, of the recorded size. Every byte is a function of
//! file and offset, so whoever replays a trace twice gets the same files, and a strategy that
//! mislays a byte is found out by comparing two trees.
//!
//! A replay is its own referee: bytes moved, positions and errors must be the recorded ones, the
//! bytes read must be those of that place in that file, and the first call that differs ends it.
//! What cannot be reissued (stores into mappings, sockets, other people's locks) is counted and
//! named, never passed over in silence.
//!
//! With strategies, the very stacks of the live program stand between the recorded calls and the
//! files.

mod aliases;
mod content;
mod descriptors;
mod grown;
mod images;
mod initial;
mod native;
mod order;
mod outcome;
mod paths;
mod room;
mod root;
mod scratch;
mod staged;
mod turns;
mod unseen;
mod worker;

pub use outcome::{Difference, ReplayError, Summary};

use iolab_policy::insitu::StrategySpec;
use iolab_trace::{Layer, Trace};
use std::path::PathBuf;

/// When calls are issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// One after the other; computation between calls is left out.
    #[default]
    AsFastAsPossible,
    /// Not before the moment the trace has for it.
    Timed,
}

/// How to replay.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Everything happens below this directory, which is created when missing.
    pub directory: PathBuf,
    /// Allow a directory that has something in it; files of the same names are replaced.
    pub into_used_directory: bool,
    /// Strategies between the calls and the files, top first.
    pub strategies: Vec<StrategySpec>,
    /// When calls are issued.
    pub pace: Pace,
}

/// Replays `trace`. An error says what went wrong or which call was the first to differ.
pub fn replay(trace: &Trace, settings: &Settings) -> Result<Summary, ReplayError> {
    let trace = &*aliases::resolved(trace);
    let plan = order::Plan::new(trace, &settings.strategies);
    let initial = initial::initial_files(trace, &plan.order);
    let needs_room =
        |error: ReplayError| error.with_room(|| room::needed_bytes(trace, &plan.order, &initial));
    let scratch = scratch::Scratch::prepare(settings, trace, &initial).map_err(needs_room)?;
    let mut summary = worker::run(trace, &plan, &scratch, settings).map_err(needs_room)?;
    summary.notes.extend(scratch.notes);
    if plan.order.is_empty() && trace.events.iter().any(|e| e.function.layer() == Layer::Stdio) {
        summary.notes.push("the trace has stdio calls but no system calls to reissue".to_owned());
    }
    Ok(summary)
}
