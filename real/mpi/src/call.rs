//! One call of MPI while it is made: its arguments, and what is noted of it.

use crate::family::Family;
use crate::recorder::Times;
use crate::state::{self, State};

/// A call of MPI: its arguments, and when it was.
pub(crate) struct Call<'a> {
    pub(crate) arguments: &'a mut [usize],
    pub(crate) has_large_counts: bool,
    pub(crate) family: &'static Family,
    pub(crate) times: Times,
    /// Handles noted before the call.
    pub(crate) noted: Vec<usize>,
    /// Room for a status of any family: none has more than 32 bytes.
    pub(crate) scratch: [u64; 8],
}

impl Call<'_> {
    pub(crate) fn word(&self, at: usize) -> usize {
        self.arguments.get(at).copied().unwrap_or(0)
    }

    pub(crate) fn set(&mut self, at: usize, word: usize) {
        if let Some(place) = self.arguments.get_mut(at) {
            *place = word;
        }
    }

    /// The place of the last argument.
    pub(crate) fn last(&self) -> usize {
        self.arguments.len() - 1
    }

    pub(crate) fn int(&self, at: usize) -> i32 {
        self.word(at) as i32
    }

    pub(crate) fn count(&self, at: usize) -> i64 {
        match self.has_large_counts {
            true => self.word(at) as i64,
            false => i64::from(self.int(at)),
        }
    }

    /// A count of a list of counts.
    ///
    /// # Safety
    /// The guest's list must have as many.
    pub(crate) unsafe fn count_in(&self, at: usize, index: usize) -> i64 {
        // SAFETY: the caller's promise; lists of large counts are not seen.
        i64::from(unsafe { (self.word(at) as *const i32).add(index).read_unaligned() })
    }

    /// The integer that an argument points to; MPI has just written it.
    pub(crate) fn int_at(&self, at: usize) -> i32 {
        match self.word(at) {
            0 => 0,
            // SAFETY: the guest's own room for an answer.
            address => unsafe { (address as *const i32).read_unaligned() },
        }
    }

    pub(crate) fn handle(&self, at: usize) -> usize {
        self.family.handle(self.word(at))
    }

    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        state::with(self.family, work)
    }
}
