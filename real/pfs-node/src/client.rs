//! The client of a process: drives the client machine in the thread that calls.

use crate::Memory;
use iolab_pfs::client::{Call, Outcome};
use iolab_vocab::Refusal;
use std::path::Path;

/// A session with the instance in a directory. One per process; threads take turns.
#[derive(Debug)]
pub struct Client {}

impl Client {
    /// A session with the instance in `directory`.
    pub fn of(_directory: &Path) -> Result<Client, Refusal> {
        unimplemented!()
    }

    /// Carries out a call, and waits for what comes of it. A read fills `memory`, a write takes its bytes
    /// from there: byte 0 is the first of the call.
    pub fn call(&self, _call: Call, _memory: &mut dyn Memory) -> Outcome {
        unimplemented!()
    }
}
