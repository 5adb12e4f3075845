//! The parallel file system on this host: servers that drive the pure machines on Unix sockets and files,
//! and the client that a process drives in its own threads.

mod client;
mod memory;
mod subfiles;

pub use client::Client;
pub use memory::{Memory, NoMemory};
