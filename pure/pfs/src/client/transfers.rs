//! One access: the transfers to and from all subfiles it touches, and where the file ends.
//!
//! What a read does not find below the end of a subfile is a tail: a hole if the file goes on elsewhere,
//! else behind its end. How long the file is, all subfiles tell; data that came to a subfile meanwhile is
//! read once more.

use super::holds::Holding;
use super::lanes::{Lanes, Pace};
use super::stretch::Stretch;
use super::{CallNumber, FileNumber};
use crate::plant::{Plant, is_planted};
use crate::{Division, Portion, ViewNumber};
use iolab_vocab::Direction;

/// How often each subfile's server may forget the view of an access.
const UNKNOWN_MAX: u32 = 64;

/// An access under way.
#[derive(Debug)]
pub(super) struct Transfers {
    pub(super) file: FileNumber,
    pub(super) direction: Direction,
    pub(super) is_collective: bool,
    pub(super) division: Division,
    /// The stretch under way, as it is stored.
    pub(super) number: ViewNumber,
    pub(super) stretch: Stretch,
    /// The view of the call, if it is not proper: it is carried out run by run.
    whole: Option<Stretch>,
    pace: Pace,
    pub(super) lanes: Lanes,
    /// Requests and moves under way.
    pub(super) pending: u32,
    /// What was not below the end of its subfile.
    pub(super) tails: Vec<Portion>,
    /// Where there is nothing but the end of the file, as far as is known.
    pub(super) beyond: Vec<Portion>,
    /// How long each part is, while all are asked; and where the file ends, by those who were asked.
    ends: Vec<u64>,
    file_end: u64,
    /// A party has begun a new life that may have lost something: what was a hole in the last one may have been written since.
    pub(super) is_doubtful: bool,
    pub(super) is_measuring: bool,
    /// Where the file ends in the stretch.
    pub(super) end: u64,
    /// Up to where the stretch was seen to be there. A file that is shortened meanwhile ends there for this
    /// call: what is in the program's memory by now must not lie behind the end.
    reached: u64,
    /// Bytes of stretches that are over.
    pub(super) bytes: u64,
    /// What it holds, if it is atomic.
    pub(super) holding: Option<Holding>,
    /// How often a server did not know the view.
    pub(super) unknown_count: u32,
}

impl Transfers {
    pub(super) fn new(
        file: FileNumber,
        direction: Direction,
        division: Division,
        whole: Stretch,
        is_collective: bool,
        pace: Pace,
    ) -> Transfers {
        let is_proper = whole.view.proper();
        let stretch = if is_proper { whole.clone() } else { whole.first_run() };
        Transfers {
            file,
            direction,
            is_collective,
            division,
            number: ViewNumber::default(),
            end: stretch.end(),
            reached: stretch.from,
            lanes: lanes_of(&stretch, division, pace),
            stretch,
            whole: (!is_proper).then_some(whole),
            pace,
            pending: 0,
            tails: Vec::new(),
            beyond: Vec::new(),
            ends: Vec::new(),
            file_end: 0,
            is_doubtful: false,
            is_measuring: false,
            bytes: 0,
            holding: None,
            unknown_count: 0,
        }
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
        self.stretch = whole.first_run();
        self.beyond.clear();
        (self.end, self.reached) = (self.stretch.end(), self.stretch.from);
        self.lanes = lanes_of(&self.stretch, self.division, self.pace);
        true
    }

    /// Whether a transfer whose view a server did not know is asked for again: one that never keeps it is
    /// full, one that was restarted forgets it once for each transfer in flight.
    pub(super) fn may_repeat(&self) -> bool {
        self.unknown_count < UNKNOWN_MAX * self.lanes.count()
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
        self.lanes.stop();
        (self.tails, self.whole) = (Vec::new(), None);
    }

    /// All are asked where the file ends.
    pub(super) fn measure(&mut self) {
        self.is_measuring = true;
        (self.ends, self.file_end) = (vec![0; self.division.parts() as usize], 0);
    }

    /// Somebody says how long a part of the file is: one of those that this access goes to, or a subfile of
    /// `subfiles`.
    pub(super) fn told(&mut self, subfiles: Option<Division>, is_lane: bool, part: u32, end: u64) {
        let own = self.division;
        let division = if is_lane { own } else { subfiles.unwrap_or(own) };
        if is_lane && let Some(known) = self.ends.get_mut(part as usize) {
            *known = end;
        }
        if part == 0 || !is_planted(Plant::EndOfOneSubfile) {
            self.file_end = self.file_end.max(division.file_bytes(part, end));
        }
    }

    /// All have told how long their parts are: what is to be read once more, and what is a hole.
    pub(super) fn measured(&mut self) -> (Vec<Portion>, Vec<Portion>) {
        let rank = self.stretch.view.rank(self.file_end).unwrap_or(self.stretch.from);
        self.end = rank.clamp(self.stretch.from, self.stretch.to).max(self.reached);
        self.reached = self.end;
        let was_doubtful = std::mem::take(&mut self.is_doubtful);
        let (mut again, mut holes) = (Vec::new(), Vec::new());
        for tail in std::mem::take(&mut self.tails) {
            let end = self.ends.get(tail.subfile as usize).copied().unwrap_or(0);
            let is_doubtful = was_doubtful && has_bytes(&tail.before(self.end));
            if is_doubtful || has_bytes(&tail.before(tail.data_end(end))) {
                // With what was there before of the same block: the call sees a block at one instant.
                again.push(tail.with_its_block(self.pace.transfer_bytes, self.stretch.from));
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
        again.iter().for_each(|portion| self.lanes.repeated(portion.subfile));
        (again, holes)
    }
}

/// What each subfile has of a stretch.
fn lanes_of(stretch: &Stretch, division: Division, pace: Pace) -> Lanes {
    let (view, from, to) = (&stretch.view, stretch.from, stretch.end());
    let portion = |subfile| Portion { view: view.clone(), division, subfile, from, to };
    Lanes::new(pace, (0..division.parts()).map(portion))
}

/// Whether a portion has any byte.
pub(super) fn has_bytes(portion: &Portion) -> bool {
    portion.pieces().next().is_some()
}

/// Which call a transfer is of.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    pub(super) call: CallNumber,
    pub(super) number: ViewNumber,
    pub(super) portion: Portion,
    pub(super) origin: u64,
}
