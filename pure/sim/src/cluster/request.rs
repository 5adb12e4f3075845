//! What a client asks of one server.

use crate::process::Caller;
use crate::program::File;
use crate::world::{PayloadId, ServerId};
use iolab_vocab::{Direction, Extent};

/// The number of a request: its message and its data carry the same.
pub(super) type RequestId = PayloadId;

/// A request to one server.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) server: ServerId,
    pub(super) file: File,
    pub(super) direction: Direction,
    /// Places in the server's own part of the file.
    pub(super) pieces: Vec<Extent>,
    /// Of all pieces.
    pub(super) bytes: u64,
    /// Who waits for the answer.
    pub(super) from: Caller,
}

impl Request {
    /// Adds a piece; one that continues the last is joined to it.
    pub(super) fn add_piece(&mut self, offset: u64, length: u64) {
        self.bytes += length;
        match self.pieces.last_mut() {
            Some(last) if last.end() == offset => last.length += length,
            _ => self.pieces.push(Extent::new(offset, length)),
        }
    }

    /// All it asks for as one length at the place of its first piece.
    pub(super) fn touched(&self) -> Extent {
        Extent::new(self.pieces.first().map_or(0, |piece| piece.offset), self.bytes)
    }
}
