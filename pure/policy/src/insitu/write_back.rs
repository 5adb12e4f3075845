//! Write-back: small writes are collected in memory and reach the file as few large ones.
//!
//! Per file and process: up to `buffer` bytes are held back (default 1 MiB; measured, larger ones
//! leave the cache and gain nothing), written out when the buffer is full, when the program syncs
//! or closes, when it reads what is partly held, and whenever something looks at the file that
//! strategies do not follow (`Flush`, `Settle`). Writes above `largest` (default 16 KiB: copying
//! them costs what the saved call gains) go straight through. Reads of held bytes are answered
//! from memory. What is written out is sorted by offset and merged.
//!
//! File positions live here, so seeks cost nothing below. Descriptions opened with append hold
//! their data in order at the believed end of the file and write it out by appending.
//!
//! Failures (`ENOSPC`, `EIO`) while writing out are the result of the call that made it necessary,
//! if that is a write, a sync or a close, and are kept for the next one of these otherwise. The
//! bytes stay held for another try until the last description is closed.
//! Ancestor: the write-back strategy of Schmidtke 2017.
//!
//! `align` is the same machine with edges, at each multiple of a block or stripe: whatever goes out, held or
//! too long for that, is cut there, and a full buffer goes out up to the last one, so that ragged ends
//! wait for what completes them.
//!
//! Two more are the same machine on a file that several processes write to, whose descriptions opened with
//! append join each other's: `aggregate` has edges, and a block goes out at once when it is full
//! ([`Sends::FullBlocks`]); `single-writer` holds what is written until somebody else has time for it
//! ([`Sends::Leisure`]), in large pieces and in order of offset.

use super::descriptions::{Descriptions, seek_short, seek_target};
use super::held::{ALL, Held};
use super::null::memory_of;
use super::{
    Action, At, Call, Errno, Event, Handle, HeldPiece, Holding, Interest, Outcome, Place, Short,
    Strategy, Whence,
};
use crate::machine::Machine;
use iolab_vocab::{Extent, Nanos};

const EIO: Errno = Errno(5);
const EINTR: Errno = Errno(4);

mod filling;
mod leisure;
mod settings;
mod write_out;

use filling::Filling;
use write_out::Blocks;

pub(super) use settings::{Sends, Settings, WRITERS, writers};

/// See the module.
pub struct WriteBack {
    settings: Settings,
    descriptions: Descriptions,
    held: Held,
    /// How much of each block is held, where full ones go out at once.
    filling: Option<Filling>,
    /// Held bytes that are on their way out while no call waits for it.
    under_way: Option<Extent>,
    /// Where the next of them are looked for.
    swept: u64,
    /// Whom the held bytes are written out by.
    writer: Handle,
    /// The held bytes are the end of the file and go out by appending.
    appending: bool,
    /// Size of the file below, as far as this process knows.
    file_bytes: u64,
    /// A failure to write out that no call has reported yet.
    failure: Option<Errno>,
    /// When the oldest held byte arrived.
    held_since: Nanos,
    task: Task,
}

/// What is under way below, and what it is for.
#[derive(Clone, Copy, Debug)]
enum Task {
    Idle,
    /// A run of held bytes is being written out, as all that are held within an extent are to be; then
    /// `call` goes on. `taken` bytes of a write are held already.
    WritingOut {
        extent: Extent,
        within: Extent,
        handle: Handle,
        call: Call,
        taken: u64,
    },
    /// What goes out meanwhile has to be out before `call` goes on.
    Awaiting {
        handle: Handle,
        call: Call,
    },
    /// A block of a write too long to be held is being written out.
    InBlocks(Blocks),
    /// The program's own call.
    Passed {
        handle: Handle,
        call: Call,
    },
    /// The position below is being made true for a settle.
    Positioning {
        handle: Handle,
    },
}

impl Machine for WriteBack {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Arrived { handle, call: Call::Write { at, length } } => {
                match self.absorb(handle, at, length) {
                    Some(staging) => absorbed(staging, length, out),
                    None => self.arrived(now, handle, Call::Write { at, length }, out),
                }
            }
            Event::Arrived { handle, call } => self.arrived(now, handle, call, out),
            Event::Performed(outcome) => self.performed(now, outcome, out),
            Event::Ended(outcome) => self.awaited(now, outcome, out),
            Event::Woke => unreachable!("write-back never asks to be woken"),
        }
    }
}

