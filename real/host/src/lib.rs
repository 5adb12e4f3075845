//! What meets the operating system.

pub mod calibrate;
mod file_system;

pub use file_system::file_system_of;
