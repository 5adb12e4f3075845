//! The parallel file system on this host: servers that drive the pure machines on Unix sockets and files,
//! and the client that a process drives in its own threads.

mod buffers;
mod client;
pub mod files;
pub mod instance;
pub mod launch;
mod memory;
mod outgoing;
mod subfiles;
mod worker;

pub use client::Client;
pub use memory::{Memory, NoMemory};
