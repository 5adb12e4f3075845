//! Calls on a stream that are counted instead of recorded one by one.
//!
//! Most calls on a stream only touch its buffer and take less time than a record of them. After the
//! first so many on a file, those that reach nothing below are added up in one record for each
//! function of a file: a *run*. Its record is written when the run begins and added to in place, so
//! that nothing is lost however the program ends. A run ends when a call on its file does reach
//! something, which gets a record of its own, and when its chunk is full: a chunk that may be handed
//! on is never added to. A signal handler that fills the chunk while an addition is under way leaves
//! the chunk with the thread instead.

use super::chunks::{self, Wanted};
use super::clock;
use crate::processor::instructions;
use crate::thread::{self, Block};
use iolab_trace::Function;
use iolab_trace::spool::{COUNT_SHIFT, MIXED, RECORD_BYTES, Record};
use std::mem::offset_of;
use std::sync::atomic::{AtomicI64, AtomicU16, AtomicU32, AtomicU64, Ordering, compiler_fence};

/// How many calls on a file get records of their own first.
static ROWS: AtomicU32 = AtomicU32::new(u32::MAX);

/// For each descriptor: the number of its description, and how many calls got records of their own.
static SEEN: [AtomicU64; 65_536] = [const { AtomicU64::new(0) }; 65_536];

/// A call that leaves fewer slots than this in the chunk has its start read from the clock.
const FEW_SLOTS: u64 = 32;

/// Sets how many calls on a file get records of their own; `u32::MAX` for all.
pub(crate) fn choose(rows: u32) {
    ROWS.store(rows, Ordering::Relaxed);
}

/// Whether the next call on a stream is to be counted, if it reaches nothing. Says no for the first
/// calls on each description; of several threads some more may be among the first.
#[inline(always)]
pub(crate) fn is_due(fd: i32, description: u32) -> bool {
    let rows = ROWS.load(Ordering::Relaxed);
    if rows == u32::MAX {
        return false;
    }
    let Some(word) = SEEN.get(fd as usize) else { return false };
    let seen = word.load(Ordering::Relaxed);
    let known = (seen >> 32) as u32 == description;
    if known && seen as u32 >= rows {
        return true;
    }
    let first = if known { seen + 1 } else { u64::from(description) << 32 | 1 };
    word.store(first, Ordering::Relaxed);
    rows == 0
}

