//! Bytes that come from a socket that never waits: some are read ahead of their use, since a frame tells
//! only at its front how long it is; the rest goes straight to where it belongs.
//!
//! Costs: a system call for what is there, and none to hear that nothing more is; whoever waits for the
//! socket is told when there is.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::ops::Range;

/// What is read ahead, and then copied: more than any request without payload has, as a rule.
const AHEAD_BYTES: usize = 4096;

/// Why nothing comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nothing {
    /// Nothing is there yet.
    Yet,
    /// The other side has closed the connection.
    Closed,
    /// The system says so.
    Failed(Errno),
}

/// What has come on one connection.
#[derive(Debug)]
pub(crate) struct Incoming {
    ahead: Box<[u8; AHEAD_BYTES]>,
    /// What of it is not used yet.
    unused: Range<usize>,
    /// Whether the socket had no more when it was read last.
    is_drained: bool,
    /// What came beside the bytes, until somebody takes it.
    descriptor: Option<OwnedFd>,
}

impl Default for Incoming {
    fn default() -> Incoming {
        let ahead = Box::new([0; AHEAD_BYTES]);
        Incoming { ahead, unused: 0..0, is_drained: false, descriptor: None }
    }
}

impl Incoming {
    /// What was read and is not used yet; the socket tells nobody of it.
    pub(crate) fn unused(&self) -> &[u8] {
        &self.ahead[self.unused.clone()]
    }

    /// All of it is used but for so many bytes.
    pub(crate) fn leave(&mut self, bytes: usize) {
        self.unused.start = self.unused.end - bytes;
    }

    /// The last descriptor that came.
    pub(crate) fn descriptor(&mut self) -> Option<OwnedFd> {
        self.descriptor.take()
    }

    /// Reads ahead; nothing must be unused. With `beside`, it takes a descriptor that comes with the bytes.
    pub(crate) fn read(&mut self, socket: &OwnedFd, beside: bool) -> Result<(), Nothing> {
        if std::mem::take(&mut self.is_drained) {
            return Err(Nothing::Yet);
        }
        let bytes = match beside {
            true => receive_beside(socket, &mut self.ahead[..], &mut self.descriptor)?,
            false => receive(|| Ok(rustix::net::recv(socket, &mut self.ahead[..], DONTWAIT)?.0))?,
        };
        self.unused = 0..bytes;
        self.is_drained = bytes < AHEAD_BYTES;
        Ok(())
    }

    /// Takes bytes to where they belong: those that were read ahead, or else some of the socket's. Gives how
    /// many.
    pub(crate) fn take(&mut self, socket: &OwnedFd, to: &mut [u8]) -> Result<usize, Nothing> {
        let bytes = to.len().min(self.unused.len());
        if bytes == 0 {
            return receive(|| Ok(rustix::net::recv(socket, &mut *to, DONTWAIT)?.0));
        }
        to[..bytes].copy_from_slice(&self.unused()[..bytes]);
        self.unused.start += bytes;
        Ok(bytes)
    }
}

const DONTWAIT: RecvFlags = RecvFlags::DONTWAIT;

/// Reads bytes and a descriptor that comes beside them.
fn receive_beside(
    socket: &OwnedFd,
    to: &mut [u8],
    descriptor: &mut Option<OwnedFd>,
) -> Result<usize, Nothing> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let flags = DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let bytes = receive(|| {
        let mut slices = [IoSliceMut::new(&mut *to)];
        Ok(rustix::net::recvmsg(socket, &mut slices, &mut beside, flags)?.bytes)
    })?;
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            *descriptor = descriptors.last();
        }
    }
    Ok(bytes)
}

/// Reads what is there.
fn receive(mut once: impl FnMut() -> Result<usize, Errno>) -> Result<usize, Nothing> {
    loop {
        return match once() {
            Ok(0) => Err(Nothing::Closed),
            Ok(bytes) => Ok(bytes),
            Err(Errno::AGAIN) => Err(Nothing::Yet),
            Err(Errno::INTR) => continue,
            Err(error) => Err(Nothing::Failed(error)),
        };
    }
}
