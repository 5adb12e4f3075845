//! What the runs of a study say: how long a command takes plain and reshaped, how sure that is, and
//! whether a strategy may be recommended.
//!
//! Times are compared round by round: each round runs the plain command and every strategy once, so
//! that a machine that gets slower or faster during the study does so for all of them. The answer
//! is the median of the rounds' ratios with a bootstrap interval (Efron 1979), because run times
//! are skewed and a mean would follow the outliers. A strategy whose output differs is wrong,
//! however fast it was: `judge` looks at correctness first.

mod judge;
mod sample;

pub use judge::{Judgement, Observation, Verdict, judge};
pub use sample::{Interval, median, median_interval, ratio_interval};
