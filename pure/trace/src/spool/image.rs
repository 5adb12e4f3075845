//! The head of a process file, written by somebody who is not in that process.

use super::{CHUNK_BYTES, PROCESS_MAGIC, SPOOL_VERSION, process as head};

/// A process image, as others know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Number of its file in the run.
    pub index: u32,
    /// Process number, and that of its parent.
    pub pid: u32,
    /// See `pid`; 0 when not known.
    pub parent: u32,
    /// Reading of the clock when it was first met, and the last time.
    pub start: u64,
    /// See `start`; 0 while it may go on.
    pub end: u64,
    /// Node it runs on.
    pub host: String,
    /// Path of the program.
    pub program: Vec<u8>,
    /// Command line, each argument ended by NUL.
    pub command: Vec<u8>,
}

impl Image {
    /// Its head. Texts that are too long are cut.
    pub fn head(&self) -> Vec<u8> {
        let mut bytes = vec![0; head::STATES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(head::MAGIC, &PROCESS_MAGIC.to_le_bytes());
        let flags = if self.end == 0 { 0 } else { head::ENDED };
        for (at, word) in [
            (head::VERSION, SPOOL_VERSION),
            (head::CHUNK_BYTES, CHUNK_BYTES as u32),
            (head::PID, self.pid),
            (head::PARENT, self.parent),
            (head::RANK, u32::MAX),
            (head::FLAGS, flags),
            (head::INDEX, self.index),
        ] {
            put(at, &word.to_le_bytes());
        }
        put(head::START, &self.start.to_le_bytes());
        put(head::END, &self.end.to_le_bytes());
        // A NUL stays behind each text.
        let cut = |text: &'_ [u8], room: usize| text.len().min(room - 1);
        put(head::HOST, &self.host.as_bytes()[..cut(self.host.as_bytes(), head::HOST_BYTES)]);
        put(head::PROGRAM, &self.program[..cut(&self.program, head::PROGRAM_BYTES)]);
        put(head::COMMAND, &self.command[..cut(&self.command, head::COMMAND_BYTES)]);
        bytes
    }
}
