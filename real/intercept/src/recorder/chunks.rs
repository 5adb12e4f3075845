//! Chunks and slots: where a thread writes its next record.
//!
//! The cursor of a thread is the address of its next slot; chunks lie at multiples of their size,
//! so a cursor at such a multiple means "none left". A slot is taken by one compare-and-exchange
//! without a bus lock: only a signal handler of the same thread can come between, and it finds
//! the cursor either before or after. A handler that interrupts a change of chunks makes its own
//! change; the interrupted one then gives its new chunk back.

use super::{page, setup};
use crate::process;
use crate::processor::instructions::exchange;
use crate::thread::{self, Block};
use iolab_trace::spool::{
    CHUNK_BYTES, CHUNK_MAGIC, CHUNK_RECORDS, Lost, RECORD_BYTES, Record, chunk, control,
    process as head, state,
};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

const MASK: u64 = CHUNK_BYTES as u64 - 1;
/// Chunks looked through for a free one before the file grows: enough for threads and a slow
/// drainer, few enough to cost nothing.
const WARM_CHUNKS: usize = 64;

/// What a slot is wanted for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A call, which counts as lost where there is no slot.
    Call,
    /// What calls are told with: names, and what was open before.
    Note,
}

/// The next slot of the calling thread; `None` (and one more call lost) when there is none.
#[inline(always)]
pub(super) fn reserve(block: &Block, wanted: Wanted) -> Option<u64> {
    if process::is_new() {
        process::enter_child();
    }
    loop {
        let cursor = block.cursor.load(Ordering::Relaxed);
        if cursor & MASK == 0 {
            refill(block, cursor, wanted)?;
        } else if exchange(&block.cursor, cursor, cursor + RECORD_BYTES as u64) {
            return Some(cursor);
        }
    }
}

/// Whether a cursor, read now or before, leads into the chunk of another.
#[inline(always)]
pub(super) fn is_same_chunk(one: u64, other: u64) -> bool {
    // A cursor behind the last slot belongs to the chunk before it.
    (one - 1) & !MASK == (other - 1) & !MASK
}

/// Slots of its chunk that the thread has not used.
#[inline(always)]
pub(super) fn left(cursor: u64) -> u64 {
    (cursor.wrapping_neg() & MASK) / RECORD_BYTES as u64
}

/// Writes a record into its slot; the tag, which makes it valid, last.
#[inline(always)]
pub(super) fn write(slot: u64, mut record: Record) {
    let base = (slot & !MASK) as *const u8;
    let target = slot as *mut Record;
    record.tag = 0;
    // SAFETY: the slot is this call's own, inside a mapped and allocated chunk.
    unsafe {
        let tag = word(base, chunk::TAG).load(Ordering::Relaxed);
        target.write(record);
        let valid = &raw mut (*target).tag as *const AtomicU32;
        (*valid).store(tag, Ordering::Release);
    }
}

/// A word of the head of a chunk or file.
unsafe fn word<'a>(base: *const u8, at: usize) -> &'a AtomicU32 {
    // SAFETY: the caller's base is a mapped head, which is longer than any of its offsets.
    unsafe { &*(base.add(at) as *const AtomicU32) }
}

/// Gives the thread another chunk; `None` when there is none to be had.
#[cold]
#[inline(never)]
fn refill(block: &Block, old: u64, wanted: Wanted) -> Option<()> {
    introduce(block);
    let base = setup::spool().ok_or(Lost::Setup);
    let found = base.and_then(|base| Ok((base, acquire(base)?)));
    let (base, (index, start)) = match found {
        Ok(found) => found,
        Err(reason) => {
            if wanted == Wanted::Call {
                page::lost(reason);
            }
            return None;
        }
    };
    if exchange(&block.cursor, old, start) {
        if old != 0 && block.end_runs() {
            let full = index_of(base, old - MASK - 1);
            states(base, full).store(state::FULL, Ordering::Release);
        }
    } else {
        states(base, index).store(state::FREE, Ordering::Release);
    }
    Some(())
}

/// Gives the thread its number, and its end a way to leave the chunk to others.
fn introduce(block: &Block) {
    if block.number.load(Ordering::Relaxed) == 0 {
        let seen = setup::head().map_or(0, |head| {
            // SAFETY: within the head.
            unsafe { word(head, head::THREADS) }.fetch_add(1, Ordering::Relaxed)
        });
        block.number.store((seen % 0xffff) + 1, Ordering::Relaxed);
    }
    setup::call_at_thread_end();
}

fn index_of(base: *const u8, chunk: u64) -> usize {
    ((chunk - base as u64) as usize / CHUNK_BYTES).wrapping_sub(1)
}

/// State of chunk `index`.
fn states<'a>(base: *const u8, index: usize) -> &'a AtomicU8 {
    // SAFETY: inside the head; the index of a chunk is below `CHUNKS_MAX`.
    unsafe { &*(base.add(head::STATES + index % head::CHUNKS_MAX) as *const AtomicU8) }
}

/// Why nothing is to be recorded any more, if so.
fn stop_reason() -> Option<Lost> {
    match page::word(control::STOP).map_or(0, |word| word.load(Ordering::Relaxed)) {
        0 => None,
        1 => Some(Lost::Limit),
        _ => Some(Lost::Disk),
    }
}

fn is_ring() -> bool {
    page::word(control::RING).is_some_and(|word| word.load(Ordering::Relaxed) != 0)
}

