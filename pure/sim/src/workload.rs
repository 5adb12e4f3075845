//! Programs: the benchmarks of the published evaluation, commands written down, and workloads
//! described in TOML; and the way in to run them.

mod database;
mod described;
mod individual;
mod java_random;
mod outcome;
mod reconstructed;
pub mod recorded;
mod recorded_run;
mod run;
mod run_of;
mod scattered;
mod script;
mod staged;
mod with_files;

pub use database::{Database, Mode};
pub(crate) use described::in_words;
pub use described::{Application, DescribedFile, TEMPLATE, Workload};
pub use individual::Individual;
pub use java_random::JavaRandom;
pub use outcome::{ApplicationOutcome, CacheOutcome, FileSystemOutcome, LinkOutcome, Outcome};
pub use outcome::{ServerOutcome, TrafficOutcome};
pub use reconstructed::reconstruct;
pub use run::{Job, Settings, prepare, run, run_watched, simulate, simulate_with};
pub use scattered::Scattered;
pub use script::{Line, Script};
pub use with_files::WithFiles;
