//! Policies, each written once as a state machine without clock, file, socket or thread.
//!
//! The same code runs in the simulator, in the preloaded library, in replay and in the real file
//! system. Every family has one shape, [`Machine`], and its discipline as code, [`Laws`]; the driver owns
//! the clock and the bytes.

pub mod cache;
pub mod collective;
mod extents;
mod family;
pub mod insitu;
mod machine;
pub mod placement;
pub mod replacement;
pub mod schedule;
pub mod write_policy;

pub use machine::{Checked, Laws, Machine};
