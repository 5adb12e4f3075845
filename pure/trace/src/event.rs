//! One call of a program (or one piece of work of a simulated component), as a flat row.

use crate::{Causes, Class, Function, Header, Layer, Retained};
use iolab_vocab::{FileId, Nanos};
use std::ops::RangeInclusive;

/// `RWF_APPEND` of Linux.
pub const APPENDS_ONCE: i64 = 0x10;
/// `RWF_NOAPPEND` of Linux.
pub const APPENDS_NOT: i64 = 0x20;

/// Bits of the argument of a row `copy target`: whose position the copy moved.
pub const MOVED_SOURCE: i64 = 1;
/// As above.
pub const MOVED_TARGET: i64 = 2;

/// From this bit on, the argument of a row that counts seeks holds their number.
pub(crate) const COUNT_SHIFT: u32 = 8;

/// The number of calls a row or record of the function with this argument counts; `None` when it is
/// a call.
pub(crate) const fn counted(function: Function, argument: i64) -> Option<u64> {
    if !matches!(function.layer(), Layer::Stdio) || argument < 1 {
        return None;
    }
    match function.class() {
        Class::Read | Class::Write | Class::Flush => Some(argument as u64),
        Class::Seek if argument >> COUNT_SHIFT > 0 => Some((argument >> COUNT_SHIFT) as u64),
        _ => None,
    }
}

/// One row of a trace. Which argument stands in which field is a property of the function's
/// class; `docs/format/trace.md` has the table. Fields that mean nothing for a class are -1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Rank of the process in its parallel program; -1 when it has none.
    pub rank: i32,
    /// Index into `Header::processes`.
    pub process: u32,
    /// Thread within the process, 0 is the first one seen.
    pub thread: u32,
    /// What was called.
    pub function: Function,
    /// Index into `Header::files`, or `FileId::NONE`.
    pub file: FileId,
    /// Descriptor the call was made on, -1 for none.
    pub fd: i32,
    /// Absolute byte offset in the file, also for calls that use the file position (derived from
    /// the calls before them); for a seek the offset asked for.
    pub offset: i64,
    /// Bytes asked for; for an open the size of the file at that moment.
    pub length: i64,
    /// Class dependent: open flags, whence, the new descriptor asked for, the other file.
    pub argument: i64,
    /// When the call began, in nanoseconds since the trace's time zero.
    pub start: Nanos,
    /// When it returned.
    pub end: Nanos,
    /// What it returned: bytes moved, a descriptor, a position, 0; a failure is `-errno`.
    pub result: i64,
    /// Row number of the call this one was made inside of (stdio's own `write`), -1 for none.
    pub parent: i64,
}

impl Event {
    /// An event of `function` with every other field empty, to be filled by struct update.
    pub const fn of(function: Function) -> Event {
        Event {
            rank: -1,
            process: 0,
            thread: 0,
            function,
            file: FileId::NONE,
            fd: -1,
            offset: -1,
            length: -1,
            argument: -1,
            start: Nanos::ZERO,
            end: Nanos::ZERO,
            result: 0,
            parent: -1,
        }
    }

    /// How long the call took.
    pub const fn duration(&self) -> Nanos {
        self.end.since(self.start)
    }

    /// The file that a call names second, to which it moves, links or copies the first; none of other calls.
    pub fn second_file(&self) -> FileId {
        match self.function.class() {
            Class::Rename | Class::Copy => {
                u32::try_from(self.argument).map_or(FileId::NONE, FileId)
            }
            _ => FileId::NONE,
        }
    }

    /// Whether what it writes goes to the end of the file wherever it was to go, as Linux has it: the description
    /// appends, or the call alone (`RWF_APPEND`), and does not say that it does not (`RWF_NOAPPEND`).
    pub const fn appends(&self, description_appends: bool) -> bool {
        let said = if self.argument > 0 { self.argument } else { 0 };
        let is_write = matches!(self.function.class(), Class::Write);
        is_write && (description_appends || said & APPENDS_ONCE != 0) && said & APPENDS_NOT == 0
    }

