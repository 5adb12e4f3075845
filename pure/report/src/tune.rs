//! Choosing a stack by real runs: which candidates run, how often, who is left, and whether the winner may
//! be recommended.
//!
//! Candidates run in rounds of successive halving (Karnin, Koren and Somekh 2013): each round runs the plain
//! command and all that are left once, and after some rounds the slower half goes. Who wins that has
//! been picked for its good runs, so these say too much of it: it is held against plain in runs of their
//! own (`tournament`). It is recommended where the exact interval of their median ratio, which assumes nothing
//! of how times are distributed, lies above 1. Where nothing helps in truth, that happens in at most one
//! tuning of 20, whatever the noise.

mod present;
mod tournament;

pub use present::{Entered, Tuned};
pub use tournament::{Exit, Outcome, Plan, Ran, Tournament, Verdict, plan};