impl Strategy for WriteBack {
    /// The buffer, and room to put the pieces of what goes out together in order.
    fn staging_bytes(&self) -> u64 {
        self.settings.buffer_bytes + self.settings.piece_bytes()
    }

    /// Who looks at the file finds it true while nothing is held.
    fn interest(&self) -> Interest {
        match self.held.is_empty() {
            true => Interest::EVERYTHING.without(Interest::READ_AT).without(Interest::FLUSH),
            false => Interest::EVERYTHING,
        }
    }

    fn reads_clock(&self) -> bool {
        self.settings.age.is_some()
    }

    fn held_bytes(&self) -> u64 {
        self.held.bytes()
    }

    fn holding_bytes(&self) -> u64 {
        self.settings.buffer_bytes
    }

    fn holding(&self) -> Holding {
        Holding {
            fill: self.held.fill(),
            end: self.held.tail_end(),
            rearranged: self.held.rearranged(),
            appending: self.appending,
        }
    }

    fn held_pieces(&self, show: &mut dyn FnMut(HeldPiece)) {
        self.held.pieces().for_each(|piece| show(HeldPiece { extent: piece.extent, at: piece.at }));
    }

    fn drained(&mut self, file_bytes: u64) {
        self.let_go();
        self.file_bytes = file_bytes;
        self.failure = None;
    }

    fn begin(&mut self, out: &mut Vec<Action>) {
        self.begin_work(out);
    }

    fn ended(&mut self, outcome: Outcome) {
        self.work_ended(outcome);
    }

    fn short(&mut self, handle: Handle, call: &Call) -> Short {
        match *call {
            Call::Seek { offset, whence } if self.settings.age.is_none() => {
                seek_short(&mut self.descriptions.get(handle).position, offset, whence)
            }
            _ => Short::Ask,
        }
    }

    #[inline]
    fn absorb(&mut self, handle: Handle, at: At, length: u64) -> Option<u64> {
        if handle != self.writer || length > self.longest_held() || length == 0 {
            return None;
        }
        if self.failure.is_some() || self.settings.age.is_some() || self.held.is_empty() {
            return None;
        }
        if self.settings.sends != Sends::Nothing {
            return None;
        }
        let offset = match at {
            At::Position if self.appending => self.held.tail_end(),
            At::Position => self.descriptions.get(handle).position,
            At::Offset(_) if self.appending => return None,
            At::Offset(offset) => offset,
        };
        let extent = Extent::new(offset, length);
        let staging = self.held.absorb(extent, self.settings.buffer_bytes)?;
        if at == At::Position {
            self.descriptions.get(handle).position = extent.end();
        }
        Some(staging)
    }
}

impl WriteBack {
    /// Write-back for one file.
    pub fn new(settings: Settings) -> WriteBack {
        let block_bytes = settings.edge_bytes.filter(|_| settings.sends == Sends::FullBlocks);
        WriteBack {
            settings,
            descriptions: Descriptions::default(),
            held: Held::new(),
            filling: block_bytes.map(Filling::of_blocks),
            under_way: None,
            swept: 0,
            writer: Handle(0),
            appending: false,
            file_bytes: 0,
            failure: None,
            held_since: Nanos::ZERO,
            task: Task::Idle,
        }
    }

    fn arrived(&mut self, now: Nanos, handle: Handle, call: Call, out: &mut Vec<Action>) {
        if let Call::Open { access, file_bytes, position } = call {
            self.descriptions.open(handle, access, position);
            // What is on its way out may be below already, or not yet.
            self.file_bytes =
                if self.under_way.is_some() { self.file_bytes.max(file_bytes) } else { file_bytes };
        }
        self.go_on(now, handle, call, out);
    }

    /// Makes way for `call`, and goes on with it.
    fn go_on(&mut self, now: Nanos, handle: Handle, call: Call, out: &mut Vec<Action>) {
        let is_in_the_way = self.is_stale(now) || self.must_write_out(handle, call);
        if self.under_way.is_some() && (is_in_the_way || self.waits(handle, call)) {
            self.task = Task::Awaiting { handle, call };
            out.push(Action::Await);
        } else if is_in_the_way {
            let within = self.in_the_way(now, handle, call);
            self.write_out(within, (handle, call, 0), out);
        } else {
            self.carry_on(now, handle, call, out);
        }
    }