    /// Of the row `copy target`: whether the copy began at the source's own position and moved it.
    pub const fn moved_source(&self) -> bool {
        self.argument & MOVED_SOURCE != 0
    }

    /// Of the row `copy target`: whether the copy went to the target's own position and moved it.
    pub const fn moved_target(&self) -> bool {
        self.argument & MOVED_TARGET != 0
    }

    /// The descriptors that a `close` or `close_range` gives up.
    pub fn closed_descriptors(&self) -> RangeInclusive<i32> {
        let last = match self.function {
            Function::CLOSE_RANGE if self.argument >= 0 => {
                i32::try_from(self.argument).unwrap_or(i32::MAX)
            }
            _ => self.fd,
        };
        self.fd..=last.max(self.fd)
    }

    /// Whether it overlaps the time between two moments, `to` excluded. Without duration it belongs to the
    /// moment it stands at.
    pub fn overlaps(&self, from: u64, to: u64) -> bool {
        let (start, end) = (self.start.0, self.end.0.max(self.start.0));
        start < to && (end > from || (start == end && start >= from))
    }

    /// How many calls it stands for: calls on a stream that reach nothing below are counted in one
    /// row, which has the time of the first one and no duration. A part of a call is none.
    pub const fn calls(&self) -> u64 {
        match counted(self.function, self.argument) {
            Some(count) => count,
            None => !matches!(self.function.class(), Class::Piece) as u64,
        }
    }

    /// Whether it is no call, but a count of calls whose times are not known.
    pub const fn is_counted(&self) -> bool {
        counted(self.function, self.argument).is_some()
    }

    /// Whether no call of the program but those of HDF5 and NetCDF is around this row of `events`.
    pub fn is_outermost_but_for_objects(&self, events: &[Event]) -> bool {
        let parent = usize::try_from(self.parent).ok().and_then(|at| events.get(at));
        self.parent < 0 || parent.is_some_and(|it| it.function.layer().names_objects())
    }

    /// Bytes that really moved: the result of a read or write that did not fail.
    pub const fn moved_bytes(&self) -> u64 {
        if self.function.class().moves_data() && self.result > 0 { self.result as u64 } else { 0 }
    }

    /// The error number of a failed call.
    pub const fn errno(&self) -> Option<i32> {
        match self.result {
            0.. => None,
            // No error number is larger; a damaged trace may say anything.
            ..-4095 => Some(4095),
            _ => Some(-self.result as i32),
        }
    }
}

/// A whole trace in memory, sorted by start time within each (process, thread).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Where it comes from and what it lacks.
    pub header: Header,
    /// The rows.
    pub events: Vec<Event>,
    /// What caused what among them.
    pub causes: Causes,
}

impl Trace {
    /// Where the bytes of the copy in this row went, where the trace says it: the row right behind it.
    pub fn copy_target(&self, copy: usize) -> Option<&Event> {
        let next = self.events.get(copy + 1)?;
        let is_of_copy = next.function == Function::COPY_TARGET && next.parent == copy as i64;
        is_of_copy.then_some(next)
    }

    /// Sorts rows as traces are written, by rank and thread; parents and causes go along.
    pub fn sort(&mut self) {
        let order = self.order();
        let mut rows = vec![0; order.len()];
        for (row, &at) in order.iter().enumerate() {
            rows[at as usize] = row as u32;
        }
        let row_of = |at: i64| usize::try_from(at).ok().and_then(|at| rows.get(at)).copied();
        self.events = order.iter().map(|&at| self.events[at as usize]).collect();
        for event in &mut self.events {
            if let Some(row) = row_of(event.parent) {
                event.parent = row.into();
            }
        }
        if !self.causes.is_empty() {
            self.causes = self.causes.renumbered(|at| row_of(at.into()));
        }
    }

