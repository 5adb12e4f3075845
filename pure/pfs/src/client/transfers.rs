//! One access: the transfers to and from all subfiles it touches, and where the file ends.
//!
//! A process begins with the subfile of its own rank and takes them in turn, so that not all begin at one
//! server (the parallel schedule of Clusterfile). What a read does not find below the end of a subfile is a
//! tail: a hole if the file goes on elsewhere, else behind its end. How long the file is, all subfiles
//! tell; data that came to a subfile meanwhile is read once more.

use super::holds::Holding;
use super::{CallNumber, FileNumber};
use crate::plant::{Plant, is_planted};
use crate::{Layout, Portion, ViewNumber};
use iolab_pattern::Nest;
use iolab_vocab::{Direction, Extent};
use std::sync::Arc;

/// How often each subfile's server may forget the view of an access.
const UNKNOWN_MAX: u32 = 64;

/// A row of bytes of a proper view, and where they are in the program's memory.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    pub(super) view: Arc<Nest>,
    pub(super) from: u64,
    pub(super) to: u64,
    /// Byte `y` of the view is byte `y - origin` of the program's, wrapping.
    pub(super) origin: u64,
}

/// What an access still has to do in one subfile.
#[derive(Debug)]
struct Lane {
    rest: Portion,
    in_flight: u32,
    is_done: bool,
}

/// An access under way.
#[derive(Debug)]
pub(super) struct Transfers {
    pub(super) file: FileNumber,
    pub(super) direction: Direction,
    pub(super) is_collective: bool,
    pub(super) layout: Layout,
    /// The stretch under way, as it is stored.
    pub(super) number: ViewNumber,
    pub(super) stretch: Stretch,
    /// The view of the call, if it is not proper: it is carried out run by run.
    whole: Option<Stretch>,
    lanes: Vec<Lane>,
    first: usize,
    /// Requests and moves under way.
    pub(super) pending: u32,
    /// What was not below the end of its subfile.
    pub(super) tails: Vec<Portion>,
    /// Where there is nothing but the end of the file, as far as is known.
    pub(super) beyond: Vec<Portion>,
    /// How long each subfile is, while all are asked.
    pub(super) ends: Vec<u64>,
    pub(super) is_measuring: bool,
    /// Where the file ends in the stretch.
    pub(super) end: u64,
    /// Up to where the stretch was seen to be there. A file that is shortened meanwhile ends there for this
    /// call: what is in the program's memory by now must not lie behind the end.
    reached: u64,
    /// Bytes of stretches that are over.
    pub(super) bytes: u64,
    /// What it holds, if it is atomic.
    pub(super) holding: Holding,
    /// How often a server did not know the view.
    pub(super) unknown_count: u32,
}

impl Transfers {
    pub(super) fn new(
        file: FileNumber,
        direction: Direction,
        layout: Layout,
        whole: Stretch,
        is_collective: bool,
        rank: u32,
    ) -> Transfers {
        let is_proper = whole.view.proper();
        let stretch = if is_proper { whole.clone() } else { first_run(&whole) };
        let mut transfers = Transfers {
            file,
            direction,
            is_collective,
            layout,
            number: ViewNumber::default(),
            end: stretch.to,
            reached: stretch.from,
            stretch,
            whole: (!is_proper).then_some(whole),
            lanes: Vec::new(),
            first: (rank % layout.subfiles()) as usize,
            pending: 0,
            tails: Vec::new(),
            beyond: Vec::new(),
            ends: Vec::new(),
            is_measuring: false,
            bytes: 0,
            holding: Holding::default(),
            unknown_count: 0,
        };
        transfers.begin();
        transfers
    }

    fn begin(&mut self) {
        let Stretch { view, from, mut to, .. } = self.stretch.clone();
        if is_planted(Plant::TailDropped) && to > from && to % view.root().size() == 0 {
            to -= 1;
        }
        let (layout, view) = (self.layout, &view);
        let portion = |subfile| Portion { view: view.clone(), layout, subfile, from, to };
        let lane = |subfile| Lane { rest: portion(subfile), in_flight: 0, is_done: from == to };
        self.lanes = (0..layout.subfiles()).map(lane).collect();
        (self.end, self.reached) = (to, from);
    }

    /// The range from first to last byte of each subfile that is touched, by subfile. Of a view that is
    /// not proper nobody knows it before all its runs were looked at: it may be anywhere.
    pub(super) fn spans(&self) -> Vec<(u32, Extent)> {
        let anywhere = self.whole.as_ref().map(|_| Extent::new(0, u64::MAX));
        let span = |lane: &Lane| Some((lane.rest.subfile, anywhere.or_else(|| lane.rest.span())?));
        self.lanes.iter().filter_map(span).collect()
    }

