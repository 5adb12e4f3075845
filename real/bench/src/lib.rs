//! The benchmark: a plan becomes a run, a run becomes samples, samples become verdicts.
//!
//! One harness serves every pattern, temporal pattern and access method. The timed loop
//! (`timed.rs`) contains the operation and nothing else: places come from the pattern by index,
//! data lies ready in memory before the first barrier, verification follows after the last.
//! Time is taken by one rule (`phase.rs`), so that no synchronised clocks are needed.

mod cache;
mod cell;
mod content;
mod data;
mod failure;
mod files;
mod interpret;
mod kernel;
mod metadata;
mod names;
mod outcome;
mod overlap;
mod phase;
mod plan;
mod predict;
mod progress;
mod record_file;
mod recording;
mod records;
mod run;
mod scene;
mod source;
mod spatial;
mod statistics;
mod steps;
mod surroundings;
mod table;
mod timed;
mod verify;

pub use cache::CacheState;
pub use cell::{Abilities, cell_table, refusal};
pub use content::{Content, Mismatch, PERIOD};
pub use failure::BenchError;
pub use files::{Manner, TestFiles};
pub use interpret::{
    Comparison, Curve, Insight, Profile, Score, Share, compare, curves, insights, plan_profile,
    profiles, ratio_of_medians, score, verdict,
};
pub use outcome::{Latency, Measurement, Outcome, RankTimes, Refused, Summary};
pub use overlap::{
    CaseEntry, Estimate, Found, Load, OverlapCase, OverlapOutcome, OverlapPlan, OverlapPoint,
    OverlapProgress, OverlapSummary, QUALITY_LIMIT, Reference, SWEEP, Spread, Way, overlap,
    overlap_csv, overlap_header, overlap_plot, overlap_row, overlap_summaries, overlap_summary_row,
    overlap_template, theory,
};
pub use plan::{Case, Plan, PlanError, Temporal, template};
pub use progress::{Incomplete, KeptRecords, Progress};
pub use recording::Recording;
pub use run::run;
pub use spatial::Spatial;
pub use statistics::{Interval, interval_of_median, median};
pub use surroundings::Surroundings;
pub use table::{csv, header, row, summary_table};
