//! One rank of a collective access: what its machine decides is carried out, round by round.
//!
//! Where a rank's pieces lie follows from its view, which all know: a message of pieces is an interval of
//! it, packed by who has them and laid out by who needs them, and a list of pieces needs no message. Bytes
//! go from and to the program's memory directly where they lie in a row there.
//!
//! A rank whose access fails keeps its machine's rounds: others wait for its messages. The first failure is
//! what it ends with.

mod extents;

use super::storage::Storage;
use super::wire::{Source, Wire};
use crate::pfs::buffer::Buffer;
use crate::pfs::numbers::Class;
use crate::pfs::trouble::Trouble;
use extents::{hull_of, interval_bytes, joined, parts};
use iolab_pfs_node::Memory;
use iolab_policy::Machine;
use iolab_policy::collective::{Access, Action, BUFFER_BYTES, Event, Payload, Wanted};
use iolab_vocab::{Direction, Extent, Nanos};
use std::sync::Arc;
use std::time::Instant;

/// Largest part of the file that is put together in memory at once.
const WINDOW_BYTES: u64 = 2 * BUFFER_BYTES;

/// Memory of a call.
pub(super) trait Laid: Memory {
    /// Where the bytes from `at` on are, if they lie in one row.
    fn place(&self, at: u64, bytes: usize) -> Option<*mut u8>;
}

impl Laid for Buffer {
    fn place(&self, at: u64, bytes: usize) -> Option<*mut u8> {
        Buffer::place(self, at, bytes)
    }
}

/// Bytes of another rank, or for another: an interval of its view.
struct Message {
    of: u32,
    from: u64,
    to: u64,
    bytes: Vec<u8>,
}

/// A part of the file that was read, for others too.
struct Region {
    extent: Extent,
    bytes: Vec<u8>,
    /// Bytes of it that others will be sent.
    owed: u64,
}

/// What is to be received in a round.
enum Arriving {
    /// Straight into the program's memory.
    InPlace,
    /// For the program's memory, from there on.
    Own {
        at: u64,
        bytes: Vec<u8>,
    },
    Others(Message),
}

/// The rounds of one rank.
pub(super) struct Rounds<'a, W, S> {
    access: Arc<Access>,
    rank: u32,
    /// Where this rank's interval of its view begins.
    from: u64,
    memory: &'a mut dyn Laid,
    wire: W,
    storage: S,
    messages: Vec<Message>,
    regions: Vec<Region>,
    arriving: Vec<Arriving>,
    spare: Vec<Vec<u8>>,
    sent_bytes: u64,
    trouble: Option<Trouble>,
}

impl<W, S> Drop for Rounds<'_, W, S> {
    fn drop(&mut self) {
        // What is still to arrive, after a failure of MPI's, may be written to at any time.
        std::mem::forget(std::mem::take(&mut self.arriving));
    }
}

