//! What every part of the world did and when, kept on request as rows of a trace.
//!
//! Devices give their transfers, NICs the messages they sent and received; machines add rows of their
//! own. Nothing is kept per packet, so a run that is not recorded pays a test per message, and one
//! that is some hundred bytes per message, up to a limit; what is beyond it is counted.
//!
//! Rows name as their process: each process of the machines, each server, each server's device, for each
//! node its NIC out and its NIC in, then further parties of the machines.

use super::causes::{ByIndex, Found, RowId};
use super::held_back::HeldBack;
use super::{Id, MessageId, NodeId, ServerId, Target, TransferId};
use iolab_device::{Access, Seek};
use iolab_trace::{Causes, Event as Row, Function, Links};
use iolab_vocab::{Direction, Extent, Nanos};
use std::collections::BTreeMap;

/// Rows kept; about 400 MB.
const ROWS_MAX: usize = 4_000_000;

/// The recording under way.
pub(crate) struct Recorder {
    rows: Vec<Row>,
    lost_count: u64,
    /// Pieces by the place of their access among the rows.
    pieces: Vec<(usize, Vec<Extent>)>,
    /// Of all pieces.
    piece_count: usize,
    /// By message: when its way into the network began and ended, and the way out of it began.
    sent: Vec<Mark>,
    left: Vec<Mark>,
    received: Vec<Mark>,
    held_back: HeldBack,
    /// By message: their rows.
    sends: ByIndex,
    receives: ByIndex,
    /// What caused what.
    pub(super) found: Found,
    process_count: u32,
    server_count: u32,
}

/// A moment on a message's way.
#[derive(Clone, Copy, Default)]
struct Mark {
    time: Nanos,
    /// How long its target has held back until then, together.
    held: Nanos,
}

/// What was kept.
pub(crate) struct Rows {
    /// By process, then start; the pieces of an access follow it.
    pub(crate) rows: Vec<Row>,
    /// What caused what among them.
    pub(crate) causes: Causes,
    /// Rows beyond the limit.
    pub(crate) lost_count: u64,
}

fn set(marks: &mut Vec<Mark>, index: usize, now: Mark) {
    if index >= marks.len() {
        marks.resize(index + 1, Mark::default());
    }
    marks[index] = now;
}

impl Recorder {
    /// Of a run with so many processes and servers.
    pub(crate) fn new(process_count: u32, server_count: u32) -> Recorder {
        Recorder {
            rows: Vec::new(),
            lost_count: 0,
            pieces: Vec::new(),
            piece_count: 0,
            sent: Vec::new(),
            left: Vec::new(),
            received: Vec::new(),
            held_back: HeldBack::default(),
            sends: ByIndex::default(),
            receives: ByIndex::default(),
            found: Found::default(),
            process_count,
            server_count,
        }
    }

    /// A row begins, because of what has just happened.
    pub(crate) fn open(&mut self) -> RowId {
        let row = self.open_first();
        self.found.begun_by(row, self.found.current);
        row
    }

    /// A row begins that nothing has begun, as far as anybody knows.
    pub(crate) fn open_first(&mut self) -> RowId {
        match self.has_room() {
            true => self.found.open(),
            false => RowId::NONE,
        }
    }

    /// A row ends, because of what has just happened.
    pub(crate) fn ends(&mut self, row: RowId) {
        self.found.ended_by(row, self.found.current);
    }

    /// Something else ends a row, too.
    pub(crate) fn ended_by(&mut self, row: RowId, cause: RowId) {
        self.found.ended_by(row, cause);
    }

    /// The next access of a device is for these.
    pub(crate) fn join(&mut self, rows: impl IntoIterator<Item = RowId>) {
        self.found.join(rows);
    }

    fn has_room(&self) -> bool {
        self.rows.len() + self.piece_count < ROWS_MAX
    }

    /// Keeps a row that has begun. Tells whether there was room.
    pub(crate) fn keep(&mut self, id: RowId, row: Row) -> bool {
        let has_room = self.has_room();
        match has_room {
            true => {
                self.found.kept(id, self.rows.len());
                self.rows.push(row);
            }
            false => self.lost_count += 1,
        }
        has_room
    }

    /// Keeps the row of an access with its pieces.
    pub(crate) fn keep_pieces(&mut self, id: RowId, row: Row, pieces: Vec<Extent>) {
        let place = self.rows.len();
        if !self.keep(id, row) || pieces.is_empty() {
            return;
        }
        // An access without its pieces would be another one.
        match self.rows.len() + self.piece_count + pieces.len() <= ROWS_MAX {
            true => {
                self.piece_count += pieces.len();
                self.pieces.push((place, pieces));
            }
            false => self.lost_count += pieces.len() as u64,
        }
    }

    /// As which process rows name a server.
    pub(crate) fn process_of(&self, server: ServerId) -> u32 {
        self.process_count + server.0
    }

    /// The first process behind all that belong to the world, of so many nodes.
    pub(crate) fn process_behind(&self, node_count: u32) -> u32 {
        self.nic(NodeId(node_count))
    }

