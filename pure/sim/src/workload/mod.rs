//! Programs made from patterns: the benchmarks of the published evaluation.

mod database;
mod individual;
mod java_random;
mod scattered;

pub use database::{Database, Mode};
pub use individual::Individual;
pub use java_random::JavaRandom;
pub use scattered::Scattered;
