//! A directory seen through strategies: a FUSE file system that passes everything on to a source
//! directory, with a stack of strategies in each file they choose.
//!
//! It is a driver of the same stacks as the preloaded library, replay and simulator
//! (`iolab_policy::insitu`), for programs that load no library: static ones, other languages' own
//! system calls, `io_uring`. One stack serves one file for all processes, so what one has written
//! another one reads.
//!
//! Files no strategy chooses cost nothing per byte where the kernel passes them through to the source
//! itself (root, Linux 6.9); else they go through its page cache. Chosen files bypass the cache, so
//! each call is seen; they may be mapped.

mod answers;
mod attributes;
mod caller;
mod directory;
mod file_system;
mod files;
mod forgetting;
mod hosting;
mod members;
mod metadata;
mod names;
mod namespace;
mod open;
mod refusal;
mod rules;
mod session;
mod staged;
mod telling;
mod transfer;
mod tree;
mod writers;

pub use members::Packed;
pub use namespace::{NamespaceError, Release, Served, enter, outermost, serve};
pub use refusal::{MountError, check};
pub use session::{Mounted, Settings, mount};
