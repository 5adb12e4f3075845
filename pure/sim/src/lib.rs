//! The discrete-event simulator: virtual clock, event queue, platforms, and the models that run
//! on them.

pub mod band;
pub mod cluster;
pub mod evaluation;
pub mod file_system;
pub mod guest;
pub mod platform;
mod process;
pub mod program;
pub mod queue;
pub mod scenario;
mod slab;
pub mod sweep;
pub mod workload;
mod world;
