//! Payload in memory: machines know it by number; buffers for it are used again.

use crate::window::Stretch;
use iolab_pfs::Buffer;
use std::collections::BTreeMap;

/// Buffers that are kept for the next payload: as many as two transfers to each of eight servers.
const SPARE_MAX: usize = 16;

/// Payload of one message, by where it is.
#[derive(Debug)]
pub(crate) enum Payload {
    /// The first so many bytes of a buffer.
    Buffer(Vec<u8>, usize),
    /// In the window of a connection.
    Stretch(Stretch),
}

impl Payload {
    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Payload::Buffer(buffer, bytes) => &buffer[..*bytes],
            Payload::Stretch(stretch) => stretch.bytes(),
        }
    }

    /// Room for so many bytes behind those of a buffer.
    pub(crate) fn more(&mut self, bytes: usize) -> &mut [u8] {
        let Payload::Buffer(buffer, have) = self else { unreachable!("a stretch has its size") };
        let from = *have;
        *have += bytes;
        if buffer.len() < *have {
            buffer.resize(*have, 0);
        }
        &mut buffer[from..*have]
    }

    /// Its bytes, to be filled.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Payload::Buffer(buffer, bytes) => &mut buffer[..*bytes],
            Payload::Stretch(stretch) => stretch.bytes_mut(),
        }
    }
}

/// The buffers of a thread.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    numbered: BTreeMap<Buffer, Payload>,
    spare: Vec<Vec<u8>>,
    last: u64,
}

impl Buffers {
    /// Room for so many bytes; what is in it is left over from its last use.
    pub(crate) fn take(&mut self, bytes: usize) -> Payload {
        let mut buffer = self.spare.pop().unwrap_or_default();
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        Payload::Buffer(buffer, bytes)
    }

    /// A number for payload, which is kept under it.
    pub(crate) fn number(&mut self, payload: Payload) -> Buffer {
        self.last += 1;
        self.numbered.insert(Buffer(self.last), payload);
        Buffer(self.last)
    }

    /// The payload of a number, which means nothing from then on.
    pub(crate) fn claim(&mut self, number: Buffer) -> Payload {
        self.numbered.remove(&number).expect("a machine names a buffer once")
    }

    /// The bytes of a number's payload.
    pub(crate) fn bytes(&self, number: Buffer) -> &[u8] {
        self.numbered[&number].bytes()
    }

    /// Payload that nobody needs any more.
    pub(crate) fn give_back(&mut self, payload: Payload) {
        if let Payload::Buffer(buffer, _) = payload
            && self.spare.len() < SPARE_MAX
        {
            self.spare.push(buffer);
        }
    }

    /// A number that nobody needs any more.
    pub(crate) fn release(&mut self, number: Buffer) {
        let payload = self.claim(number);
        self.give_back(payload);
    }
}
