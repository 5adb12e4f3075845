//! Two-phase I/O: ranks exchange data so that each accesses one contiguous part of the file.
//!
//! After del Rosario, Bordawekar and Choudhary 1993 and Thakur, Gropp and Lusk 1999 (ROMIO). The
//! span of all ranks is dealt out in chunks of the buffer's size. In the original every rank has
//! one contiguous domain and works through it chunk by chunk; interleaved (Kuhn 2009), the chunks
//! of one iteration lie side by side, so all ranks move through the file together.
//!
//! What overlaps what is judged by whole spans, first byte to last byte, so ranks may exchange
//! empty messages; a write's list stays in rank order, so pieces of different ranks do not join.

use super::{Access, Action, Event, FileCall, Payload};
use crate::machine::Machine;
use iolab_vocab::{Direction, Extent, Nanos};
use std::sync::Arc;

/// How chunks are dealt out to ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deal {
    /// One contiguous domain per rank.
    Domains,
    /// Chunk by chunk, rank after rank.
    Interleaved,
}

/// One rank of a two-phase access.
#[derive(Debug)]
pub struct TwoPhase {
    access: Arc<Access>,
    deal: Deal,
    rank: usize,
    buffer_bytes: u64,
    span: Extent,
    iteration: u64,
    iteration_count: u64,
    is_exchanged: bool,
}

impl TwoPhase {
    /// One contiguous domain per rank: the machine for one rank.
    pub fn domains(call: FileCall) -> TwoPhase {
        TwoPhase::new(call, Deal::Domains)
    }

    /// Chunk by chunk, rank after rank: the machine for one rank.
    pub fn interleaved(call: FileCall) -> TwoPhase {
        TwoPhase::new(call, Deal::Interleaved)
    }

    /// The machine for one rank.
    pub fn new(call: FileCall, deal: Deal) -> TwoPhase {
        let FileCall { access, rank, buffer_bytes, .. } = call;
        let span = access.span();
        let ranks = access.wanted.len() as u64;
        let share = match deal {
            Deal::Domains => span.length - span.length / ranks * (ranks - 1),
            Deal::Interleaved => span.length.div_ceil(ranks),
        };
        let iteration_count = match deal {
            Deal::Domains => share.div_ceil(buffer_bytes),
            Deal::Interleaved => span.length.div_ceil(ranks * buffer_bytes),
        };
        TwoPhase {
            access,
            deal,
            rank: rank as usize,
            buffer_bytes,
            span,
            iteration: 0,
            iteration_count,
            is_exchanged: false,
        }
    }

    /// What `rank` takes care of in this iteration.
    fn chunk(&self, rank: usize) -> Extent {
        let (rank, ranks) = (rank as u64, self.access.wanted.len() as u64);
        let (start, limit) = match self.deal {
            Deal::Domains => {
                let domain = self.span.length / ranks;
                let start = rank * domain;
                let end = if rank + 1 == ranks { self.span.length } else { start + domain };
                (start + self.iteration * self.buffer_bytes, end)
            }
            Deal::Interleaved => {
                ((self.iteration * ranks + rank) * self.buffer_bytes, self.span.length)
            }
        };
        let start = start.min(limit);
        Extent::new(self.span.offset + start, self.buffer_bytes.min(limit - start))
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let rank = self.rank;
        (0..self.access.wanted.len()).filter(move |other| *other != rank)
    }

    fn tag(&self, kind: u32) -> u32 {
        self.iteration as u32 * 2 + kind
    }

    /// Rank `to` gets the bytes that rank `of` wants in `within`.
    fn data_to(&self, to: usize, of: usize, within: Extent) -> Action {
        let what = Payload::Pieces { of: of as u32, within };
        Action::Send { to: to as u32, tag: self.tag(0), what }
    }

    /// Rank `to` gets to know where in `within` this rank's pieces lie.
    fn list_to(&self, to: usize, within: Extent) -> Action {
        let what = Payload::List { of: self.rank as u32, within };
        Action::Send { to: to as u32, tag: self.tag(1), what }
    }

