//! What the libraries that see calls of a layer above POSIX share: the way to the recorder, and whether
//! a thread is in a call of their layer already.
//!
//! They are preloaded beside `libiolab_intercept.so`, each with this crate's state for itself.

pub mod inside;
pub mod recorder;
