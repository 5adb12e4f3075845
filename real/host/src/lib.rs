//! What meets the operating system.

#[macro_use]
pub mod standard_error;

pub mod aio;
pub mod arena;
pub mod calibrate;
mod descriptor;
mod file_system;
pub mod fork;
mod fuse_device;
pub mod inherited;
pub mod interruption;
pub mod job;
pub mod launch;
pub mod limits;
pub mod mpi;
pub mod otf2;
pub mod own_place;
pub mod queue;
pub mod recording;
pub mod reservation;
pub mod result_file;
pub mod run;
pub mod shared;
pub mod stage;
pub mod tick;
pub mod uring;
pub mod vigil;

pub use descriptor::{close, replace};
pub use file_system::file_system_of;
pub use fuse_device::can_clone_fuse_device;