    fn is_stale(&self, now: Nanos) -> bool {
        let age_limit = self.settings.age.filter(|_| !self.held.is_empty());
        age_limit.is_some_and(|limit| now.since(self.held_since) >= limit)
    }

    /// Whether the held bytes have to be out before `call` can go on.
    fn must_write_out(&mut self, handle: Handle, call: Call) -> bool {
        if self.held.is_empty() {
            return false;
        }
        let description = *self.descriptions.get(handle);
        match call {
            Call::Open { .. } | Call::Advise { .. } => false,
            Call::Write { at, length } => {
                let appends = description.access.append;
                let extent = self.write_extent(handle, at, length);
                appends != self.appending
                    || (appends && !(self.joins(handle) && at == At::Position))
                    || (length > self.longest_held()
                        && (self.held.overlaps(extent)
                            || (appends && self.settings.edge_bytes.is_none())))
            }
            Call::Read { at, length } => {
                let extent = self.read_extent(handle, at, length);
                let beyond = extent.end() > self.file_bytes && self.held.end() > extent.offset;
                !self.held.covers(extent) && (beyond || self.held.overlaps(extent))
            }
            Call::Seek { whence, .. } => matches!(whence, Whence::Sparse(_)),
            Call::Sync { .. } | Call::Truncate { .. } | Call::Allocate { .. } => true,
            Call::Flush | Call::Settle | Call::Close => true,
        }
    }

    /// Whether what that description appends goes out together with what is held.
    fn joins(&self, handle: Handle) -> bool {
        handle == self.writer || self.settings.sends != Sends::Nothing
    }

    /// Which held bytes have to be out before `call` can go on, some of which have to: for a read of what several
    /// processes write those of its own blocks will do, if the file below goes as far.
    fn in_the_way(&mut self, now: Nanos, handle: Handle, call: Call) -> Extent {
        let Call::Read { at, length } = call else { return ALL };
        let extent = self.read_extent(handle, at, length);
        let is_all = self.settings.sends == Sends::Nothing
            || self.appending
            || self.is_stale(now)
            || extent.end() > self.file_bytes;
        match (is_all, self.settings.edge_bytes) {
            (true, _) => ALL,
            (false, None) => extent,
            (false, Some(edge)) => {
                let (first, end) = (extent.offset / edge, extent.end().div_ceil(edge));
                Extent::new(first * edge, (end - first).saturating_mul(edge))
            }
        }
    }

    /// The extent of the file a read is about.
    fn read_extent(&mut self, handle: Handle, at: At, length: u64) -> Extent {
        match at {
            At::Offset(offset) => Extent::new(offset, length),
            At::Position => Extent::new(self.descriptions.get(handle).position, length),
        }
    }

    /// The extent of the file a write is about: the end of the file for appends.
    fn write_extent(&mut self, handle: Handle, at: At, length: u64) -> Extent {
        match self.descriptions.get(handle).access.append {
            true if at == At::Position => Extent::new(self.end(), length),
            _ => self.read_extent(handle, at, length),
        }
    }

    /// Longer writes than this go straight through.
    fn longest_held(&self) -> u64 {
        self.settings.largest_bytes.min(self.settings.buffer_bytes)
    }

    /// The size of the file as the program believes it to be.
    fn end(&self) -> u64 {
        self.file_bytes.max(self.held.end())
    }

    /// Goes on with `call` when nothing stands in its way any more.
    fn carry_on(&mut self, now: Nanos, handle: Handle, call: Call, out: &mut Vec<Action>) {
        match call {
            Call::Write { at, length } => self.write(now, handle, at, length, out),
            Call::Read { at, length } => self.read(handle, at, length, out),
            Call::Seek { offset, whence } => self.seek(handle, offset, whence, out),
            Call::Settle => self.settle(handle, out),
            _ => self.pass(handle, call, call, out),
        }
    }