/// A call on a followed file is made below without a record.
#[inline(always)]
pub(crate) fn note_reached() {
    let reached = &thread::block().reached;
    reached.store(reached.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// The moment before a call that may come to be counted.
#[derive(Clone, Copy)]
pub(crate) struct Before {
    cursor: u64,
    reached: u32,
    /// 0 where the clock was not read.
    start: u64,
}

impl Before {
    /// Now. The clock is read when asked for, and where it could not be found out later.
    #[inline(always)]
    pub(crate) fn now(with_clock: bool) -> Before {
        let block = thread::block();
        let cursor = block.cursor.load(Ordering::Relaxed);
        let start = if with_clock || chunks::left(cursor) < FEW_SLOTS { clock::now() } else { 0 };
        Before { cursor, reached: block.reached.load(Ordering::Relaxed), start }
    }

    /// Whether something below was reached since.
    #[inline(always)]
    pub(crate) fn has_reached(&self) -> bool {
        let block = thread::block();
        block.cursor.load(Ordering::Relaxed) != self.cursor
            || block.reached.load(Ordering::Relaxed) != self.reached
    }

    /// Start and end of a call that ends now: the start is that of the first call recorded since,
    /// where the clock was not read.
    pub(crate) fn times(&self) -> (u64, u64) {
        let end = clock::now();
        if self.start != 0 {
            return (self.start, end);
        }
        let cursor = thread::block().cursor.load(Ordering::Relaxed);
        if !chunks::is_same_chunk(self.cursor + 1, cursor) {
            return (end, end);
        }
        let slots = (self.cursor..cursor).step_by(RECORD_BYTES);
        // SAFETY: slots of this thread's own chunk, written since.
        let records = slots.map(|slot| unsafe { (slot as *const Record).read() });
        (records.filter(|record| !record.is_text()).map(|it| it.start).min().unwrap_or(end), end)
    }
}

/// What is counted of a call.
#[derive(Clone, Copy)]
pub(crate) struct Counted {
    pub(crate) description: u32,
    pub(crate) fd: i32,
    pub(crate) function: Function,
    pub(crate) is_seek: bool,
    pub(crate) asked: i64,
    pub(crate) result: i64,
}

impl Counted {
    /// What one call adds to the argument of the record.
    #[inline(always)]
    const fn one(&self) -> i64 {
        if self.is_seek { 1 << COUNT_SHIFT } else { 1 }
    }

    #[inline(always)]
    const fn place(&self) -> usize {
        self.description.wrapping_mul(5).wrapping_add(self.function.0 as u32) as usize % PLACES
    }
}

const PLACES: usize = 16;

/// Counts a call that reached nothing.
#[inline(always)]
pub(crate) fn count(call: Counted) {
    let block = thread::block();
    if !add(block, &call) {
        begin(block, call);
    }
}

/// Adds a call to its run, if there is one.
#[inline(always)]
fn add(block: &Block, call: &Counted) -> bool {
    let before = block.adding.load(Ordering::Relaxed);
    block.adding.store(1, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    let mut found = false;
    for step in 0..PLACES {
        let slot = block.runs[(call.place() + step) % PLACES].load(Ordering::Relaxed);
        // SAFETY: a slot of this thread's chunk, which is not handed on while `adding` is set.
        unsafe {
            if slot != 0 && belongs(slot, call.description, Some(call.function)) {
                add_to(slot + offset_of!(Record, argument) as u64, call.one());
                if call.asked > 0 {
                    add_to(slot + offset_of!(Record, length) as u64, call.asked);
                }
                add_to(slot + offset_of!(Record, result) as u64, call.result);
                found = true;
                break;
            }
        }
    }
    compiler_fence(Ordering::SeqCst);
    block.adding.store(before, Ordering::Relaxed);
    found
}

/// Whether the record in a slot is of this description, and of this function if one is given.
#[inline(always)]
unsafe fn belongs(slot: u64, description: u32, function: Option<Function>) -> bool {
    // SAFETY: the caller's slot lies in a mapped chunk.
    unsafe {
        let number = &*((slot + offset_of!(Record, number) as u64) as *const AtomicU32);
        let code = &*((slot + offset_of!(Record, function) as u64) as *const AtomicU16);
        number.load(Ordering::Relaxed) == description
            && function.is_none_or(|it| code.load(Ordering::Relaxed) == it.0)
    }
}

/// In one piece for a signal handler of the thread: it comes before or after.
#[inline(always)]
unsafe fn add_to(word: u64, value: i64) {
    // SAFETY: the caller's word, which only this thread writes.
    instructions::add(unsafe { &*(word as *const AtomicI64) }, value);
}

/// Begins a run with a call.
#[cold]
#[inline(never)]
fn begin(block: &Block, call: Counted) {
    let Some(slot) = chunks::reserve(block, Wanted::Call) else { return };
    let before = block.adding.load(Ordering::Relaxed);
    block.adding.store(1, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    let now = clock::now();
    let same_file = |run: &AtomicU64| {
        let slot = run.load(Ordering::Relaxed);
        // SAFETY: a slot of this thread's chunk.
        slot != 0 && unsafe { belongs(slot, call.description, None) }
    };
    let is_mixed = block.runs.iter().any(same_file);
    let record = Record {
        start: now,
        end: now,
        // Bytes of several functions lie between each other.
        offset: if is_mixed { MIXED } else { -1 },
        length: call.asked,
        argument: call.one(),
        result: call.result,
        number: call.description,
        fd: call.fd,
        function: call.function.0,
        thread: block.number.load(Ordering::Relaxed).wrapping_sub(1) as u16,
        tag: 0,
    };
    chunks::write(slot, record);
    // A handler may have changed chunks since the slot was taken.
    if chunks::is_same_chunk(slot + 1, block.cursor.load(Ordering::Relaxed)) {
        let places = (0..PLACES).map(|step| (call.place() + step) % PLACES);
        let empty = places.into_iter().find(|&at| block.runs[at].load(Ordering::Relaxed) == 0);
        block.runs[empty.unwrap_or(call.place())].store(slot, Ordering::Relaxed);
    }
    compiler_fence(Ordering::SeqCst);
    block.adding.store(before, Ordering::Relaxed);
}

/// Ends the runs of a file: a call on it has reached something.
pub(crate) fn end_of(description: u32) {
    for run in &thread::block().runs {
        let slot = run.load(Ordering::Relaxed);
        // SAFETY: a slot of the spool, which stays mapped.
        if slot != 0 && unsafe { belongs(slot, description, None) } {
            run.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_calls_on_a_description_are_not_counted_and_another_one_begins_anew() {
        choose(2);
        let due = |fd, description| [0; 4].map(|_| is_due(fd, description));
        assert_eq!(due(70, 5), [false, false, true, true]);
        assert_eq!(due(70, 6), [false, false, true, true]);
        assert_eq!(due(71, 6), [false, false, true, true]);
        choose(0);
        assert_eq!(due(70, 7), [true; 4]);
        choose(u32::MAX);
        assert_eq!(due(70, 7), [false; 4]);
        assert!(!is_due(65_536, 7));
    }
}