    /// The next run of a view that is not proper, unless this was the last. All before must have been
    /// there to be read.
    pub(super) fn next_stretch(&mut self) -> bool {
        self.bytes += self.end - self.stretch.from;
        let is_short = self.end < self.stretch.to;
        let Some(whole) = &mut self.whole else { return false };
        whole.from += self.stretch.to - self.stretch.from;
        if is_short || whole.from >= whole.to {
            return false;
        }
        self.stretch = first_run(whole);
        self.beyond.clear();
        self.begin();
        true
    }

    /// The next transfer of any subfile that has less than `depth` in flight; one of each in turn.
    pub(super) fn next(
        &mut self,
        turn: &mut usize,
        settings: (u64, u32),
    ) -> Option<(Portion, u64)> {
        let (transfer_bytes, depth) = settings;
        let count = self.lanes.len();
        for _ in 0..count {
            let lane = &mut self.lanes[(self.first + *turn) % count];
            *turn += 1;
            if lane.is_done || lane.in_flight >= depth {
                continue;
            }
            match lane.rest.first_transfer(transfer_bytes) {
                None => lane.is_done = true,
                Some((transfer, bytes)) => {
                    lane.rest = lane.rest.behind(transfer.to);
                    lane.in_flight += 1;
                    return Some((transfer, bytes));
                }
            }
        }
        None
    }

    /// Whether a transfer whose view a server did not know is asked for again: one that never keeps it is
    /// full, one that was restarted forgets it once for each transfer in flight.
    pub(super) fn may_repeat(&self) -> bool {
        self.unknown_count < UNKNOWN_MAX * self.lanes.len() as u32
    }

    /// A transfer of a subfile is over.
    pub(super) fn landed(&mut self, subfile: u32) {
        if let Some(lane) = self.lanes.get_mut(subfile as usize) {
            lane.in_flight = lane.in_flight.saturating_sub(1);
        }
    }

    /// These bytes were there.
    pub(super) fn seen(&mut self, portion: &Portion) {
        if is_planted(Plant::EndForgotten) {
            return;
        }
        let to = portion.pieces().last().map_or(0, |piece| piece.to);
        self.reached = self.reached.max(to);
        self.end = self.end.max(to);
    }

    /// Nothing more is begun.
    pub(super) fn stop(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.is_done = true);
        (self.tails, self.whole) = (Vec::new(), None);
    }

    /// All subfiles have told how long they are: what is to be read once more, and what is a hole.
    pub(super) fn measured(&mut self, transfer_bytes: u64) -> (Vec<Portion>, Vec<Portion>) {
        let ends = self.ends.iter().zip(0u32..);
        let mut ends = ends.map(|(&end, subfile)| self.layout.file_bytes(subfile, end));
        let file = if is_planted(Plant::EndOfOneSubfile) { ends.next() } else { ends.max() };
        let rank = self.stretch.view.rank(file.unwrap_or(0)).unwrap_or(self.stretch.from);
        self.end = rank.clamp(self.stretch.from, self.stretch.to).max(self.reached);
        self.reached = self.end;
        let (mut again, mut holes) = (Vec::new(), Vec::new());
        for tail in std::mem::take(&mut self.tails) {
            let end = self.ends.get(tail.subfile as usize).copied().unwrap_or(0);
            if has_bytes(&tail.before(tail.data_end(end))) {
                // With what was there before of the same block: the call sees a block at one instant.
                again.push(tail.with_its_block(transfer_bytes, self.stretch.from));
                continue;
            }
            let hole = tail.before(self.end);
            if has_bytes(&hole) {
                holes.push(hole);
            }
            let beyond = tail.behind(self.end);
            if has_bytes(&beyond) {
                self.beyond.push(beyond);
            }
        }
        if !again.is_empty() {
            // Once more: what was behind the end may not be any more by then.
            self.tails = std::mem::take(&mut self.beyond);
        }
        for portion in &again {
            if let Some(lane) = self.lanes.get_mut(portion.subfile as usize) {
                lane.in_flight += 1;
            }
        }
        (again, holes)
    }
}

/// Whether a portion has any byte.
pub(super) fn has_bytes(portion: &Portion) -> bool {
    portion.pieces().next().is_some()
}

/// The first run of a stretch of a view whose offsets do not ascend, as bytes of the file itself.
fn first_run(whole: &Stretch) -> Stretch {
    let cut = whole.view.cut(whole.from, whole.to);
    let run = cut.runs().next().unwrap_or_default();
    let (from, to) = (run.offset, run.offset + run.length.min(whole.to - whole.from));
    let at = whole.from.wrapping_sub(whole.origin);
    Stretch { view: Arc::new(Nest::WHOLE_FILE), from, to, origin: from.wrapping_sub(at) }
}

/// Which call a transfer is of.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    pub(super) call: CallNumber,
    pub(super) number: ViewNumber,
    pub(super) portion: Portion,
    pub(super) origin: u64,
}
