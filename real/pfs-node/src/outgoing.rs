//! Bytes on their way into a socket that takes only some of them at a time.
//!
//! Frames are sent from where they are: heads from their bytes, payload from a buffer or from rows of the
//! program's memory, all in one system call where they fit. Nothing waits: what is not taken is kept.

use crate::buffers::Buffers;
use iolab_pfs::client::CallNumber;
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags};
use std::collections::VecDeque;
use std::io::IoSlice;

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
    /// The first so many of a buffer.
    Buffer(Vec<u8>, usize),
    /// A row of a call's memory.
    Row { call: CallNumber, at: u64, bytes: usize },
}

impl Part {
    fn bytes(&self) -> usize {
        match self {
            Part::Bytes(bytes) => bytes.len(),
            Part::Buffer(_, bytes) | Part::Row { bytes, .. } => *bytes,
        }
    }

    fn slice<'a>(&'a self, rows: &'a impl Rows) -> Option<&'a [u8]> {
        match self {
            Part::Bytes(bytes) => Some(bytes),
            Part::Buffer(buffer, bytes) => Some(&buffer[..*bytes]),
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
            let mut skip = self.sent;
            for (slice, part) in slices.iter_mut().zip(&self.parts) {
                let bytes = part.slice(rows).ok_or(Errno::CANCELED)?;
                *slice = IoSlice::new(&bytes[skip..]);
                skip = 0;
            }
            let count = self.parts.len().min(SLICES);
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            let nothing = &mut SendAncillaryBuffer::default();
            match rustix::net::sendmsg(&socket, &slices[..count], nothing, flags) {
                Ok(bytes) => self.taken(bytes, buffers),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        // Empty parts have nothing to wait for.
        self.taken(0, buffers);
        Ok(())
    }

    fn taken(&mut self, bytes: usize, buffers: &mut Buffers) {
        self.left -= bytes;
        self.sent += bytes;
        while self.parts.front().is_some_and(|part| part.bytes() <= self.sent) {
            let part = self.parts.pop_front().expect("there is one");
            self.sent -= part.bytes();
            if let Part::Buffer(buffer, _) = part {
                buffers.give_back(buffer);
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
            out.push(Part::Buffer(vec![7; 9000], 8000));
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
