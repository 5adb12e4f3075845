//! How held bytes go out: run by run, in order of offset, before the call goes on that made it
//! necessary. With edges, no write crosses one.

use super::{ALL, EINTR, EIO, Settings, Task, WriteBack};
use crate::insitu::{Action, At, Call, Errno, Handle, Outcome, Place};
use iolab_vocab::{Extent, Nanos};

impl WriteBack {
    /// Writes the first run of held bytes within an extent out; `call` goes on when all of these are out.
    pub(super) fn write_out(
        &mut self,
        within: Extent,
        (handle, call, taken): (Handle, Call, u64),
        out: &mut Vec<Action>,
    ) {
        let (extent, memory) = self.put_in_order(within, out);
        self.task = Task::WritingOut { extent, within, handle, call, taken };
        out.push(self.written_by(extent, memory));
    }

    /// Puts the first run of held bytes within an extent in order: which bytes, and where they lie then.
    pub(super) fn put_in_order(&self, within: Extent, out: &mut Vec<Action>) -> (Extent, u64) {
        let Settings { edge_bytes, .. } = self.settings;
        let run = self.held.first_run(within, self.settings.piece_bytes(), edge_bytes);
        let (first, last) = (run[0], run[run.len() - 1]);
        let extent = Extent::new(first.extent.offset, last.extent.end() - first.extent.offset);
        let memory = if run.len() == 1 { first.at } else { self.settings.buffer_bytes };
        if run.len() > 1 {
            out.extend(run.iter().map(|piece| Action::Copy {
                from: Place::Staging(piece.at),
                to: Place::Staging(memory + piece.extent.offset - extent.offset),
                length: piece.extent.length,
            }));
        }
        (extent, memory)
    }

    /// Held bytes that lie in order from there go out.
    pub(super) fn written_by(&self, extent: Extent, memory: u64) -> Action {
        let at = if self.appending { At::Position } else { At::Offset(extent.offset) };
        Action::Perform {
            handle: self.writer,
            call: Call::Write { at, length: extent.length },
            memory: Place::Staging(memory),
        }
    }

    /// So many bytes of what went out are below.
    pub(super) fn is_out(&mut self, extent: Extent, moved: u64) {
        let written = Extent::new(extent.offset, moved.min(extent.length));
        self.held.discard(written);
        if let Some(filling) = &mut self.filling {
            filling.recount(written, &self.held);
        }
        self.file_bytes = self.file_bytes.max(written.end());
        if self.appending {
            self.descriptions.get(self.writer).below = written.end();
        }
    }

    /// The full blocks among those of an extent that has been taken in. What is appended goes out in order, so
    /// all that is held up to the last edge does.
    pub(super) fn full_blocks(&self, extent: Extent) -> Option<Extent> {
        let filling = self.filling.as_ref()?;
        if !self.appending {
            return filling.full(extent);
        }
        let first = self.held.pieces().next()?.extent.offset;
        let edge = filling.edge_before(self.held.end());
        (edge > first).then(|| Extent::new(first, edge - first))
    }

    /// A run went out, in full, in part or not at all.
    pub(super) fn wrote(
        &mut self,
        now: Nanos,
        (extent, within): (Extent, Extent),
        outcome: Outcome,
        (handle, call, taken): (Handle, Call, u64),
        out: &mut Vec<Action>,
    ) {
        match outcome {
            Err(EINTR) => return self.write_out(within, (handle, call, taken), out),
            Ok(moved) if moved > 0 => self.is_out(extent, moved),
            failed => {
                let errno = failed.err().unwrap_or(EIO);
                return self.could_not_write_out(errno, handle, call, taken, out);
            }
        }
        if self.held.overlaps(within) {
            return self.write_out(within, (handle, call, taken), out);
        }
        match call {
            Call::Write { at, length } if taken == length && length > 0 => {
                let start = self.held_start_of(handle, at, taken);
                self.answer_transfer(handle, at, Extent::new(start, length), out);
            }
            Call::Write { at, length } if taken > 0 && length > self.longest_held() => {
                let start = self.held_start_of(handle, at, taken);
                self.next_block(now, Blocks { handle, call, start, done: taken }, out);
            }
            Call::Write { at, length } if taken > 0 => {
                self.hold_rest(now, handle, at, length, taken, out);
            }
            _ => self.carry_on(now, handle, call, out),
        }
    }

    /// The rest of a write that overfilled the buffer finds an empty one.
    fn hold_rest(
        &mut self,
        now: Nanos,
        handle: Handle,
        at: At,
        length: u64,
        taken: u64,
        out: &mut Vec<Action>,
    ) {
        let start = match at {
            At::Offset(offset) => offset,
            At::Position if self.appending => self.file_bytes - taken,
            At::Position => self.descriptions.get(handle).position,
        };
        self.held_since = now;
        self.hold(Extent::new(start + taken, length - taken), taken, out);
        let call = Call::Write { at, length };
        self.taken_in(handle, call, Extent::new(start, length), out);
    }

