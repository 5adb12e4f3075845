//! The way to the recorder in the other library, which is in every recorded process.

use crate::next;
use iolab_trace::Function;
use iolab_trace::spool::{DOOR_NAME, DOOR_VERSION, Door, LeftOut, Record};
use std::sync::OnceLock;

/// The recorder, if calls of MPI are recorded.
pub(crate) fn door() -> Option<&'static Door> {
    static FOUND: OnceLock<Option<&'static Door>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let address = next::anywhere(DOOR_NAME)?;
        // SAFETY: a function of ours in the other library, of this type in every version.
        let open: extern "C" fn(u32) -> *const Door = unsafe { std::mem::transmute(address) };
        // SAFETY: null, or a table that lives as long as the process.
        unsafe { open(DOOR_VERSION).as_ref() }
    })
}

/// Times of a call, as the recorder's clock has them.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// A record of a call whose fields mean nothing yet.
pub(crate) fn record(function: Function, times: Times) -> Record {
    Record {
        start: times.start,
        end: times.end,
        offset: -1,
        length: -1,
        argument: -1,
        fd: -1,
        function: function.0,
        ..Record::default()
    }
}

/// Keeps a record.
pub(crate) fn push(record: Record) {
    if let Some(door) = door() {
        (door.push)(&record);
    }
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
    let Some(door) = door() else { return 0 };
    let number = (door.number)();
    (door.name)(number, text.as_ptr(), text.len());
    number
}

/// Counts a call that is left out.
pub(crate) fn leave_out(reason: LeftOut) {
    if let Some(door) = door() {
        (door.left_out)(reason as usize);
    }
}
