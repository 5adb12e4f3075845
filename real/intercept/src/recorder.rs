//! The recorder: one 64-byte record per call, in shared file mappings, so that what is written is
//! kept whatever happens to the process.
//!
//! Each thread fills a chunk of its process's spool file; a full chunk is handed to the launcher,
//! which writes it away and gives it back. Where nobody drains, the file grows to the stated limit.
//! The layout is `iolab_trace::spool`. Nothing here blocks, allocates or touches `errno`; what
//! cannot be recorded is counted by reason.
//!
//! Cost of a record while chunks come back: two clock readings and about 2 ns.

mod apart;
mod chunks;
mod clock;
mod door;
mod page;
pub(crate) mod runs;
mod setup;
mod text;
mod unattended;

pub(crate) use clock::now;
pub(crate) use iolab_trace::spool::Record;
pub(crate) use page::{left_out, new_number, unseen};
pub(crate) use setup::{before_address_limit, enter_child, is_own_file, note_filtered};

use crate::descriptor::Entry;
use crate::mode::Mode;
use crate::{process, thread};
use chunks::Wanted;
use iolab_trace::Function;
use iolab_trace::spool::{control, process as head};
use std::ffi::c_char;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reads the settings and makes the spool. The answer is what is to be recorded.
pub(crate) fn start(
    count: i32,
    arguments: *const *const c_char,
    variable: &dyn Fn(&[u8]) -> Option<&'static [u8]>,
) -> Mode {
    let mode = setup::start(count, arguments, variable, chunks::leave);
    if mode.has(Mode::RECORD) {
        let rows = page::word(control::STREAM_ROWS);
        runs::choose(rows.map_or(0, |word| word.load(Ordering::Relaxed)));
    }
    mode
}

/// Keeps one record of the calling thread.
#[inline(always)]
pub(crate) fn push(record: Record) {
    put(record, Wanted::Call);
}

#[inline(always)]
fn put(mut record: Record, wanted: Wanted) -> Option<()> {
    let block = thread::block();
    let slot = chunks::reserve(block, wanted)?;
    record.thread = block.number.load(Ordering::Relaxed).wrapping_sub(1) as u16;
    chunks::write(slot, record);
    Some(())
}

/// Says what a number stands for.
pub(crate) fn name(number: u32, text: &[u8]) {
    let mut part = 0;
    while let Some(record) = Record::of_text(number, text, part)
        && put(record, Wanted::Note).is_some()
    {
        part += 1;
    }
}

/// The first sight of a descriptor that was open before.
pub(crate) fn inherited(fd: i32, entry: Entry, path: &[u8], position: i64, size: i64) {
    let now = now();
    name(entry.description(), path);
    let row = Record {
        start: now,
        end: now,
        offset: position,
        length: size,
        argument: i64::from(iolab_processor::traced_open_flags(entry.flags() as i32)),
        result: i64::from(fd),
        number: entry.description(),
        fd,
        function: Function::INHERITED.0,
        ..Record::default()
    };
    _ = put(row, Wanted::Note);
}

/// Libc's entry points were overwritten.
pub(crate) fn patched() {
    setup::set_flag(head::PATCHED);
}

/// The process told that it ends.
pub(crate) fn ended() {
    if process::is_new() {
        return;
    }
    setup::set_flag(head::ENDED);
    if let Some(head) = setup::head() {
        clock::calibrate(|index| {
            // SAFETY: three words within the head.
            unsafe { &*(head.add(head::END + index * 8) as *const AtomicU64) }
        });
    }
}
