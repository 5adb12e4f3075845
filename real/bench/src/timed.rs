//! The timed loops: the operation and nothing else.
//!
//! The pattern says where, the back end carries out, and, when latencies are wanted, a stamp before
//! and after goes into an HDR histogram. No filling, no checking, no allocation, no printing.
//! An error of an independent operation ends the loop; of a collective one it is remembered, as
//! the other ranks would wait for ever.

use crate::content::SECTOR;
use crate::records::Records;
use crate::source::Source;
use crate::work::Work;
use hdrhistogram::Histogram;
use iolab_backend::{Backend, Direction, IoError, Moved};
use iolab_host::tick::TickClock;
use iolab_pattern::{Access, Pattern};
use iolab_report::bench::latencies;
use iolab_vocab::Rank;

/// What a loop needs to know.
pub(crate) struct Loop<'a> {
    pub(crate) pattern: &'a dyn Pattern,
    pub(crate) rank: Rank,
    pub(crate) work: Work,
    pub(crate) source: Source,
    pub(crate) clock: TickClock,
    /// Latencies are wanted.
    pub(crate) latencies: bool,
    /// Go on after an error, with empty hands.
    pub(crate) collective: bool,
    /// Operations under way at once.
    pub(crate) depth: usize,
}

/// What a loop did.
pub(crate) struct Tally {
    pub(crate) bytes: u64,
    pub(crate) operations: u64,
    pub(crate) short: u64,
    pub(crate) histogram: Histogram<u64>,
    pub(crate) error: Option<IoError>,
    /// Where to go on when a deadline ended the loop.
    pub(crate) next: u64,
    /// Every single operation, when that is wanted.
    pub(crate) records: Option<Records>,
}

impl Tally {
    pub(crate) fn new() -> Tally {
        let histogram = latencies();
        Tally { bytes: 0, operations: 0, short: 0, histogram, error: None, next: 0, records: None }
    }
}

