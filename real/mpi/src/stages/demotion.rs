//! Collective accesses of one open file that may go out independently. The ranks tell each other the span of each
//! access, and the policy judges.

use super::file::File;
use super::independent::{self, Function};
use super::seen::{Located, Seen};
use crate::call::Call;
use crate::exchange::Place;
use crate::pfs::group::Group;
use iolab_policy::insitu::mpiio::{Demote, Judgement, Part};
use iolab_vocab::Direction;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Of one open file.
pub(super) struct Demotion {
    state: Mutex<State>,
}

/// What changes while it is open.
struct State {
    judge: Demote,
    counts: [u64; Judgement::ALL.len()],
}

/// What becomes of a call, on all ranks.
pub(super) enum Verdict {
    Collective,
    /// By this function, which this rank calls alone.
    Independent(Function),
}

/// What becomes of `(file, offset if explicit, buffer, count, datatype, status)`.
pub(super) fn verdict(file: &File, call: &Call<'_>, direction: Direction, place: Place) -> Verdict {
    let Some(demotion) = &file.demotion else { return Verdict::Collective };
    let function = independent::function(direction, place, call.has_large_counts);
    let part = part(&file.seen(), call, direction, place).unwrap_or(Part::Unknown);
    match (demotion.judged(&file.group, part), function) {
        (Judgement::Independent, Some(function)) => Verdict::Independent(function),
        _ => Verdict::Collective,
    }
}

impl Demotion {
    /// Of a file that was opened.
    pub(super) fn new(judge: Demote) -> Demotion {
        let counts = [0; Judgement::ALL.len()];
        Demotion { state: Mutex::new(State { judge, counts }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often calls were judged how.
    pub(super) fn counts(&self) -> [u64; Judgement::ALL.len()] {
        self.state().counts
    }

    /// All ranks come here, whatever their part is.
    fn judged(&self, group: &Group, part: Part) -> Judgement {
        let Ok(all) = group.gather_words(part.words()) else { return Judgement::Unknown };
        let parts: Vec<Part> = all.into_iter().map(Part::of_words).collect();
        let mut state = self.state();
        let judgement = state.judge.judge(&parts);
        state.counts[judgement as usize] += 1;
        judgement
    }
}

/// This rank's part; none if it is not known, or the call is for the library to judge.
fn part(seen: &Seen, call: &Call<'_>, direction: Direction, place: Place) -> Option<Part> {
    if seen.is_atomic || seen.is_split {
        return None;
    }
    let Located { nest, from, bytes, .. } = seen.located(call, place)?;
    let function = direction as u64 * 2 + u64::from(place == Place::Explicit);
    let (mut begin, mut end) = (0, 0);
    if bytes > 0 {
        // Offsets ascend, so the first byte is the lowest and the last one the highest.
        begin = nest.at(from)?;
        end = nest.at(from.checked_add(bytes - 1)?)? + 1;
    }
    Some(Part::Spans { function, begin, end })
}