    fn write(&mut self, now: Nanos, handle: Handle, at: At, length: u64, out: &mut Vec<Action>) {
        let access = self.descriptions.get(handle).access;
        let call = Call::Write { at, length };
        if let Some(errno) = self.failure.take_if(|_| access.write) {
            return out.push(Action::Answer(Err(errno)));
        }
        let extent = self.write_extent(handle, at, length);
        let ends = extent.offset.checked_add(length).is_some_and(|end| end <= i64::MAX as u64);
        let through = length == 0
            || !ends
            || !access.write
            || access.synchronous
            || (access.append && at != At::Position);
        let is_long = length > self.longest_held();
        match through || is_long {
            true if !through && self.settings.edge_bytes.is_some() => {
                return self.write_in_blocks(now, handle, call, extent, out);
            }
            true => return self.pass_transfer(handle, call, out),
            false => {}
        }
        if self.held.is_empty() {
            self.held_since = now;
        }
        (self.writer, self.appending) = (handle, access.append);
        let room = self.settings.buffer_bytes - self.held.fill();
        let fits = self.held.holds_all(extent) || length <= room;
        let taken = if fits { length } else { self.fitting(extent, room) };
        if taken > 0 {
            self.hold(Extent::new(extent.offset, taken), 0, out);
        }
        if taken == length {
            return self.taken_in(handle, call, extent, out);
        }
        self.write_out(ALL, (handle, call, taken), out);
    }

    /// Holds an extent, whose bytes lie in the caller's memory from `from`.
    fn hold(&mut self, extent: Extent, from: u64, out: &mut Vec<Action>) {
        let Some(filling) = &mut self.filling else {
            return self.held.hold(extent, from, out);
        };
        for part in filling.cut(extent) {
            let before = self.held.bytes();
            self.held.hold(part, from + part.offset - extent.offset, out);
            filling.add(part, self.held.bytes() - before);
        }
    }

    /// Forgets what is held.
    fn let_go(&mut self) {
        self.held.clear();
        if let Some(filling) = &mut self.filling {
            filling.clear();
        }
    }

    /// All bytes of a write are held: what blocks it has made full go out.
    fn taken_in(&mut self, handle: Handle, call: Call, extent: Extent, out: &mut Vec<Action>) {
        match self.full_blocks(extent) {
            Some(full) => self.write_out(full, (handle, call, extent.length), out),
            None => {
                let Call::Write { at, .. } = call else { unreachable!("only writes are taken in") };
                self.answer_transfer(handle, at, extent, out);
            }
        }
    }

    fn answer_transfer(&mut self, handle: Handle, at: At, extent: Extent, out: &mut Vec<Action>) {
        if at == At::Position {
            self.descriptions.get(handle).position = extent.end();
        }
        out.push(Action::Answer(Ok(extent.length)));
    }

    fn read(&mut self, handle: Handle, at: At, length: u64, out: &mut Vec<Action>) {
        let extent = self.read_extent(handle, at, length);
        let readable = self.descriptions.get(handle).access.read;
        if length == 0 || !readable || !self.held.covers(extent) {
            return self.pass_transfer(handle, Call::Read { at, length }, out);
        }
        for piece in self.held.pieces_in(extent) {
            let to = Place::Caller(piece.extent.offset - extent.offset);
            let length = piece.extent.length;
            out.push(Action::Copy { from: Place::Staging(piece.at), to, length });
        }
        self.answer_transfer(handle, at, extent, out);
    }

    fn seek(&mut self, handle: Handle, offset: i64, whence: Whence, out: &mut Vec<Action>) {
        let end = self.end();
        let asks_below = whence == Whence::End && self.held.is_empty();
        let description = self.descriptions.get(handle);
        match seek_target(description.position, end, offset, whence) {
            Some(target) if !asks_below => {
                if let Ok(position) = target {
                    description.position = position;
                }
                out.push(Action::Answer(target));
            }
            _ => {
                let call = Call::Seek { offset, whence };
                self.pass(handle, call, call, out);
            }
        }
    }

    fn settle(&mut self, handle: Handle, out: &mut Vec<Action>) {
        let description = *self.descriptions.get(handle);
        if description.position == description.below {
            return self.pass(handle, Call::Settle, Call::Settle, out);
        }
        self.task = Task::Positioning { handle };
        let offset = description.position as i64;
        let call = Call::Seek { offset, whence: Whence::Start };
        out.push(Action::Perform { handle, call, memory: Place::Nowhere });
    }