impl Loop<'_> {
    /// Runs operations `tally.next..end`, or until a stamp passes `deadline` (only looked at when
    /// latencies are taken). Past its own last operation a rank takes part with empty hands.
    pub(crate) fn run(
        &self,
        backend: &mut dyn Backend,
        end: u64,
        deadline: u64,
        tally: &mut Tally,
    ) {
        let from = tally.next;
        match (self.work, tally.records.is_some()) {
            (Work::One(way), _) if self.depth > 1 => {
                self.queued(backend, way, end, deadline, tally);
            }
            (Work::One(way), records) => {
                let stamps = way == Direction::Write && self.source.needs_stamps();
                let run = match (self.latencies || records, records, stamps) {
                    (_, true, true) => Self::plain::<true, true, true>,
                    (_, true, false) => Self::plain::<true, true, false>,
                    (true, false, true) => Self::plain::<true, false, true>,
                    (true, false, false) => Self::plain::<true, false, false>,
                    (false, false, true) => Self::plain::<false, false, true>,
                    (false, false, false) => Self::plain::<false, false, false>,
                };
                run(self, backend, way, end, deadline, tally);
            }
            _ => self.various(backend, end, deadline, tally),
        }
        tally.operations += tally.next.min(self.pattern.operations(self.rank)).saturating_sub(from);
    }

    fn place(&self, own: u64, index: u64, access: &mut Access) {
        if index < own {
            self.pattern.place(self.rank, index, access);
        } else {
            access.clear();
        }
    }

    /// One direction, one operation at a time: the loop that the speed goals are about.
    fn plain<const LATENCIES: bool, const RECORDS: bool, const STAMPS: bool>(
        &self,
        backend: &mut dyn Backend,
        way: Direction,
        end: u64,
        deadline: u64,
        tally: &mut Tally,
    ) {
        let own = self.pattern.operations(self.rank);
        let mut access = Access::new();
        let mut bytes = 0;
        while tally.next < end {
            let index = tally.next;
            self.place(own, index, &mut access);
            let at = match way {
                Direction::Write => self.source.write_at(index, &access),
                Direction::Read => self.source.read_at(index, 0),
            };
            if STAMPS {
                self.source.stamp(&access, at, backend.spare());
            }
            let start = if LATENCIES { self.clock.stamp() } else { 0 };
            let moved = backend.run(way, &access, at);
            let stop = if LATENCIES { self.clock.stamp() } else { 0 };
            match moved {
                Ok(moved) => {
                    bytes += moved.bytes;
                    tally.short += u64::from(moved.short);
                }
                Err(error) => {
                    if self.stops_at(error, tally) {
                        break;
                    }
                }
            }
            if LATENCIES {
                tally.histogram.saturating_record(self.clock.nanos(start, stop));
            }
            if RECORDS && let Some(records) = &mut tally.records {
                records.keep(index, start, stop);
            }
            tally.next = index + 1;
            if LATENCIES && stop > deadline {
                break;
            }
        }
        tally.bytes += bytes;
    }

    /// Keeps the first error; whether the loop has to end.
    #[cold]
    fn stops_at(&self, error: IoError, tally: &mut Tally) -> bool {
        tally.error.get_or_insert(error);
        !self.collective
    }

    /// Read-modify-write buffer by buffer, or reads and writes mixed.
    fn various(&self, backend: &mut dyn Backend, end: u64, deadline: u64, tally: &mut Tally) {
        let own = self.pattern.operations(self.rank);
        let mut access = Access::new();
        while tally.next < end {
            let index = tally.next;
            self.place(own, index, &mut access);
            let start = self.clock.stamp();
            let moved = match self.work {
                Work::One(way) => self.once(backend, way, index, &access),
                Work::ReadThenWrite => {
                    self.once(backend, Direction::Read, index, &access).and_then(|read| {
                        let written = self.once(backend, Direction::Write, index, &access)?;
                        let short = read.short + written.short;
                        Ok(Moved { bytes: read.bytes + written.bytes, short })
                    })
                }
                Work::Mixed { .. } => {
                    let rank = if self.collective { Rank(0) } else { self.rank };
                    let way = self.work.way_of(rank, index).unwrap_or(Direction::Read);
                    self.once(backend, way, index, &access)
                }
            };
            let stop = self.clock.stamp();
            match moved {
                Ok(moved) => {
                    tally.bytes += moved.bytes;
                    tally.short += u64::from(moved.short);
                }
                Err(error) => {
                    if self.stops_at(error, tally) {
                        break;
                    }
                }
            }
            tally.histogram.saturating_record(self.clock.nanos(start, stop));
            if let Some(records) = &mut tally.records {
                records.keep(index, start, stop);
            }
            tally.next = index + 1;
            if stop > deadline {
                break;
            }
        }
    }

    fn once(
        &self,
        backend: &mut dyn Backend,
        way: Direction,
        index: u64,
        access: &Access,
    ) -> Result<Moved, IoError> {
        let at = match way {
            Direction::Write => self.source.write_at(index, access),
            Direction::Read => self.source.read_at(index, 0),
        };
        if way == Direction::Write && self.source.needs_stamps() {
            self.source.stamp(access, at, backend.spare());
        }
        backend.run(way, access, at)
    }

    /// Up to `depth` operations under way; a latency is from start to completion.
    fn queued(
        &self,
        backend: &mut dyn Backend,
        way: Direction,
        end: u64,
        deadline: u64,
        tally: &mut Tally,
    ) {
        let own = self.pattern.operations(self.rank);
        let mut access = Access::new();
        let mut starts = vec![(0, 0); self.depth];
        // Where the data of the writes under way lies, when it must not be stamped anew.
        let mut windows = vec![0..0; self.depth];
        let mut free: Vec<usize> = (0..self.depth).collect();
        let mut stop = 0;
        loop {
            let more = tally.next < end && stop <= deadline && tally.error.is_none();
            match free.pop() {
                Some(slot) if more => {
                    self.place(own, tally.next, &mut access);
                    let at = match way {
                        Direction::Write => {
                            self.window(backend, &access, slot, &mut windows, tally)
                        }
                        Direction::Read => self.source.read_at(tally.next, slot),
                    };
                    starts[slot] = (tally.next, self.clock.stamp());
                    if let Err(error) = backend.start(way, &access, at, slot as u64) {
                        tally.error.get_or_insert(error);
                        free.push(slot);
                        continue;
                    }
                    tally.next += 1;
                }
                taken => {
                    free.extend(taken);
                    if free.len() == self.depth {
                        return;
                    }
                    match backend.finish() {
                        Ok((slot, moved)) => {
                            stop = self.clock.stamp();
                            let (index, start) = starts[slot as usize];
                            tally.histogram.saturating_record(self.clock.nanos(start, stop));
                            if let Some(records) = &mut tally.records {
                                records.keep(index, start, stop);
                            }
                            tally.bytes += moved.bytes;
                            tally.short += u64::from(moved.short);
                            windows[slot as usize] = 0..0;
                            free.push(slot as usize);
                        }
                        Err(error) => {
                            // What is still under way is waited for when the file is closed.
                            tally.error.get_or_insert(error);
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Where the data of a write lies that goes on beside others. The stamps of a window that one of
    /// them is using stay as they are; its data is copied to the slot's own buffer.
    fn window(
        &self,
        backend: &mut dyn Backend,
        access: &Access,
        slot: usize,
        windows: &mut [std::ops::Range<usize>],
        tally: &Tally,
    ) -> usize {
        let at = self.source.write_at(tally.next, access);
        if !self.source.needs_stamps() {
            return at;
        }
        let skip = access.contiguous().map_or(0, |extent| extent.offset % SECTOR) as usize;
        let wanted = at.saturating_sub(skip)..at + access.bytes() as usize + SECTOR as usize;
        let used = windows.iter().any(|one| one.start < wanted.end && wanted.start < one.end);
        if !used {
            self.source.stamp(access, at, backend.spare());
            windows[slot] = wanted;
            return at;
        }
        let own = self.source.slot_at(slot);
        let memory = backend.spare();
        memory.copy_within(at..at + access.bytes() as usize, own);
        self.source.stamp_copy(access, own, memory);
        own
    }
}
