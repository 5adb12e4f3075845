//! Payload in memory: buffers that machines know by number, and that are used again.

use iolab_pfs::Buffer;
use std::collections::BTreeMap;

/// Buffers that are kept for the next payload: as many as two transfers to each of eight servers.
const SPARE_MAX: usize = 16;

/// The buffers of a thread. One that was taken has at least the bytes that were asked for; what is in
/// them is left over from its last use.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    numbered: BTreeMap<Buffer, (Vec<u8>, usize)>,
    spare: Vec<Vec<u8>>,
    last: u64,
}

impl Buffers {
    /// A buffer of at least so many bytes.
    pub(crate) fn take(&mut self, bytes: usize) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        buffer
    }

    /// A number for a buffer whose first `bytes` bytes mean something; it is kept under the number.
    pub(crate) fn number(&mut self, buffer: Vec<u8>, bytes: usize) -> Buffer {
        self.last += 1;
        self.numbered.insert(Buffer(self.last), (buffer, bytes));
        Buffer(self.last)
    }

    /// The buffer of a number, which means nothing from then on, and how many bytes of it mean something.
    pub(crate) fn claim(&mut self, number: Buffer) -> (Vec<u8>, usize) {
        self.numbered.remove(&number).expect("a machine names a buffer once")
    }

    /// What a number's buffer holds.
    pub(crate) fn bytes(&self, number: Buffer) -> &[u8] {
        let (buffer, bytes) = &self.numbered[&number];
        &buffer[..*bytes]
    }

    /// A buffer that nobody needs any more.
    pub(crate) fn give_back(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(buffer);
        }
    }

    /// A number that nobody needs any more.
    pub(crate) fn release(&mut self, number: Buffer) {
        let (buffer, _) = self.claim(number);
        self.give_back(buffer);
    }
}
