//! What a simulated workload came to: for people, as one document, and as one flat table.
//!
//! The answer is the median run of a band of orders of simultaneous events ([`Banded`]). Beside it
//! stands, where asked for, the same run without its faults ([`Faulted`]) or without what was chosen
//! on top of the platform ([`Chosen`]). All faces tell the same run; a face costs one pass over the
//! applications, servers and links of its outcome.

mod chosen;
mod compared;
mod faulted;
mod json;
mod rows;
mod text;

pub use chosen::Chosen;
pub use compared::Compared;
pub use faulted::Faulted;
pub use rows::csv;

use iolab_sim::band::Band;
use iolab_sim::cluster::Order;
use iolab_sim::platform::Platform;
use iolab_sim::program::PhaseTotals;
use iolab_sim::workload::{Outcome, Settings};
use iolab_vocab::{Nanos, Seed};

/// A run and what is told about it.
#[derive(Clone, Copy, Debug)]
pub struct Simulation<'a> {
    /// What ran.
    pub subject: Subject<'a>,
    /// Where.
    pub platform: &'a Platform,
    /// How.
    pub settings: &'a Settings,
    /// What came of it.
    pub outcome: &'a Banded,
    /// The faults meanwhile, and the run without them.
    pub faulted: Option<&'a Faulted>,
    /// What was chosen, and the run without it.
    pub chosen: Option<&'a Chosen>,
    /// The recorded run beside this one, call by call.
    pub compared: Option<&'a Compared>,
}

/// What was simulated: a described workload, or a recorded program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Subject<'a> {
    /// Its name, may be empty.
    pub name: &'a str,
    /// Of random choices; a recorded program makes none.
    pub seed: Option<Seed>,
    /// How long it really took, if it ever ran.
    pub recorded: Option<Nanos>,
}

/// The median run of a band.
#[derive(Clone, Debug)]
pub struct Banded {
    /// What it came to.
    pub outcome: Outcome,
    /// Of how many runs, and their range.
    pub band: Band,
    /// Of the median run.
    pub tie_seed: Seed,
}

fn share(busy_nanos: u64, of: &Outcome) -> f64 {
    busy_nanos as f64 / of.end.0.max(1) as f64
}

fn seconds(nanos: u64) -> f64 {
    Nanos(nanos).seconds()
}

fn start(phase: &PhaseTotals) -> f64 {
    phase.start.unwrap_or(Nanos::ZERO).seconds()
}

fn order_name(order: Order) -> &'static str {
    match order {
        Order::Published => "published",
        Order::Documented => "documented",
    }
}

fn name_of(name: &str) -> &str {
    if name.is_empty() { "(no name)" } else { name }
}

/// ` 1.2 s (1.1 to 1.3 over 9 orders of simultaneous events)`, without the range where every order
/// came to the same.
fn range(band: &Band) -> String {
    let Band { count, low, median, high } = band;
    match (count, band.is_one_value()) {
        (1, _) => format!(" {median:.9} s"),
        (_, true) => format!(" {median:.9} s (the same in {count} orders of simultaneous events)"),
        _ => format!(
            " {median:.9} s ({low:.6} to {high:.6} over {count} orders of simultaneous events)"
        ),
    }
}
