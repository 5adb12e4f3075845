//! The recorder, as calls of MPI reach it.

use iolab_layer::recorder::Recorder;
use iolab_trace::spool::{Door, LeftOut, Record, layer};

pub(crate) use iolab_layer::recorder::{Times, record};

static RECORDER: Recorder = Recorder::of(layer::MPI);

/// The recorder, if calls of MPI are recorded.
pub(crate) fn door() -> Option<&'static Door> {
    RECORDER.door()
}

/// Keeps a record.
pub(crate) fn push(record: Record) {
    RECORDER.push(record);
}

/// Keeps what a call came to, or counts that it has no row.
pub(crate) fn keep(row: Option<Record>) {
    match row {
        Some(row) => push(row),
        None => leave_out(LeftOut::Exotic),
    }
}

/// Gives `text` a number, unique in the run.
pub(crate) fn number(text: &[u8]) -> u32 {
    RECORDER.number(text)
}

/// Counts a call that is left out.
pub(crate) fn leave_out(reason: LeftOut) {
    RECORDER.leave_out(reason);
}
