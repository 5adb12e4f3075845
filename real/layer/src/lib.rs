//! What the libraries that see calls of a layer above POSIX share: the way to the recorder, whether a thread is in a
//! call of their layer already, what the loader has and which library a call is for, locks that forks survive, and
//! which strategies of their layer are applied.
//!
//! They are preloaded beside `libiolab_intercept.so`, each with this crate's state for itself.

pub mod applied;
mod entry;
pub mod inside;
pub mod library;
pub mod loader;
pub mod lock;
pub mod recorder;
