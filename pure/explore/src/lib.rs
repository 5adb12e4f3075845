//! The adversary of the parallel file system: all machines of an instance in one thread, with a network,
//! disks and a clock that do the worst a seed can think of, and oracles that know what was promised.
//!
//! A seed stands for an instance, its programs and what goes wrong ([`explore`]); the same seed gives the
//! same run, event for event. First things go wrong, then nothing does any more, and everything must settle.
//! What may be left out of a run to make it smaller is a [`Mask`].
//!
//! Costs: some ten milliseconds and a few megabytes for each seed.

mod dice;
mod marks;
mod names;
mod plan;
mod pointers;
mod shadow;
mod shrink;
mod views;
mod world;

pub use marks::{Mark, Marks};
pub use plan::{Fault, Mask};
pub use shrink::shrink;
pub use world::{Outcome, Recordings};

use plan::Plan;
use std::panic::{AssertUnwindSafe, catch_unwind};
use world::{Keeps, World};

/// Runs what a seed stands for, without what is masked. A machine that panics is a defect, too.
pub fn explore(seed: u64, mask: &Mask) -> Outcome {
    run(seed, mask, Keeps::default()).0
}

/// The same, with everything that machines heard and wanted, in words.
pub fn tell(seed: u64, mask: &Mask) -> (Outcome, Vec<String>) {
    let (outcome, story, _) = run(seed, mask, Keeps { story: true, events: false });
    (outcome, story)
}

/// The same with the recording of every machine.
pub fn record(seed: u64, mask: &Mask) -> (Outcome, Recordings) {
    let (outcome, _, recordings) = run(seed, mask, Keeps { story: false, events: true });
    (outcome, recordings)
}

fn run(seed: u64, mask: &Mask, keeps: Keeps) -> (Outcome, Vec<String>, Recordings) {
    let run = || World::new(Plan::of(seed, mask), seed, keeps).run();
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let defect = format!("panic: {}", text.unwrap_or("without words"));
        let marks = Marks::default();
        (Outcome { steps: 0, hash: 0, marks, defect: Some(defect) }, Vec::new(), Recordings::new())
    })
}
