//! What every single operation took: kept while a phase runs, gathered and written after it.
//!
//! Within the timed loop this is one store of 32 bytes into memory that was touched before. A rank
//! keeps at most [`KEPT_MAX`] operations of a phase: of longer ones every 2nd, 4th, … so that they
//! stay evenly spread. Offsets and lengths are not kept, the pattern gives them again.

use crate::failure::{BenchError, agree};
use crate::progress::KeptRecords;
use crate::record_file::Row;
use crate::work::Work;
use iolab_backend::Direction;
use iolab_comm::{Comm, largest};
use iolab_host::tick::TickClock;
use iolab_pattern::{Access, Pattern};
use iolab_report::bench::Measurement;
use iolab_vocab::Rank;

/// Operations that a rank keeps of a phase: 64 MiB.
const KEPT_MAX: u64 = 1 << 21;
/// Operations of a rank that travel at once.
const CHUNK: usize = 4096;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Record {
    index: u64,
    work: u64,
    start: u64,
    stop: u64,
}

/// The operations of one phase on one rank.
#[derive(Debug, Default)]
pub(crate) struct Records {
    kept: Vec<Record>,
    mask: u64,
    work: u64,
    /// The stamp that starts are counted from.
    zero: u64,
}

impl Records {
    /// Room for a phase of so many operations of each kind of work.
    pub(crate) fn for_operations(operations: u64, works: usize) -> Records {
        let every = operations.saturating_mul(works as u64).div_ceil(KEPT_MAX).next_power_of_two();
        let count = operations.div_ceil(every).saturating_mul(works as u64).min(KEPT_MAX);
        // Written to once, so that the pages are there before the clock starts.
        let mut kept = vec![Record { index: u64::MAX, ..Record::default() }; count as usize];
        kept.clear();
        Records { kept, mask: every - 1, work: 0, zero: 0 }
    }

    /// The phase begins at this stamp.
    pub(crate) fn begin(&mut self, zero: u64) {
        self.zero = zero;
    }

    /// What comes now is another pass over the pattern.
    pub(crate) fn begin_work(&mut self, work: usize) {
        self.work = work as u64;
    }

    /// Keeps an operation.
    #[inline]
    pub(crate) fn keep(&mut self, index: u64, start: u64, stop: u64) {
        if index & self.mask == 0 && self.kept.len() < self.kept.capacity() {
            self.kept.push(Record { index, work: self.work, start, stop });
        }
    }
}

/// Whose operations they were, to find again where they went.
pub(crate) struct Origin<'a> {
    pub(crate) pattern: &'a dyn Pattern,
    pub(crate) rank: Rank,
    pub(crate) base: u64,
    pub(crate) works: &'a [Work],
    pub(crate) way_of: &'a dyn Fn(Work, u64) -> Option<Direction>,
    pub(crate) clock: TickClock,
}

impl Origin<'_> {
    fn has(&self, record: &Record) -> bool {
        record.index < self.pattern.operations(self.rank)
    }

    fn row(&self, records: &Records, record: &Record, access: &mut Access) -> Row {
        self.pattern.place(self.rank, record.index, access);
        let work = self.works[record.work as usize];
        let way = (self.way_of)(work, record.index);
        let offset = access.file_extents().next().map_or(0, |extent| extent.offset);
        let twice = if way.is_none() { 2 } else { 1 };
        Row {
            operation: record.index,
            way: match way {
                Some(Direction::Read) => 0,
                Some(Direction::Write) => 1,
                None => 2,
            },
            offset: self.base + offset,
            bytes: access.bytes() * twice,
            start_ns: self.clock.nanos(records.zero, record.start),
            latency_ns: self.clock.nanos(record.start, record.stop),
        }
    }
}

/// Gathers the operations of all ranks, a chunk at a time, and writes them on rank 0. Not timed.
///
/// # Errors
/// When the file cannot be written, on every rank.
pub(crate) fn gather(
    comm: &dyn Comm,
    records: &Records,
    origin: &Origin,
    measurement: &Measurement,
    file: &KeptRecords,
) -> Result<(), BenchError> {
    let mut access = Access::new();
    let most = largest(comm, records.kept.len() as u64)? as usize;
    for from in (0..most).step_by(CHUNK) {
        let rest = records.kept.get(from..).unwrap_or_default();
        // In a collective phase a rank takes part with empty hands after its own last operation.
        let own = rest.iter().take(CHUNK).filter(|one| origin.has(one));
        let rows = own.map(|one| origin.row(records, one, &mut access));
        let said: Vec<u8> = rows.flat_map(|row| row.bytes()).collect();
        let heard = comm.gather(&said)?;
        let written = file.with(|file| {
            heard.iter().enumerate().try_for_each(|(rank, text)| {
                let rows: Vec<Row> = text.chunks_exact(Row::BYTES).map(Row::of).collect();
                file.append(measurement, rank as u32, &rows)
            })
        });
        agree(comm, written.unwrap_or(Ok(())))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_phases_are_thinned_evenly_and_never_grow() {
        let mut records = Records::for_operations(10, 1);
        (0..12).for_each(|index| records.keep(index, index, index + 1));
        assert_eq!(records.kept.len(), 10, "what was not foreseen is left out");
        let operations = 5 * KEPT_MAX;
        let mut records = Records::for_operations(operations, 1);
        let room = records.kept.capacity();
        assert!(room as u64 <= KEPT_MAX && room as u64 * 8 >= operations);
        (0..operations).for_each(|index| records.keep(index, 0, 0));
        assert_eq!((records.kept.len(), records.kept.capacity()), (room, room));
        assert_eq!(records.kept.last().map(|last| last.index), Some(operations - 8));
    }
}