    /// Leaves out the rows that are not wanted. Who lay in one of them lies in the nearest row around it
    /// that stays; causes of rows that go, go with them. The answer is which numbers the rows had that stay.
    pub fn retain(&mut self, wanted: impl Fn(&Event) -> bool) -> Vec<u32> {
        let mut retained = Retained::default();
        for event in std::mem::take(&mut self.events) {
            retained.meet(&event, wanted(&event));
        }
        if !self.causes.is_empty() {
            self.causes = self.causes.renumbered(|row| retained.place(row));
        }
        let (events, rows) = retained.finish();
        self.events = events;
        rows
    }

    /// The order its rows are written in, see [`order`].
    pub fn order(&self) -> Vec<u32> {
        order(&self.events, |row| usize::try_from(self.events[row].parent).ok())
    }

    /// Leaves out causes that cannot be, and says so in the header.
    pub fn keep_possible_causes(&mut self) {
        let count = self.causes.keep_possible(&self.events).count();
        if count > 0 {
            let what = if count == 1 { "cause" } else { "causes" };
            let line = format!("{count} {what} of rows that cannot be, left out");
            self.header.losses.unseen.push(line);
        }
    }
}

/// Sorts rows without causes as traces are written, by rank and thread, parents going along.
pub fn sort(events: &mut Vec<Event>) {
    let mut trace = Trace { events: std::mem::take(events), ..Trace::default() };
    trace.sort();
    *events = trace.events;
}

/// The order rows are written in: by rank, process, thread and start. Of those that begin together a call
/// comes before what lies in it, and whatever else in the order it was told: a length says nothing,
/// an instant (a seek on a coarse clock, a decision that costs nothing) may be before a call as well
/// as in it. `parent` is the row of the call around a row, if it is among these.
pub fn order(events: &[Event], parent: impl Fn(usize) -> Option<usize>) -> Vec<u32> {
    let place = |event: &Event| (event.rank, event.process, event.thread, event.start);
    // The rows around one that begin with it, the outermost first, then itself. No chain is longer than
    // there are rows: parents in a circle are the reader's to refuse.
    let chain = |row: usize| {
        let around = |&row: &usize| {
            let outer = parent(row).filter(|&outer| outer < events.len())?;
            (place(&events[outer]) == place(&events[row])).then_some(outer)
        };
        let mut rows: Vec<usize> =
            std::iter::successors(Some(row), around).take(events.len()).collect();
        rows.reverse();
        rows
    };
    let mut order: Vec<u32> = (0..events.len() as u32).collect();
    order.sort_by_key(|&row| place(&events[row as usize]));
    for together in order
        .chunk_by_mut(|&one, &two| place(&events[one as usize]) == place(&events[two as usize]))
    {
        if together.len() > 1 {
            together.sort_by_cached_key(|&row| chain(row as usize));
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Links;

    #[test]
    fn rows_that_stay_keep_the_nearest_row_around_them_that_stays() {
        let row = |function, parent| Event { parent, ..Event::of(function) };
        let events = vec![
            row(Function::MPI_FILE_OPEN, -1),
            row(Function::OPEN, 0),
            row(Function::READ, 1),
            row(Function::OPEN, -1),
            row(Function::READ, 3),
            // A damaged trace may say so.
            row(Function::READ, 99),
        ];
        let links = |pairs: &[(u32, u32)]| Links::from_pairs(pairs.to_vec());
        let causes = Causes { begun_by: links(&[(4, 2), (4, 3)]), ended_by: links(&[(2, 0)]) };
        let mut trace = Trace { events, causes, ..Trace::default() };
        trace.retain(|event| event.function != Function::OPEN);
        let parents: Vec<i64> = trace.events.iter().map(|event| event.parent).collect();
        assert_eq!(parents, [-1, 0, -1, -1]);
        let causes = Causes { begun_by: links(&[(2, 1)]), ended_by: links(&[(1, 0)]) };
        assert_eq!(trace.causes, causes);
    }
}