    fn data_from(&self, from: usize, of: usize, within: Extent) -> Action {
        let what = Payload::Pieces { of: of as u32, within };
        Action::Receive { from: from as u32, tag: self.tag(0), what }
    }

    fn list_from(&self, from: usize, within: Extent) -> Action {
        let what = Payload::List { of: from as u32, within };
        Action::Receive { from: from as u32, tag: self.tag(1), what }
    }

    fn span_of(&self, rank: usize) -> Extent {
        self.access.wanted[rank].span()
    }

    /// Everybody sends everybody what lies in the other's chunk, and where.
    pub(super) fn exchange_for_write(&self, out: &mut Vec<Action>) {
        let mine = self.chunk(self.rank);
        for other in self.others() {
            if self.span_of(other).overlaps(mine) {
                out.extend([self.data_from(other, other, mine), self.list_from(other, mine)]);
            }
            let theirs = self.chunk(other);
            if self.span_of(self.rank).overlaps(theirs) {
                out.extend([self.data_to(other, self.rank, theirs), self.list_to(other, theirs)]);
            }
        }
    }

    /// What was exchanged: rank 0's pieces of my chunk, then rank 1's, and so on.
    pub(super) fn collected(&self) -> Vec<Extent> {
        let mine = self.chunk(self.rank);
        self.access.wanted.iter().flat_map(|wanted| wanted.within(mine)).collect()
    }

    fn exchange_lists(&self, out: &mut Vec<Action>) {
        let mine = self.chunk(self.rank);
        for other in self.others() {
            if self.span_of(other).overlaps(mine) {
                out.push(self.list_from(other, mine));
            }
            let theirs = self.chunk(other);
            if self.span_of(self.rank).overlaps(theirs) {
                out.push(self.list_to(other, theirs));
            }
        }
    }

    pub(super) fn hand_out(&self, out: &mut Vec<Action>) {
        let mine = self.chunk(self.rank);
        for other in self.others() {
            if self.span_of(other).overlaps(mine) {
                out.push(self.data_to(other, other, mine));
            }
            let theirs = self.chunk(other);
            if self.span_of(self.rank).overlaps(theirs) {
                out.push(self.data_from(other, self.rank, theirs));
            }
        }
    }

    fn write_round(&mut self, out: &mut Vec<Action>) {
        if !self.is_exchanged {
            self.is_exchanged = true;
            return self.exchange_for_write(out);
        }
        let extents = self.collected();
        out.extend((!extents.is_empty()).then_some(Action::WriteFile(extents)));
        self.next_iteration();
    }

    fn read_round(&mut self, out: &mut Vec<Action>) {
        if self.is_exchanged {
            self.hand_out(out);
            return self.next_iteration();
        }
        self.is_exchanged = true;
        self.ask_for_read(out);
    }

    /// Original: the disks are asked first; interleaved: the lists go first.
    pub(super) fn ask_for_read(&self, out: &mut Vec<Action>) {
        let mine = self.chunk(self.rank);
        let read = Action::ReadFile((!mine.is_empty()).then_some(mine).into_iter().collect());
        match self.deal {
            Deal::Domains => {
                out.push(read);
                self.exchange_lists(out);
            }
            Deal::Interleaved => {
                self.exchange_lists(out);
                out.push(read);
            }
        }
    }

    /// Whether all iterations are done.
    pub(super) fn is_over(&self) -> bool {
        self.iteration == self.iteration_count
    }

    pub(super) fn next_iteration(&mut self) {
        self.iteration += 1;
        self.is_exchanged = false;
    }
}

impl Machine for TwoPhase {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, _event: Event, out: &mut Vec<Action>) {
        if self.is_over() {
            return out.push(Action::Finish);
        }
        match self.access.direction {
            Direction::Read => self.read_round(out),
            Direction::Write => self.write_round(out),
        }
    }
}
