//! Bytes on their way into a socket that takes only some of them at a time.
//!
//! Frames are sent from where they are: heads from their bytes, payload from a buffer or from rows of the
//! program's memory, all in one system call where they fit. Nothing waits: what is not taken is kept.

use crate::buffers::{Buffers, Payload};
use iolab_pfs::client::CallNumber;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::mem::MaybeUninit;

/// Slices of one system call. The kernel takes 1024; a transfer of the usual size has one or two.
const SLICES: usize = 64;

/// Rows of memory by call, where a driver has calls.
pub(crate) trait Rows {
    /// `bytes` bytes of a call's memory from `at` on, which lie in one row; none if the call is over.
    fn row(&self, call: CallNumber, at: u64, bytes: usize) -> Option<&[u8]>;
}

/// Of a driver without calls.
pub(crate) struct NoRows;

impl Rows for NoRows {
    fn row(&self, _call: CallNumber, _at: u64, _bytes: usize) -> Option<&[u8]> {
        None
    }
}

/// Some bytes of a frame, by where they are.
#[derive(Debug)]
pub(crate) enum Part {
    /// All of these.
    Bytes(Vec<u8>),
    /// These, with a descriptor beside them.
    Beside(Vec<u8>, OwnedFd),
    /// Payload.
    Payload(Payload),
    /// A row of a call's memory.
    Row { call: CallNumber, at: u64, bytes: usize },
}

impl Part {
    fn bytes(&self) -> usize {
        match self {
            Part::Bytes(bytes) | Part::Beside(bytes, _) => bytes.len(),
            Part::Payload(payload) => payload.bytes().len(),
            Part::Row { bytes, .. } => *bytes,
        }
    }

    fn slice<'a>(&'a self, rows: &'a impl Rows) -> Option<&'a [u8]> {
        match self {
            Part::Bytes(bytes) | Part::Beside(bytes, _) => Some(bytes),
            Part::Payload(payload) => Some(payload.bytes()),
            Part::Row { call, at, bytes } => rows.row(*call, *at, *bytes),
        }
    }
}

/// What is to be sent on one connection.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    parts: VecDeque<Part>,
    /// How much of the first part is sent.
    sent: usize,
    /// How much of all parts is not.
    left: usize,
}

impl Outgoing {
    /// Puts a part behind the others.
    pub(crate) fn push(&mut self, part: Part) {
        self.left += part.bytes();
        self.parts.push_back(part);
    }

    /// How many bytes wait.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Whether memory of a call is still to be sent.
    pub(crate) fn needs(&self, call: CallNumber) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Row { call: of, .. } if *of == call))
    }

    /// Sends what the socket takes. An error is the end of the connection.
    pub(crate) fn send(
        &mut self,
        socket: impl AsFd,
        rows: &impl Rows,
        buffers: &mut Buffers,
    ) -> Result<(), Errno> {
        while self.left > 0 {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let (mut skip, mut count) = (self.sent, 0);
            for (slice, part) in slices.iter_mut().zip(&self.parts) {
                if count > 0 && matches!(part, Part::Beside(..)) {
                    break;
                }
                let bytes = part.slice(rows).ok_or(Errno::CANCELED)?;
                *slice = IoSlice::new(&bytes[skip..]);
                (skip, count) = (0, count + 1);
            }
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut beside = SendAncillaryBuffer::new(&mut space);
            let descriptor = match self.parts.front() {
                // It goes with the first byte.
                Some(Part::Beside(_, descriptor)) if self.sent == 0 => Some([descriptor.as_fd()]),
                _ => None,
            };
            if let Some(descriptor) = &descriptor {
                beside.push(SendAncillaryMessage::ScmRights(descriptor));
            }
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match rustix::net::sendmsg(&socket, &slices[..count], &mut beside, flags) {
                Ok(bytes) => self.taken(bytes, buffers),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                // Some systems let no descriptors pass: the other side then does without.
                Err(_) if descriptor.is_some() => self.keep_descriptor(),
                Err(error) => return Err(error),
            }
        }
        // Empty parts have nothing to wait for.
        self.taken(0, buffers);
        Ok(())
    }

    /// Only the bytes of the first part are sent, not what was beside them.
    fn keep_descriptor(&mut self) {
        if let Some(Part::Beside(bytes, _)) = self.parts.pop_front() {
            self.parts.push_front(Part::Bytes(bytes));
        }
    }

    fn taken(&mut self, bytes: usize, buffers: &mut Buffers) {
        self.left -= bytes;
        self.sent += bytes;
        while self.parts.front().is_some_and(|part| part.bytes() <= self.sent) {
            let part = self.parts.pop_front().expect("there is one");
            self.sent -= part.bytes();
            if let Part::Payload(payload) = part {
                buffers.give_back(payload);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};

    struct Program(Vec<u8>);

    impl Rows for Program {
        fn row(&self, call: CallNumber, at: u64, bytes: usize) -> Option<&[u8]> {
            (call == CallNumber(1)).then(|| &self.0[at as usize..][..bytes])
        }
    }

    #[test]
    fn parts_arrive_whole_and_in_order_through_a_socket_that_takes_little() {
        let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
        let (near, far) =
            rustix::net::socketpair(family, kind, SocketFlags::empty(), None).unwrap();
        let (mut out, mut buffers) = (Outgoing::default(), Buffers::default());
        let program = Program((0..3_000_000u32).map(|at| (at % 251) as u8).collect());
        let mut want = Vec::new();
        for round in 0..100usize {
            let (at, bytes) = (round * 20_000, 15_000 + round);
            out.push(Part::Bytes(vec![round as u8; round]));
            out.push(Part::Row { call: CallNumber(1), at: at as u64, bytes });
            out.push(Part::Payload(Payload::Buffer(vec![7; 9000], 8000)));
            want.extend(vec![round as u8; round]);
            want.extend(&program.0[at..at + bytes]);
            want.extend([7; 8000]);
        }
        assert!(out.needs(CallNumber(1)) && !out.needs(CallNumber(2)));
        let mut got: Vec<u8> = Vec::new();
        let mut chunk = vec![0; 10_007];
        while got.len() < want.len() {
            out.send(&near, &program, &mut buffers).unwrap();
            assert!(out.left() > 0 || !out.needs(CallNumber(1)));
            let (bytes, _) = rustix::net::recv(&far, &mut chunk[..], RecvFlags::empty()).unwrap();
            got.extend(&chunk[..bytes]);
        }
        assert!(got == want);
        out.push(Part::Row { call: CallNumber(2), at: 0, bytes: 1 });
        assert_eq!(out.send(&near, &program, &mut buffers), Err(Errno::CANCELED));
    }
}
