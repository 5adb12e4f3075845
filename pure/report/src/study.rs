//! A study of a program: what is tried, what its runs say, and the study as text, as JSON and as a page.
//!
//! `plan` says which strategies are tried and in which order; `judge` whether one may be recommended;
//! `conclude` makes of all runs what is known of each strategy; `note` what else a reader should know;
//! `present` is the result as bytes. Whoever runs the command brings times and traces.
//!
//! Times are compared round by round: each round runs the plain command and every strategy once, so
//! that a machine that gets slower or faster during the study does so for all of them. The answer
//! is the median of the rounds' ratios, because run times are skewed and a mean would follow the outliers, with an interval
//! of order statistics (`statistics`), as wide as it takes for those of all strategies to hold together: where nothing makes a
//! difference, at most one study of twenty says that something does, whatever the noise. A strategy whose output differs is wrong,
//! however fast it was: `judge` looks at correctness first.

mod conclude;
mod judge;
mod note;
mod plan;
mod present;
mod sample;
#[cfg(test)]
mod tests;

pub use conclude::{Runs, Shown, Study, Tried, best, conclude, span_seconds};
pub use judge::{Judgement, Observation, Verdict, judge};
pub use note::{
    not_compared, not_deterministic, plain_missed, short_run, why, without_prediction,
    writes_elsewhere,
};
pub use plan::{Candidate, Turn, candidates, round};
pub use sample::{Interval, median, median_interval, ratio_interval};