    /// A device has begun an access that takes from `start` to `end`, of which so much to get there.
    pub(super) fn transfer(
        &mut self,
        (id, server): (TransferId, ServerId),
        access: Access,
        (seek, positioning): (Seek, Nanos),
        start: Nanos,
        end: Nanos,
    ) {
        let function = match access.direction {
            Direction::Read => Function::DEVICE_READ,
            Direction::Write => Function::DEVICE_WRITE,
        };
        let row = self.open_first();
        self.found.access_began(id, row);
        let process = self.process_of(server) + self.server_count;
        self.keep(
            row,
            Row {
                process,
                file: access.file,
                fd: i32::try_from(positioning.0).unwrap_or(i32::MAX),
                offset: access.extent.offset as i64,
                length: access.extent.length as i64,
                result: access.extent.length as i64,
                argument: match seek {
                    Seek::None => 0,
                    Seek::Near => 1,
                    Seek::Far => 2,
                },
                start,
                end,
                ..Row::of(function)
            },
        );
    }

    /// From now on what is meant for a target waits at its node.
    pub(super) fn holds_back(&mut self, target: Target, now: Nanos) {
        self.held_back.begins(target, now);
    }

    /// What is meant for a target may reach it again.
    pub(super) fn lets_through(&mut self, target: Target, now: Nanos) {
        self.held_back.ends(target, now);
    }

    fn mark(&self, target: Target, now: Nanos) -> Mark {
        Mark { time: now, held: self.held_back.until(target, now) }
    }

    pub(super) fn send_began(&mut self, message: MessageId, target: Target, now: Nanos) {
        let row = self.open();
        self.sends.set(message.index(), row);
        let now = self.mark(target, now);
        set(&mut self.sent, message.index(), now);
    }

    /// The sender of a message has all of it now.
    pub(super) fn supplied(&mut self, message: MessageId) {
        self.ends(self.sends.of(message.index()));
    }

    /// What happens now is a reaction to the departure of some of a message.
    pub(super) fn departs(&mut self, message: MessageId) {
        self.found.current = self.sends.of(message.index());
    }

    /// The same of the arrival.
    pub(super) fn arrives(&mut self, message: MessageId) {
        self.found.current = self.receives.of(message.index());
    }

    pub(super) fn receive_began(&mut self, message: MessageId, target: Target, now: Nanos) {
        let row = self.open_first();
        self.found.begun_by(row, self.sends.of(message.index()));
        self.receives.set(message.index(), row);
        let now = self.mark(target, now);
        set(&mut self.received, message.index(), now);
    }

    pub(super) fn sent(
        &mut self,
        (message, target): (MessageId, Target),
        node: NodeId,
        bytes: u64,
        number: i64,
        now: Nanos,
    ) {
        let (start, end) = (self.sent[message.index()], self.mark(target, now));
        set(&mut self.left, message.index(), end);
        let row = self.sends.of(message.index());
        let held = end.held.since(start.held);
        let row = (row, Function::SEND, held);
        self.message(row, self.nic(node), bytes, number, (start.time, now));
    }

    pub(super) fn received(
        &mut self,
        (message, target): (MessageId, Target),
        node: NodeId,
        bytes: u64,
        number: i64,
        now: Nanos,
    ) {
        let start = self.received[message.index()];
        let row = self.receives.of(message.index());
        self.found.ended_by(row, self.sends.of(message.index()));
        // What its target held back until all had left, the row of its sending tells.
        let told = self.left[message.index()].held.max(start.held);
        let held = self.mark(target, now).held.since(told);
        let row = (row, Function::RECEIVE, held);
        self.message(row, self.nic(node) + 1, bytes, number, (start.time, now));
    }

    fn nic(&self, node: NodeId) -> u32 {
        self.process_count + 2 * self.server_count + 2 * node.0
    }

    fn message(
        &mut self,
        (id, function, held): (RowId, Function, Nanos),
        process: u32,
        bytes: u64,
        argument: i64,
        (start, end): (Nanos, Nanos),
    ) {
        let length = bytes as i64;
        let row =
            Row { process, length, argument, result: length, start, end, ..Row::of(function) };
        let offset = if held > Nanos::ZERO { held.0 as i64 } else { row.offset };
        self.keep(id, Row { offset, ..row });
    }

    /// Everything in order, with the pieces of each access behind it.
    pub(crate) fn finish(self) -> Rows {
        let Recorder { rows: found, found: causes, lost_count, pieces, piece_count, .. } = self;
        let mut pieces: BTreeMap<usize, Vec<Extent>> = pieces.into_iter().collect();
        let mut found: Vec<(usize, Row)> = found.into_iter().enumerate().collect();
        found.sort_by_key(|(_, row)| (row.process, row.start, row.end));
        let mut rows = Vec::with_capacity(found.len() + piece_count);
        let mut row_at = vec![0; found.len()];
        for (place, row) in found {
            let parent = rows.len() as i64;
            row_at[place] = rows.len() as u32;
            rows.push(row);
            let pieces = pieces.remove(&place).unwrap_or_default();
            rows.extend(pieces.into_iter().map(|extent| Row {
                function: Function::VIEW_PIECE,
                offset: extent.offset as i64,
                length: extent.length as i64,
                argument: -1,
                result: 0,
                parent,
                ..row
            }));
        }
        let [begun_by, ended_by] = causes.finish(&row_at).map(Links::from_pairs);
        Rows { rows, causes: Causes { begun_by, ended_by }, lost_count }
    }
}