/// A chunk to write into: its index and the address of its first free slot.
fn acquire(base: *const u8) -> Result<(usize, u64), Lost> {
    if let Some(reason) = stop_reason() {
        return Err(reason);
    }
    // SAFETY: within the head.
    let claimed = unsafe { word(base, head::CHUNKS) }.load(Ordering::Relaxed) as usize;
    for index in 0..claimed.min(WARM_CHUNKS) {
        if let Some(start) = take(base, index) {
            return Ok((index, start));
        }
    }
    match setup::grow(base) {
        Ok(index) => Ok((index, open(base, index))),
        Err(reason) => acquire_when_full(base, claimed, reason),
    }
}

fn acquire_when_full(base: *const u8, claimed: usize, reason: Lost) -> Result<(usize, u64), Lost> {
    for index in 0..claimed.min(head::CHUNKS_MAX) {
        if let Some(start) = take(base, index) {
            return Ok((index, start));
        }
    }
    if is_ring()
        && let Some(found) = overwrite_oldest(base, claimed)
    {
        return Ok(found);
    }
    Err(reason)
}

/// Takes a chunk that is free or was left by a thread that ended.
fn take(base: *const u8, index: usize) -> Option<u64> {
    let state = states(base, index);
    let found = state.load(Ordering::Relaxed);
    let usable = found == state::FREE || found == state::LEFT;
    if !usable
        || state.compare_exchange(found, state::OWNED, Ordering::AcqRel, Ordering::Relaxed).is_err()
    {
        return None;
    }
    if found == state::FREE {
        return Some(open(base, index));
    }
    let chunk = address(base, index);
    // SAFETY: the head of a chunk that is ours now.
    Some(chunk as u64 + u64::from(unsafe { word(chunk, chunk::NEXT) }.load(Ordering::Relaxed)))
}

fn address(base: *const u8, index: usize) -> *const u8 {
    // SAFETY: the mapping is as long as all chunks there can be.
    unsafe { base.add((index + 1) * CHUNK_BYTES) }
}

/// Starts a new use of a chunk: a tag of its own makes all older records in it invalid.
fn open(base: *const u8, index: usize) -> u64 {
    let chunk = address(base, index);
    // SAFETY: head of the file, and of a chunk that is ours.
    unsafe {
        let tag = word(base, head::TAG).fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        word(chunk, chunk::MAGIC).store(CHUNK_MAGIC, Ordering::Relaxed);
        word(chunk, chunk::TAG).store(tag, Ordering::Release);
    }
    chunk as u64 + RECORD_BYTES as u64
}

/// The ring's way on: the full chunk that was begun first is written again.
fn overwrite_oldest(base: *const u8, claimed: usize) -> Option<(usize, u64)> {
    let full = |index: &usize| states(base, *index).load(Ordering::Relaxed) == state::FULL;
    // SAFETY: head of a chunk of the file.
    let tag =
        |index: &usize| unsafe { word(address(base, *index), chunk::TAG) }.load(Ordering::Relaxed);
    let oldest = (0..claimed.min(head::CHUNKS_MAX)).filter(full).min_by_key(tag)?;
    states(base, oldest)
        .compare_exchange(state::FULL, state::OWNED, Ordering::AcqRel, Ordering::Relaxed)
        .ok()?;
    let (start, calls) = open_keeping_names(base, oldest);
    if let Some(counter) = page::counter(control::LOST + Lost::Overwritten as usize * 8) {
        counter.fetch_add(calls, Ordering::Relaxed);
    }
    Some((oldest, start))
}

/// Starts a new use of a chunk with the names that stood in it: calls that are still to come are on
/// files that were named long ago. Names take at most half of the chunk. The answer is where the next
/// record goes, and how many calls are lost.
fn open_keeping_names(base: *const u8, index: usize) -> (u64, u64) {
    let chunk = address(base, index);
    // SAFETY: a chunk that is ours; every slot of it holds some record. Records only move forward.
    unsafe {
        let old = word(chunk, chunk::TAG).load(Ordering::Relaxed);
        let start = open(base, index);
        let new = word(chunk, chunk::TAG).load(Ordering::Relaxed);
        let (mut kept, mut calls) = (0, 0);
        for slot in 1..=CHUNK_RECORDS {
            let record = chunk.add(slot * RECORD_BYTES).cast::<Record>().read();
            if record.tag == old && record.is_text() && kept < CHUNK_RECORDS / 2 {
                let to = start as usize + kept * RECORD_BYTES;
                (to as *mut Record).write(Record { tag: new, ..record });
                kept += 1;
            } else if !record.is_text() {
                calls += record.calls();
            }
        }
        (start + (kept * RECORD_BYTES) as u64, calls)
    }
}

/// The thread ends: its chunk is left to another.
pub(super) extern "C" fn leave(_: *mut libc::c_void) {
    if process::is_new() {
        return;
    }
    let block = thread::block();
    let cursor = block.cursor.swap(0, Ordering::Relaxed);
    block.end_runs();
    let (Some(base), false) = (setup::spool(), cursor == 0) else { return };
    let full = cursor & MASK == 0;
    let chunk = if full { cursor - MASK - 1 } else { cursor & !MASK };
    let next = if full { state::FULL } else { state::LEFT };
    // SAFETY: the head of the chunk this thread owns.
    unsafe { word(chunk as *const u8, chunk::NEXT) }
        .store((cursor & MASK) as u32, Ordering::Relaxed);
    states(base, index_of(base, chunk)).store(next, Ordering::Release);
}