    /// A transfer at the position goes down as one at an offset, but for appends.
    fn pass_transfer(&mut self, handle: Handle, call: Call, out: &mut Vec<Action>) {
        let description = *self.descriptions.get(handle);
        let at = At::Offset(description.position);
        let below = match call {
            Call::Read { at: At::Position, length } => Call::Read { at, length },
            Call::Write { at: At::Position, length } if !description.access.append => {
                Call::Write { at, length }
            }
            other => other,
        };
        self.pass(handle, call, below, out);
    }

    fn pass(&mut self, handle: Handle, call: Call, below: Call, out: &mut Vec<Action>) {
        self.task = Task::Passed { handle, call };
        out.push(Action::Perform { handle, call: below, memory: memory_of(below) });
    }

    fn performed(&mut self, now: Nanos, outcome: Outcome, out: &mut Vec<Action>) {
        match std::mem::replace(&mut self.task, Task::Idle) {
            Task::WritingOut { extent, within, handle, call, taken } => {
                self.wrote(now, (extent, within), outcome, (handle, call, taken), out);
            }
            Task::InBlocks(blocks) => self.block_out(now, blocks, outcome, out),
            Task::Passed { handle, call } => self.passed(handle, call, outcome, out),
            Task::Positioning { handle } => {
                if let Ok(position) = outcome {
                    self.descriptions.get(handle).below = position;
                }
                self.pass(handle, Call::Settle, Call::Settle, out);
            }
            Task::Idle | Task::Awaiting { .. } => {
                unreachable!("nothing was asked of the stage below")
            }
        }
    }

    /// The program's own call came back.
    fn passed(&mut self, handle: Handle, call: Call, outcome: Outcome, out: &mut Vec<Action>) {
        if let Ok(value) = outcome {
            self.learn(handle, call, value);
        }
        let outcome = match call {
            Call::Sync { .. } | Call::Close => self.failure.take().map_or(outcome, Err),
            _ => outcome,
        };
        if call == Call::Close {
            self.close(handle);
        }
        out.push(Action::Answer(outcome));
    }

    /// What could not be written out is left to another description, if one can.
    fn close(&mut self, handle: Handle) {
        self.descriptions.close(handle);
        if self.held.is_empty() || self.writer != handle {
            return;
        }
        match self.descriptions.writer(self.appending) {
            Some(writer) => self.writer = writer,
            None => self.let_go(),
        }
    }

    /// What a call that succeeded below says about positions and the size.
    fn learn(&mut self, handle: Handle, call: Call, value: u64) {
        let append = self.descriptions.get(handle).access.append;
        match call {
            Call::Write { .. } if value == 0 => {}
            Call::Write { at, .. } if append => {
                self.file_bytes += value;
                if at == At::Position {
                    let end = self.file_bytes;
                    let description = self.descriptions.get(handle);
                    (description.position, description.below) = (end, end);
                }
            }
            Call::Write { at, .. } => {
                let extent = self.write_extent(handle, at, value);
                self.file_bytes = self.file_bytes.max(extent.end());
                if at == At::Position {
                    self.descriptions.get(handle).position = extent.end();
                }
            }
            Call::Read { at: At::Position, .. } => self.descriptions.get(handle).position += value,
            Call::Seek { offset, whence } => {
                let description = self.descriptions.get(handle);
                (description.position, description.below) = (value, value);
                if whence == Whence::End {
                    self.file_bytes = (value as i64).saturating_sub(offset).max(0) as u64;
                }
            }
            Call::Truncate { length } => self.file_bytes = length,
            Call::Allocate { mode: 0, offset, length } => {
                self.file_bytes = self.file_bytes.max(offset.saturating_add(length));
            }
            _ => {}
        }
    }
}

/// What a write comes to that was absorbed.
fn absorbed(staging: u64, length: u64, out: &mut Vec<Action>) {
    let to = Place::Staging(staging);
    out.push(Action::Copy { from: Place::Caller(0), to, length });
    out.push(Action::Answer(Ok(length)));
}
