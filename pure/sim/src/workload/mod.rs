//! Programs: the benchmarks of the published evaluation, and commands written down.

mod database;
mod individual;
mod java_random;
mod scattered;
mod script;

pub use database::{Database, Mode};
pub use individual::Individual;
pub use java_random::JavaRandom;
pub use scattered::Scattered;
pub use script::{Line, Script};
