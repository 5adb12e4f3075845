//! The benchmark: a plan becomes a run, a run becomes samples, samples become verdicts.
//!
//! One harness serves every pattern, temporal pattern and access method. The timed loop
//! (`timed.rs`) contains the operation and nothing else: places come from the pattern by index,
//! data lies ready in memory before the first barrier, verification follows after the last.
//! Time is taken by one rule (`phase.rs`), so that no synchronised clocks are needed.

mod cache;
mod case_setup;
mod cell;
mod content;
mod data;
mod failure;
mod files;
mod found;
mod kernel;
mod manner;
mod metadata;
mod names;
mod overlap;
mod phase;
mod plan;
mod predict;
mod prices;
mod progress;
mod record_file;
mod recording;
mod records;
mod run;
mod runner;
mod source;
mod spatial;
mod steps;
mod surroundings;
mod table;
mod timed;
mod verify;
mod work;

pub use cache::CacheState;
pub use cell::{Abilities, cell_table, refusal};
pub use content::{Content, Mismatch};
pub use failure::BenchError;
pub use files::TestFiles;
pub use iolab_report::bench::{
    Incomplete, Latency, Measurement, Outcome, Prices, RankTimes, Refused, Summary, Surroundings,
};
pub use iolab_report::overlap::{
    AsyncMode, CaseEntry, Estimate, Found, Load, OverlapOutcome, OverlapPoint, OverlapSummary,
    QUALITY_LIMIT, Reference, Spread, overlap_summaries, theory,
};
pub use manner::Manner;
pub use overlap::{
    OverlapCase, OverlapPlan, OverlapProgress, SWEEP, overlap, overlap_end_early, overlap_template,
};
pub use plan::{Case, Plan, Temporal, template};
pub use progress::{KeptRecords, Progress, end_early};
pub use recording::Recording;
pub use run::run;
pub use spatial::Spatial;
pub use table::table;