impl<'a, W: Wire, S: Storage> Rounds<'a, W, S> {
    pub(super) fn of(
        (access, rank, from): (Arc<Access>, u32, u64),
        memory: &'a mut dyn Laid,
        wire: W,
        storage: S,
        spare: Vec<Vec<u8>>,
    ) -> Rounds<'a, W, S> {
        let (messages, regions, arriving) = (Vec::new(), Vec::new(), Vec::new());
        let (sent_bytes, trouble) = (0, None);
        Rounds {
            access,
            rank,
            from,
            memory,
            wire,
            storage,
            messages,
            regions,
            arriving,
            spare,
            sent_bytes,
            trouble,
        }
    }

    /// Carries out what the machine decides, to its end.
    pub(super) fn run(
        &mut self,
        mut machine: impl Machine<Event = Event, Action = Action>,
    ) -> Result<(), Trouble> {
        let begin = Instant::now();
        let (mut event, mut actions) = (Event::Began, Vec::new());
        loop {
            let now = Nanos(begin.elapsed().as_nanos() as u64);
            machine.step(now, event, &mut actions);
            event = Event::RoundCompleted;
            let is_last = actions.last() == Some(&Action::Finish);
            self.round(&mut actions)?;
            if is_last {
                break;
            }
        }
        let gone = self.wire.send_all_but(0)?;
        self.spare.extend(gone);
        self.trouble.take().map_or(Ok(()), Err)
    }

    /// Bytes that went to other ranks, and memory for the next call.
    pub(super) fn end(&mut self) -> (u64, Vec<Vec<u8>>) {
        (self.sent_bytes, std::mem::take(&mut self.spare))
    }

    fn round(&mut self, actions: &mut Vec<Action>) -> Result<(), Trouble> {
        for action in actions.iter() {
            if let Action::Receive { from, tag, what } = *action {
                self.await_message(from, tag, what)?;
            }
        }
        for action in actions.iter() {
            if let Action::Send { to, tag, what } = *action {
                self.send(to, tag, what)?;
            }
        }
        for action in actions.drain(..) {
            let done = match action {
                Action::ReadFile(extents) => self.read(&extents),
                Action::WriteFile(extents) | Action::PostWrite(extents) => self.write(extents),
                Action::Send { .. } | Action::Receive { .. } | Action::Finish => Ok(()),
            };
            self.trouble = self.trouble.take().or(done.err());
        }
        self.wire.receive_all()?;
        self.arrived();
        // More than one exchange of everybody is never on its way.
        let most = self.access.wanted.len() * BUFFER_BYTES as usize;
        let gone = self.wire.send_all_but(most)?;
        self.spare.extend(gone);
        Ok(())
    }

    /// Memory of so many bytes; what is in it means nothing.
    fn take(&mut self, bytes: u64) -> Vec<u8> {
        let bytes = bytes as usize;
        let fits = self.spare.iter().position(|spare| spare.capacity() >= bytes);
        let mut memory = fits.map(|at| self.spare.swap_remove(at)).unwrap_or_default();
        memory.resize(bytes, 0);
        memory
    }

    fn wanted(&self, of: u32) -> &Wanted {
        &self.access.wanted[of as usize]
    }

    /// This rank's bytes inside a part of the file, as its memory counts them.
    fn own_within(&self, extent: Extent) -> (u64, u64) {
        let (from, to) = self.wanted(self.rank).interval(extent);
        (from.saturating_sub(self.from), to.saturating_sub(self.from))
    }

    fn is_own_memory(&self, of: u32, direction: Direction) -> bool {
        of == self.rank && self.access.direction == direction
    }

    fn await_message(&mut self, from: u32, tag: u32, what: Payload) -> Result<(), Trouble> {
        let Some((of, first, last)) = self.interval(what) else { return Ok(()) };
        let bytes = (last - first) as usize;
        let mut arriving = match self.is_own_memory(of, Direction::Read) {
            true => {
                let at = first - self.from;
                match self.memory.place(at, bytes) {
                    Some(place) => {
                        self.arriving.push(Arriving::InPlace);
                        // SAFETY: the program's memory, until the call ends.
                        return unsafe { self.wire.receive(from, tag, place, bytes) };
                    }
                    None => Arriving::Own { at, bytes: self.take(last - first) },
                }
            }
            false => {
                let bytes = self.take(last - first);
                Arriving::Others(Message { of, from: first, to: last, bytes })
            }
        };
        let place = match &mut arriving {
            Arriving::Own { bytes, .. } | Arriving::Others(Message { bytes, .. }) => {
                bytes.as_mut_ptr()
            }
            Arriving::InPlace => return Ok(()),
        };
        self.arriving.push(arriving);
        // SAFETY: `arriving` keeps the bytes where they are until they are here, and for ever if they
        // do not come.
        unsafe { self.wire.receive(from, tag, place, bytes) }
    }

    fn arrived(&mut self) {
        for arriving in std::mem::take(&mut self.arriving) {
            match arriving {
                Arriving::InPlace => {}
                Arriving::Own { at, bytes } => {
                    self.memory.scatter(at, &bytes);
                    self.spare.push(bytes);
                }
                Arriving::Others(message) => self.messages.push(message),
            }
        }
    }

    /// The interval of a rank's view that a message carries; none if it has no bytes. Where pieces lie is
    /// known, and other payload has no place in an access.
    fn interval(&self, what: Payload) -> Option<(u32, u64, u64)> {
        let Payload::Pieces { of, within } = what else { return None };
        let (from, to) = self.wanted(of).interval(within);
        (from < to).then_some((of, from, to))
    }

    fn send(&mut self, to: u32, tag: u32, what: Payload) -> Result<(), Trouble> {
        let Some((of, first, last)) = self.interval(what) else { return Ok(()) };
        self.sent_bytes += last - first;
        let source = match self.is_own_memory(of, Direction::Write) {
            true => self.own(first - self.from, last - first),
            false => Source::Kept(self.gathered(of, first, last)),
        };
        self.wire.send(to, tag, source)
    }

    /// Bytes of the program's memory.
    fn own(&mut self, at: u64, bytes: u64) -> Source {
        if let Some(place) = self.memory.place(at, bytes as usize) {
            return Source::Lent(place, bytes as usize);
        }
        let mut kept = self.take(bytes);
        self.memory.gather(at, &mut kept);
        Source::Kept(kept)
    }

    /// What a rank wants in an interval of its view, out of what was read or came here.
    fn gathered(&mut self, of: u32, from: u64, to: u64) -> Vec<u8> {
        let mut bytes = self.take(to - from);
        let access = self.access.clone();
        let Some(view) = access.wanted[of as usize].view() else { return bytes };
        let hull = hull_of(view, from, to);
        if let Some(at) = self.regions.iter().position(|it| it.extent.contains(hull)) {
            let region = &mut self.regions[at];
            let cut = view.cut(from, to);
            cut.gather(&region.bytes, region.extent.offset, &mut bytes).expect("the region has it");
            region.owed = region.owed.saturating_sub(to - from);
            if region.owed == 0 {
                let region = self.regions.swap_remove(at);
                self.spare.push(region.bytes);
            }
            return bytes;
        }
        let came = |it: &&Message| it.of == of && it.from <= from && to <= it.to;
        if let Some(message) = self.messages.iter().find(came) {
            let at = (from - message.from) as usize;
            bytes.copy_from_slice(&message.bytes[at..at + (to - from) as usize]);
            return bytes;
        }
        let mut rest = &mut bytes[..];
        for run in view.cut(from, to).runs() {
            let (at, end) = self.own_within(run);
            let (piece, more) = rest.split_at_mut(run.length as usize);
            if end - at == run.length {
                self.memory.gather(at, piece);
            } else if self.trouble.is_none() {
                self.trouble = Some(Trouble::new(Class::Other, format!("nobody has {run}")));
            }
            rest = more;
        }
        bytes
    }

    fn read(&mut self, extents: &[Extent]) -> Result<(), Trouble> {
        if self.is_own_list(extents) {
            return self.read_own(extents);
        }
        for &extent in extents.iter().filter(|extent| !extent.is_empty()) {
            let mut bytes = self.take(extent.length);
            let read = match self.trouble {
                None => self.storage.read(extent.offset, &mut bytes),
                // Others are sent something, so that they come to the end, too.
                Some(_) => Ok(bytes.len()),
            };
            let got = *read.as_ref().unwrap_or(&0);
            bytes[got..].fill(0);
            let (from, to) = self.wanted(self.rank).interval(extent);
            if from < to && read.is_ok() {
                self.lay_out_own(from, to, &bytes, extent.offset);
            }
            let others = self.access.wanted.iter().enumerate();
            let others = others.filter(|(rank, _)| *rank != self.rank as usize);
            let owed = others.map(|(_, wanted)| interval_bytes(wanted, extent)).sum();
            match owed {
                0 => self.spare.push(bytes),
                owed => self.regions.push(Region { extent, bytes, owed }),
            }
            read?;
        }
        Ok(())
    }

    /// Copies this rank's pieces out of a part of the file that begins at `base`.
    fn lay_out_own(&mut self, from: u64, to: u64, file: &[u8], base: u64) {
        let access = self.access.clone();
        let Some(view) = access.wanted[self.rank as usize].view() else { return };
        let (cut, at) = (view.cut(from, to), from - self.from);
        let bytes = (to - from) as usize;
        if let Some(place) = self.memory.place(at, bytes) {
            // SAFETY: a row of the program's memory, which nobody else uses during a call that reads.
            let row = unsafe { std::slice::from_raw_parts_mut(place, bytes) };
            return cut.gather(file, base, row).expect("the part of the file has it");
        }
        let mut packed = self.take(to - from);
        cut.gather(file, base, &mut packed).expect("the part of the file has it");
        self.memory.scatter(at, &packed);
        self.spare.push(packed);
    }

    /// Whether these are exactly the pieces that this rank wants there, and no others are here.
    fn is_own_list(&self, extents: &[Extent]) -> bool {
        let (Some(first), Some(last)) = (extents.first(), extents.last()) else { return true };
        let hull = Extent::new(first.offset, last.end().saturating_sub(first.offset));
        let is_others = |it: &Message| {
            let view = self.wanted(it.of).view();
            view.is_some_and(|view| hull_of(view, it.from, it.to).overlaps(hull))
        };
        let asked: u64 = extents.iter().map(|extent| extent.length).sum();
        interval_bytes(self.wanted(self.rank), hull) == asked
            && !self.messages.iter().any(is_others)
            && self.wanted(self.rank).within(hull).eq(extents.iter().copied())
    }

    fn read_own(&mut self, extents: &[Extent]) -> Result<(), Trouble> {
        let Some(first) = extents.first() else { return Ok(()) };
        let mut at = self.own_within(*first).0;
        for run in joined(extents) {
            for part in parts(run) {
                let bytes = part.length as usize;
                if self.trouble.is_some() {
                    return Ok(());
                }
                if let Some(place) = self.memory.place(at, bytes) {
                    // SAFETY: as above.
                    let row = unsafe { std::slice::from_raw_parts_mut(place, bytes) };
                    self.storage.read(part.offset, row)?;
                } else {
                    let mut packed = self.take(part.length);
                    let got = self.storage.read(part.offset, &mut packed)?;
                    self.memory.scatter(at, &packed[..got]);
                    self.spare.push(packed);
                }
                at += part.length;
            }
        }
        Ok(())
    }

    fn write(&mut self, mut extents: Vec<Extent>) -> Result<(), Trouble> {
        if self.trouble.is_some() {
            self.messages.clear();
            return Ok(());
        }
        if self.is_own_list(&extents) {
            return self.write_own(&extents);
        }
        extents.sort_by_key(|extent| extent.offset);
        let runs: Vec<Extent> = joined(&extents).into_iter().flat_map(parts).collect();
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return Ok(()) };
        let hull = Extent::new(first.offset, last.end() - first.offset);
        let mut rest = &runs[..];
        while let Some(first) = rest.first() {
            let count = rest.partition_point(|run| run.end() <= first.offset + WINDOW_BYTES);
            let (window, more) = rest.split_at(count.max(1));
            self.write_window(window)?;
            rest = more;
        }
        let access = self.access.clone();
        let is_written = |it: &mut Message| {
            let view = access.wanted[it.of as usize].view();
            view.is_none_or(|view| hull.contains(hull_of(view, it.from, it.to)))
        };
        let written = self.messages.extract_if(.., is_written);
        self.spare.extend(written.map(|message| message.bytes));
        Ok(())
    }

    /// Puts together what these runs hold, rank after rank, and writes each of them.
    fn write_window(&mut self, runs: &[Extent]) -> Result<(), Trouble> {
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return Ok(()) };
        let window = Extent::new(first.offset, last.end() - first.offset);
        let mut file = self.take(window.length);
        let access = self.access.clone();
        for (of, wanted) in access.wanted.iter().enumerate() {
            let Some(view) = wanted.view() else { continue };
            let (from, to) = wanted.interval(window);
            let mut lay = |from: u64, to: u64, packed: &[u8]| {
                let laid = view.cut(from, to).scatter(packed, &mut file, window.offset);
                laid.expect("the window has room for it");
            };
            if of as u32 == self.rank && from < to {
                let source = self.own(from - self.from, to - from);
                // SAFETY: a row of the program's memory, which does not change during a call that writes.
                lay(from, to, unsafe { source.bytes() });
                if let Source::Kept(bytes) = source {
                    self.spare.push(bytes);
                }
            }
            for message in self.messages.iter().filter(|it| it.of == of as u32) {
                let (from, to) = (from.max(message.from), to.min(message.to));
                if from < to {
                    let at = (from - message.from) as usize;
                    lay(from, to, &message.bytes[at..at + (to - from) as usize]);
                }
            }
        }
        for run in runs {
            let at = (run.offset - window.offset) as usize;
            self.storage.write(run.offset, &file[at..at + run.length as usize])?;
        }
        self.spare.push(file);
        Ok(())
    }

    fn write_own(&mut self, extents: &[Extent]) -> Result<(), Trouble> {
        let Some(first) = extents.first() else { return Ok(()) };
        let mut at = self.own_within(*first).0;
        for part in joined(extents).into_iter().flat_map(parts) {
            let source = self.own(at, part.length);
            // SAFETY: as above.
            self.storage.write(part.offset, unsafe { source.bytes() })?;
            if let Source::Kept(bytes) = source {
                self.spare.push(bytes);
            }
            at += part.length;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
