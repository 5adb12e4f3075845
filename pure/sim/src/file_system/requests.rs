//! What a party was asked and has not answered yet, and what that comes to.

use super::parcel::{Carried, Parcel};
use crate::world::RowId;
use iolab_pfs::{Message, Peer, Request};
use iolab_trace::{Event as Row, Function};
use iolab_vocab::{Direction, Nanos};
use std::collections::BTreeMap;

/// What a server or a cache manager has been asked and told so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficTotals {
    /// Requests, signs of life left out.
    pub request_count: u64,
    /// Bytes that it was sent to write.
    pub received_bytes: u64,
    /// Bytes that it has sent to those who read.
    pub sent_bytes: u64,
    /// Most requests it had at once, from their arrival to their answer.
    pub queue_max: u64,
}

/// A request that has no answer yet.
struct Open {
    since: Nanos,
    direction: Option<Direction>,
    bytes: u64,
    row: RowId,
}

/// The requests of a party.
#[derive(Default)]
pub(super) struct Requests {
    open: BTreeMap<(Peer, Request), Open>,
    totals: TrafficTotals,
}

impl Requests {
    /// What came of all so far.
    pub(super) fn totals(&self) -> TrafficTotals {
        self.totals
    }

    /// Something has come, perhaps a request, for which a row is opened.
    pub(super) fn arrived(
        &mut self,
        now: Nanos,
        parcel: &Parcel,
        open_row: impl FnOnce() -> RowId,
    ) {
        let Carried::Asked { request, message, payload } = &parcel.what else { return };
        if parcel.is_sign_of_life() {
            return;
        }
        let direction = match message {
            Message::Write(_) => Some(Direction::Write),
            Message::Read(_) => Some(Direction::Read),
            _ => None,
        };
        let bytes = payload.map_or(0, |(_, bytes)| bytes);
        let row = if direction.is_some() { open_row() } else { RowId::NONE };
        let open = Open { since: now, direction, bytes, row };
        self.open.insert((parcel.connection.peer(), *request), open);
        self.totals.request_count += 1;
        self.totals.received_bytes += bytes;
        self.totals.queue_max = self.totals.queue_max.max(self.open.len() as u64);
    }

    /// A request is answered, with so many bytes. Gives the row of a trace for it, whose process is the
    /// party's, if it moved data.
    pub(super) fn answered(
        &mut self,
        now: Nanos,
        which: (Peer, Request),
        sent_bytes: u64,
    ) -> Option<(RowId, Row)> {
        self.totals.sent_bytes += sent_bytes;
        let Open { since, direction, bytes, row } = self.open.remove(&which)?;
        let (function, bytes) = match direction? {
            Direction::Read => (Function::SERVE_READ, sent_bytes),
            Direction::Write => (Function::SERVE_WRITE, bytes),
        };
        let (length, result) = (bytes as i64, bytes as i64);
        Some((row, Row { length, result, start: since, end: now, ..Row::of(function) }))
    }
}
