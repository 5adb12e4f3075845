//! What servers remember of requests that are not answered.

use crate::cluster::request::RequestId;
use crate::slab::Id;
use crate::world::{MessageId, RowId};
use iolab_vocab::{Extent, Nanos};

/// What a server remembers of one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Incoming {
    /// The message that carries read data back.
    pub(super) reply: Option<MessageId>,
    /// Write data laid so far: whole pieces, then bytes of the next, and all of it.
    piece: usize,
    piece_bytes: u64,
    pub(super) laid_bytes: u64,
    /// Whether the request itself has arrived. Its data may overtake it: a packet that waits at a
    /// blocked NIC can be put behind younger ones. Both must be over before it is forgotten.
    pub(super) is_known: bool,
    /// Since when the server knows of it, by itself or by its data, and when the last of its data so far was taken.
    pub(super) since: Option<Nanos>,
    pub(super) until: Nanos,
    /// Its row, that of the message with its data, and what has brought the last of its bytes.
    pub(super) row: RowId,
    pub(super) data: RowId,
    pub(super) brought: RowId,
}

impl Incoming {
    /// The next stretch, up to `most` bytes, that write data is laid on.
    pub(super) fn lay(&mut self, pieces: &[Extent], most: u64) -> Extent {
        let piece = pieces[self.piece];
        let length = most.min(piece.length - self.piece_bytes);
        let extent = Extent::new(piece.offset + self.piece_bytes, length);
        self.piece_bytes += length;
        if self.piece_bytes == piece.length {
            self.piece += 1;
            self.piece_bytes = 0;
        }
        extent
    }
}

/// By request.
#[derive(Debug, Default)]
pub(super) struct IncomingTable(Vec<Incoming>);

impl IncomingTable {
    /// Of one that a server may not have heard of yet.
    #[inline]
    pub(super) fn of(&mut self, id: RequestId) -> &mut Incoming {
        if id.index() >= self.0.len() {
            self.0.resize(id.index() + 1, Incoming::default());
        }
        &mut self.0[id.index()]
    }

    /// It is answered: its number may mean another one from now on.
    pub(super) fn forget(&mut self, id: RequestId) {
        *self.of(id) = Incoming::default();
    }
}
