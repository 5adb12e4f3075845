//! Collective accesses of one open file that may go out independently. The ranks tell each other the span of each
//! access, and the policy judges.

use super::file;
use super::independent::{self, Function};
use crate::call::Call;
use crate::datatypes;
use crate::exchange::Place;
use crate::exchange::view::{self, View};
use crate::pfs::group::Group;
use crate::pfs::numbers::Numbers;
use iolab_policy::insitu::mpiio::{Demote, Judgement, Part};
use iolab_vocab::Direction;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Of one open file.
pub(super) struct Demotion {
    /// Its ranks, who talk by a communicator of ours.
    group: Group,
    state: Mutex<State>,
}

/// What changes while it is open.
struct State {
    judge: Demote,
    /// What this rank sees of the file; none if that cannot be followed.
    view: Option<View>,
    is_atomic: bool,
    /// Between the two halves of a split call.
    is_split: bool,
    counts: [u64; Judgement::ALL.len()],
}

/// What becomes of a call, on all ranks.
pub(super) enum Verdict {
    Collective,
    /// By this function, which this rank calls alone.
    Independent(Function),
}

/// What becomes of `(file, offset if explicit, buffer, count, datatype, status)`.
pub(super) fn verdict(call: &Call<'_>, direction: Direction, place: Place) -> Verdict {
    let Some(file) = file::find(call.word(0)) else { return Verdict::Collective };
    let Some(demotion) = file.demotion() else { return Verdict::Collective };
    let function = independent::function(direction, place, call.has_large_counts);
    match (demotion.judged(call, direction, place), function) {
        (Judgement::Independent, Some(function)) => Verdict::Independent(function),
        _ => Verdict::Collective,
    }
}

impl Demotion {
    /// Of a file that these ranks have opened.
    pub(super) fn new(group: Group, judge: Demote) -> Demotion {
        let (view, counts) = (Some(View::of_bytes()), [0; Judgement::ALL.len()]);
        let state = State { judge, view, is_atomic: false, is_split: false, counts };
        Demotion { group, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often calls were judged how.
    pub(super) fn counts(&self) -> [u64; Judgement::ALL.len()] {
        self.state().counts
    }

    /// All ranks come here, whatever their part is.
    fn judged(&self, call: &Call<'_>, direction: Direction, place: Place) -> Judgement {
        let part = self.part(call, direction, place).unwrap_or(Part::Unknown);
        let Ok(all) = self.group.gather_words(part.words()) else { return Judgement::Unknown };
        let parts: Vec<Part> = all.into_iter().map(Part::of_words).collect();
        let mut state = self.state();
        let judgement = state.judge.judge(&parts);
        state.counts[judgement as usize] += 1;
        judgement
    }

    /// This rank's part; none if it is not known, or the call is for the library to judge.
    fn part(&self, call: &Call<'_>, direction: Direction, place: Place) -> Option<Part> {
        let state = self.state();
        if state.is_atomic || state.is_split {
            return None;
        }
        let at = if place == Place::Explicit { 2 } else { 1 };
        let View { unit, nest } = state.view.as_ref()?;
        let (count, datatype) = (call.count(at + 1), call.handle(at + 2));
        if count < 0 || datatype == Numbers::here().no_datatype {
            return None;
        }
        let offset = match place {
            Place::Own => view::pointer(call.word(0))?,
            Place::Explicit => u64::try_from(call.word(1) as i64).ok()?,
        };
        let bytes = u64::try_from(datatypes::bytes(count, datatype)?).ok()?;
        if bytes % unit != 0 {
            return None;
        }
        let function = direction as u64 * 2 + u64::from(place == Place::Explicit);
        let (mut begin, mut end) = (0, 0);
        if bytes > 0 {
            // Offsets ascend, so the first byte is the lowest and the last one the highest.
            let from = offset.checked_mul(*unit)?;
            begin = nest.at(from)?;
            end = nest.at(from.checked_add(bytes - 1)?)? + 1;
        }
        Some(Part::Spans { function, begin, end })
    }

    /// After `MPI_File_set_view`, which all ranks call; a rank's view that was refused is not known.
    pub(super) fn view_was_set(&self, call: &Call<'_>, answer: i32) {
        let view = if answer == 0 { view::of_call(call).ok() } else { None };
        self.state().view = view;
    }

    /// After `MPI_File_set_atomicity(file, flag)`.
    pub(super) fn atomicity_was_set(&self, call: &Call<'_>, answer: i32) {
        if answer == 0 {
            self.state().is_atomic = call.int(1) != 0;
        }
    }

    /// After the first half of a split call.
    pub(super) fn split_has_begun(&self, answer: i32) {
        if answer == 0 {
            self.state().is_split = true;
        }
    }

    /// After the second.
    pub(super) fn split_has_ended(&self) {
        self.state().is_split = false;
    }
}
