//! Held bytes that go out while no call waits for it: one piece at a time, in order of offset over the file
//! and from its front again, as an elevator goes.
//!
//! A call that needs the bytes to be below, or changes them, waits for what is on its way. After that, it
//! makes way for itself as if nothing had gone out meanwhile; so whoever never asks for work
//! ([`crate::insitu::Strategy::begin`]) has bytes held until a call needs them to be out.

use super::{EINTR, EIO, Sends, Task, WriteBack};
use crate::insitu::held::ALL;
use crate::insitu::{Action, At, Call, Handle, Outcome};
use iolab_vocab::{Extent, Nanos};

impl WriteBack {
    /// The next piece, if there is one and nothing has failed that nobody has been told of.
    pub(super) fn begin_work(&mut self, out: &mut Vec<Action>) {
        if self.settings.sends != Sends::Leisure || self.held.is_empty() || self.failure.is_some() {
            return;
        }
        let ahead = Extent::new(self.swept, ALL.length - self.swept);
        let goes_on = !self.appending && self.held.overlaps(ahead);
        let (extent, memory) = self.put_in_order(if goes_on { ahead } else { ALL }, out);
        self.under_way = Some(extent);
        self.swept = extent.end();
        out.push(self.written_by(extent, memory));
    }

    /// It went out, in full, in part or not at all. What did not is held for another try, and a failure waits
    /// for a call that tells of it.
    pub(super) fn work_ended(&mut self, outcome: Outcome) {
        let extent = self.under_way.take().expect("work was begun");
        match outcome {
            Ok(moved) if moved > 0 => self.is_out(extent, moved),
            Err(EINTR) => {}
            failed => self.failure = Some(failed.err().unwrap_or(EIO)),
        }
    }

    /// The call that waited for it goes on.
    pub(super) fn awaited(&mut self, now: Nanos, outcome: Outcome, out: &mut Vec<Action>) {
        let Task::Awaiting { handle, call } = std::mem::replace(&mut self.task, Task::Idle) else {
            unreachable!("no call waited")
        };
        self.work_ended(outcome);
        self.go_on(now, handle, call, out);
    }

    /// Whether a call that could go on if nothing were on its way out has to wait until that is out: a write
    /// which changes that, or is not simply held.
    pub(super) fn waits(&mut self, handle: Handle, call: Call) -> bool {
        let (Call::Write { at, length }, Some(under_way)) = (call, self.under_way) else {
            return false;
        };
        let extent = self.write_extent(handle, at, length);
        let access = self.descriptions.get(handle).access;
        let is_held = access.write && !access.synchronous && length <= self.longest_held();
        let is_placed = !access.append || at == At::Position;
        let room = self.settings.buffer_bytes - self.held.fill();
        let fits = length <= room || self.held.holds_all(extent);
        !(is_held && is_placed && fits) || extent.overlaps(under_way)
    }
}
