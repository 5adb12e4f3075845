//! What a rank sees of an open file, followed from call to call: its view, and in which mode it is.

use crate::call::Call;
use crate::datatypes;
use crate::exchange::Place;
use crate::exchange::view::{self, View};
use crate::pfs::numbers::Numbers;
use iolab_pattern::Nest;
use std::sync::Arc;

/// Of one open file.
pub(super) struct Seen {
    /// None if it cannot be followed.
    view: Option<View>,
    pub(super) is_atomic: bool,
    /// Between the two halves of a split call.
    pub(super) is_split: bool,
}

/// Where an access of this rank lies.
pub(super) struct Located {
    /// What the rank sees of the file.
    pub(super) nest: Arc<Nest>,
    /// Bytes of an etype.
    pub(super) unit: u64,
    /// Where in the view the access begins, in etypes.
    pub(super) offset: u64,
    /// The same in bytes.
    pub(super) from: u64,
    pub(super) bytes: u64,
}

impl Seen {
    /// As every file begins.
    pub(super) fn of_bytes() -> Seen {
        Seen { view: Some(View::of_bytes()), is_atomic: false, is_split: false }
    }

    /// After `MPI_File_set_view`, which all ranks call; a rank's view that was refused is not known.
    pub(super) fn view_was_set(&mut self, call: &Call<'_>, answer: i32) {
        self.view = if answer == 0 { view::of_call(call).ok() } else { None };
    }

    /// After `MPI_File_set_atomicity(file, flag)`.
    pub(super) fn atomicity_was_set(&mut self, call: &Call<'_>, answer: i32) {
        if answer == 0 {
            self.is_atomic = call.int(1) != 0;
        }
    }

    /// Where `(file, offset if explicit, buffer, count, datatype, …)` goes; none if that is not known, or the call is
    /// for the library to judge.
    pub(super) fn located(&self, call: &Call<'_>, place: Place) -> Option<Located> {
        let at = if place == Place::Explicit { 2 } else { 1 };
        let View { unit, nest } = self.view.as_ref()?;
        let (count, datatype) = (call.count(at + 1), call.handle(at + 2));
        if count < 0 || datatype == Numbers::here().no_datatype {
            return None;
        }
        let offset = match place {
            Place::Own => view::pointer(call.word(0))?,
            Place::Explicit => u64::try_from(call.word(1) as i64).ok()?,
        };
        let bytes = u64::try_from(datatypes::bytes(count, datatype)?).ok()?;
        let from = offset.checked_mul(*unit)?;
        (bytes % unit == 0).then(|| Located {
            nest: nest.clone(),
            unit: *unit,
            offset,
            from,
            bytes,
        })
    }
}
