//! The parallel file system on this host: servers that drive the pure machines on Unix sockets and files,
//! and the client that a process drives in its own threads.

mod buffers;
mod cache;
mod channel;
pub mod check;
pub mod chosen;
mod client;
mod clock;
mod device_sync;
pub mod files;
mod incoming;
pub mod instance;
mod journal_file;
pub mod launch;
mod line;
mod link;
mod links;
mod lost;
mod manager;
mod memory;
pub mod node;
pub mod offline;
mod outgoing;
mod peers;
pub mod plain;
mod remark;
pub mod rescue;
mod room;
mod running;
mod server;
pub mod stand_ins;
pub mod status;
mod subfiles;
mod sums;
pub mod tape;
mod window;
mod worker;

pub use client::{Client, Started};
pub use line::say_in_guest;
pub use memory::{Memory, NoMemory};
