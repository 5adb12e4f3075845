//! Which strategies a trace gives reason for, what they would bring, and in which words that is told.
//!
//! `reason` is the table of what each strategy finds to do in a trace, and of the parameters worth
//! trying, `above` what there is to see of calls above POSIX; `candidates` makes the stacks of it that the rules
//! allow and the user consents to; `rank` orders them by what the simulator says; `present` tells it. Whoever has
//! a trace, a platform and processors brings the predictions.

mod above;
mod candidates;
mod present;
mod rank;
mod reason;

pub use candidates::{Candidate, Candidates, Idle, Means, Permission, Withheld, candidates, label};
pub use present::{Advice, Advised};
pub(crate) use present::{idle_json, idle_text, withheld_json};
pub use rank::{Estimate, NOTEWORTHY, best_of_kinds, field, ranked};