    /// The call that needed the room or the order gets the failure if it is one that reports such
    /// things; else the failure waits for one.
    fn could_not_write_out(
        &mut self,
        errno: Errno,
        handle: Handle,
        call: Call,
        taken: u64,
        out: &mut Vec<Action>,
    ) {
        match call {
            Call::Write { at, .. } if taken > 0 => {
                self.failure = Some(errno);
                let start = self.held_start_of(handle, at, taken);
                self.answer_transfer(handle, at, Extent::new(start, taken), out);
            }
            Call::Open { .. } | Call::Flush | Call::Settle | Call::Close => {
                self.failure = Some(errno);
                match call {
                    Call::Settle => self.settle(handle, out),
                    _ => self.pass(handle, call, call, out),
                }
            }
            _ => out.push(Action::Answer(Err(errno))),
        }
    }

    /// Where a write began of which `taken` bytes are held.
    fn held_start_of(&mut self, handle: Handle, at: At, taken: u64) -> u64 {
        match at {
            At::Offset(offset) => offset,
            At::Position if self.appending => self.end() - taken,
            At::Position => self.descriptions.get(handle).position,
        }
    }

    /// How much of a write that does not fit into what is left of the buffer is held: up to an edge, so
    /// that no ragged end goes out with it.
    pub(super) fn fitting(&self, extent: Extent, room: u64) -> u64 {
        let bytes = extent.length.min(room);
        let ragged = self.settings.edge_bytes.map_or(0, |edge| (extent.offset + bytes) % edge);
        bytes.saturating_sub(ragged)
    }

    /// A write too long to be held, under edges: what completes a held block joins it, whole blocks go out
    /// one by one, and a ragged end is held.
    pub(super) fn write_in_blocks(
        &mut self,
        now: Nanos,
        handle: Handle,
        call: Call,
        extent: Extent,
        out: &mut Vec<Action>,
    ) {
        let before = Extent::new(extent.offset.saturating_sub(1), 1);
        if !self.held.is_empty() && (self.appending || self.held.overlaps(before)) {
            let head = self.to_edge(extent.offset);
            let room = self.settings.buffer_bytes - self.held.fill();
            let taken = if head <= room { head } else { 0 };
            if taken > 0 {
                self.hold(Extent::new(extent.offset, taken), 0, out);
            }
            return self.write_out(ALL, (handle, call, taken), out);
        }
        let blocks = Blocks { handle, call, start: extent.offset, done: 0 };
        self.next_block(now, blocks, out);
    }

    /// Bytes from there to the edge behind it.
    fn to_edge(&self, offset: u64) -> u64 {
        self.settings.edge_bytes.map_or(u64::MAX, |edge| edge - offset % edge)
    }

    pub(super) fn next_block(&mut self, now: Nanos, blocks: Blocks, out: &mut Vec<Action>) {
        let Blocks { handle, call, start, done } = blocks;
        let (Call::Write { at, length }, offset) = (call, start + done) else {
            unreachable!("only writes are cut")
        };
        let (rest, to_edge) = (length - done, self.to_edge(offset));
        let appends = self.descriptions.get(handle).access.append;
        let has_room = self.held.fill() + rest <= self.settings.buffer_bytes;
        if done > 0 && rest < to_edge && has_room {
            self.blocks_out(blocks);
            if self.held.is_empty() {
                self.held_since = now;
            }
            (self.writer, self.appending) = (handle, appends);
            self.hold(Extent::new(offset, rest), done, out);
            return self.answer_transfer(handle, at, Extent::new(start, length), out);
        }
        let at = if appends { At::Position } else { At::Offset(offset) };
        self.task = Task::InBlocks(blocks);
        out.push(Action::Perform {
            handle,
            call: Call::Write { at, length: rest.min(to_edge) },
            memory: Place::Caller(done),
        });
    }

    /// A block went out, in full, in part or not at all.
    pub(super) fn block_out(
        &mut self,
        now: Nanos,
        blocks: Blocks,
        outcome: Outcome,
        out: &mut Vec<Action>,
    ) {
        let moved = outcome.unwrap_or(0);
        let blocks = Blocks { done: blocks.done + moved, ..blocks };
        if moved > 0 && blocks.done < blocks.call.transfer_bytes() {
            return self.next_block(now, blocks, out);
        }
        if blocks.done == 0 {
            return out.push(Action::Answer(outcome));
        }
        self.blocks_out(blocks);
        out.push(Action::Answer(Ok(blocks.done)));
    }

    /// What is out of such a write says where the file ends and its position is.
    fn blocks_out(&mut self, Blocks { handle, call, start, done }: Blocks) {
        let end = start + done;
        self.file_bytes = self.file_bytes.max(end);
        let description = self.descriptions.get(handle);
        if matches!(call, Call::Write { at: At::Position, .. }) {
            description.position = end;
            if description.access.append {
                description.below = end;
            }
        }
    }
}

/// A write that goes out in blocks; `done` bytes of it are out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    handle: Handle,
    call: Call,
    /// Where in the file it begins.
    start: u64,
    done: u64,
}
