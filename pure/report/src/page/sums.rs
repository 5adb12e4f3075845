//! A trace that is too large for a page, made smaller: time is cut into cells, and in each cell of each row what one
//! function did to one file is one event, which says how many calls it stands for, how many bytes they moved and how
//! long they took. Single calls stay where they tell most: failures, the longest of each row and class, and those
//! that somebody points at. What is added up is exact; single places and durations are gone.
//!
//! Costs two passes over the events, and memory for one number per event.

use super::head::{Kind, span};
use super::order::{Order, Row, parent_of, times_of};
use iolab_trace::{Event, Function, Layer, Trace};
use iolab_vocab::{FileId, Nanos};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::mem::take;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fineness {
    /// Cells that time is cut into.
    pub(super) cells: u64,
    /// Of each row and class, so many of the longest calls stay.
    pub(super) longest: usize,
}

impl Fineness {
    /// The finest that may fit a page of so many bytes, for rows of so many calls.
    pub(super) fn for_page(bytes: u64, rows: &[usize]) -> Fineness {
        /// What an event takes of a page, at least about.
        const BYTES_PER_EVENT: u64 = 8;
        /// Functions and files that a cell of a row has calls of, at least about.
        const SUMS_PER_CELL: u64 = 2;
        let events = |cells: u64| -> u64 {
            rows.iter().map(|&calls| (calls as u64).min(cells * SUMS_PER_CELL)).sum()
        };
        let fits = |cells: &u64| events(*cells) <= bytes / BYTES_PER_EVENT;
        let cells = std::iter::successors(Some(1 << 20), |cells| Some(cells / 2));
        let cells = cells.take_while(|&cells| cells > 1).find(fits).unwrap_or(1);
        Fineness { cells, longest: 1000 }
    }

    /// Half as fine; nothing when it would say less than nothing.
    pub(super) fn coarser(self) -> Option<Fineness> {
        let coarser = Fineness { cells: self.cells / 2, longest: self.longest / 2 };
        (coarser.cells > 0).then_some(coarser)
    }
}

/// What is left of a trace.
pub(super) struct Gathered {
    /// Its events: single calls, and sums.
    pub(super) trace: Trace,
    pub(super) order: Order,
    /// How many calls each event stands for; 0 where it is a call itself.
    pub(super) calls: Vec<u64>,
    /// The number that each event has in the whole trace; of a sum that of its first call.
    pub(super) numbers: Vec<u32>,
    /// Which event each row of the whole trace went into.
    pub(super) places: Vec<u32>,
    /// Nanoseconds of a cell.
    pub(super) cell_ns: u64,
}

/// What calls are added up by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    function: Function,
    file: FileId,
    /// Of an access of a device: how far it had to seek. It is coloured by it.
    seek: i64,
    /// The event it was made in.
    parent: i64,
}

/// What calls of a cell come to.
#[derive(Clone, Copy, Default)]
struct Sum {
    calls: u64,
    bytes: u64,
    time: u64,
}

/// Calls that follow each other in a row within a cell, none of which stays single.
#[derive(Default)]
struct Cell {
    number: u64,
    sums: Vec<(Key, Sum)>,
    places: BTreeMap<Key, usize>,
    /// Rows of the trace, each with the sum that it is in.
    calls: Vec<(u32, usize)>,
}

/// Gathers the calls of a trace. Rows that are `kept` stay what they are.
pub(super) fn gather(
    trace: &Trace,
    order: &Order,
    kept: impl Fn(u32) -> bool,
    fineness: Fineness,
) -> Gathered {
    let (zero, end) = span(trace);
    let cell_ns = end.saturating_sub(zero).div_ceil(fineness.cells).max(1);
    let mut gathering = Gathering {
        whole: trace,
        found: Gathered {
            trace: Trace { header: trace.header.clone(), ..Trace::default() },
            order: Order { events: Vec::new(), rows: Vec::with_capacity(order.rows.len()) },
            calls: Vec::new(),
            numbers: Vec::new(),
            places: vec![u32::MAX; trace.events.len()],
            cell_ns,
        },
        cell: Cell::default(),
    };
    // The axis is to end where it did.
    let last = order.events.iter().copied().max_by_key(|&row| trace.events[row as usize].end);
    for row in &order.rows {
        let events = &order.events[row.first..row.first + row.count];
        let longest = longest(trace, events, fineness.longest);
        let first = gathering.found.trace.events.len();
        for (&at, is_long) in events.iter().zip(longest) {
            let event = &trace.events[at as usize];
            if is_long || event.errno().is_some() || Some(at) == last || kept(at) {
                gathering.close();
                gathering.keep(at);
                continue;
            }
            let number = times_of(event).0.0.saturating_sub(zero) / cell_ns;
            if number != gathering.cell.number {
                gathering.close();
                gathering.cell.number = number;
            }
            gathering.add(at);
        }
        gathering.close();
        let count = gathering.found.trace.events.len() - first;
        gathering.found.order.rows.push(Row { first, count, ..*row });
    }
    let mut found = gathering.found;
    found.order.events = (0..found.trace.events.len() as u32).collect();
    found
}

/// Which of the calls of a row are among the longest of their class.
fn longest(trace: &Trace, events: &[u32], most: usize) -> Vec<bool> {
    let mut by_class: BTreeMap<Kind, Vec<(Reverse<u64>, usize)>> = BTreeMap::new();
    for (place, &at) in events.iter().enumerate() {
        let event = &trace.events[at as usize];
        let (start, end) = times_of(event);
        by_class
            .entry(Kind::of(event.function))
            .or_default()
            .push((Reverse(end.0 - start.0), place));
    }
    let mut found = vec![false; events.len()];
    for (_, mut calls) in by_class.into_iter().filter(|(kind, _)| *kind != Kind::Piece) {
        if most < calls.len() {
            calls.select_nth_unstable(most);
            calls.truncate(most);
        }
        for (_, place) in calls {
            found[place] = true;
        }
    }
    found
}

struct Gathering<'a> {
    whole: &'a Trace,
    found: Gathered,
    cell: Cell,
}

impl Gathering<'_> {
    /// The event that the call around a row went into.
    fn parent(&self, at: u32) -> i64 {
        let parent = parent_of(&self.whole.events, at as usize);
        let place = parent.map(|parent| self.found.places[parent]);
        place.filter(|&place| place != u32::MAX).map_or(-1, i64::from)
    }

    fn push(&mut self, number: u32, event: Event, calls: u64) -> u32 {
        let place = self.found.trace.events.len() as u32;
        self.found.trace.events.push(event);
        self.found.numbers.push(number);
        self.found.calls.push(calls);
        place
    }

    /// A call that stays.
    fn keep(&mut self, at: u32) {
        let parent = self.parent(at);
        let event = Event { parent, ..self.whole.events[at as usize] };
        self.found.places[at as usize] = self.push(at, event, 0);
    }

    /// A call that goes into a sum.
    fn add(&mut self, at: u32) {
        let parent = self.parent(at);
        let event = &self.whole.events[at as usize];
        let seek = if event.function.layer() == Layer::Device { event.argument } else { -1 };
        let key = Key { function: event.function, file: event.file, seek, parent };
        let Cell { sums, places, calls, .. } = &mut self.cell;
        let sum = match sums.last() {
            Some((last, _)) if *last == key => sums.len() - 1,
            _ => *places.entry(key).or_insert_with(|| {
                sums.push((key, Sum::default()));
                sums.len() - 1
            }),
        };
        calls.push((at, sum));
        let (start, end) = times_of(event);
        let sum = &mut sums[sum].1;
        // An extent of a call is none, and yet there are so many of them.
        sum.calls += event.calls().max(1);
        sum.bytes = sum.bytes.saturating_add(event.moved_bytes());
        sum.time += end.0 - start.0;
    }

    /// The sums of the cell, side by side from its first call on; where every one is of a single call, these.
    fn close(&mut self) {
        let Cell { sums, calls, number, .. } = take(&mut self.cell);
        self.cell.number = number;
        let Some(&(first, _)) = calls.first() else { return };
        if calls.len() == sums.len() {
            return calls.into_iter().for_each(|(at, _)| self.keep(at));
        }
        let mut numbers = vec![None; sums.len()];
        for &(at, sum) in &calls {
            numbers[sum].get_or_insert(at);
        }
        let mut start = times_of(&self.whole.events[first as usize]).0;
        let before = self.found.trace.events.len() as u32;
        for ((key, sum), number) in sums.into_iter().zip(numbers) {
            let number = number.unwrap_or(first);
            let Event { rank, process, thread, .. } = self.whole.events[number as usize];
            let end = Nanos(start.0 + sum.time);
            let event = Event {
                rank,
                process,
                thread,
                file: key.file,
                argument: key.seek,
                start,
                end,
                result: i64::try_from(sum.bytes).unwrap_or(i64::MAX),
                parent: key.parent,
                ..Event::of(key.function)
            };
            self.push(number, event, sum.calls);
            start = end;
        }
        for (at, sum) in calls {
            self.found.places[at as usize] = before + sum as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::order;
    use super::*;
    use crate::page::range;

    /// Writes of two files in turns, each with a call inside, on two threads, now and then one that fails or lasts.
    fn busy() -> Trace {
        let mut events = Vec::new();
        for thread in 0..2 {
            for at in 0..500 {
                let start = at * 100 + u64::from(thread);
                let lasts = if at % 97 == 5 { 90 } else { 20 + at % 7 };
                let outer = events.len() as i64;
                events.push(Event {
                    thread,
                    file: FileId((at % 2) as u32),
                    length: 64,
                    result: if at % 120 == 7 { -28 } else { 64 },
                    start: Nanos(start),
                    end: Nanos(start + lasts),
                    ..Event::of(Function::FWRITE)
                });
                events.push(Event {
                    thread,
                    file: FileId((at % 2) as u32),
                    result: 64,
                    start: Nanos(start + 5),
                    end: Nanos(start + 15),
                    parent: outer,
                    ..Event::of(Function::WRITE)
                });
            }
        }
        let mut trace = Trace { events, ..Trace::default() };
        let file = |path: &str| iolab_trace::FileEntry { path: path.into(), ..Default::default() };
        trace.header.files = vec![file("a"), file("b")];
        trace
    }

    fn gathered(trace: &Trace, fineness: Fineness) -> Gathered {
        gather(trace, &order(trace), |_| false, fineness)
    }

    #[test]
    fn what_calls_come_to_is_the_same_however_many_are_gathered() {
        let trace = busy();
        let sums = |found: &Gathered| {
            let mut sums = BTreeMap::<_, [u64; 4]>::new();
            for (event, &calls) in found.trace.events.iter().zip(&found.calls) {
                let sum = sums.entry((event.thread, event.function, event.file)).or_default();
                let failures = u64::from(event.errno().is_some());
                let more = [calls.max(1), event.moved_bytes(), event.duration().0, failures];
                sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            }
            sums
        };
        let all = gathered(&trace, Fineness { cells: 1 << 20, longest: 1000 });
        assert_eq!(all.trace.events.len(), trace.events.len(), "nothing is to be gathered");
        for (cells, longest) in [(1, 0), (1, 3), (7, 10), (64, 0), (3000, 1)] {
            let found = gathered(&trace, Fineness { cells, longest });
            assert_eq!(sums(&found), sums(&all), "{cells} cells, the {longest} longest");
            let own =
                |trace| range(trace, 0, u64::MAX, None).files.iter().map(|f| f.own).sum::<i64>();
            assert_eq!(
                own(&found.trace),
                own(&trace),
                "{cells} cells: time of calls inside is taken off"
            );
        }
        let coarse = gathered(&trace, Fineness { cells: 7, longest: 10 });
        assert!(coarse.trace.events.len() < 400, "{} of 2000", coarse.trace.events.len());
    }

    #[test]
    fn failures_the_longest_and_what_is_pointed_at_stay_single_calls() {
        let trace = busy();
        // Six of each thread last longer than others.
        let fineness = Fineness { cells: 4, longest: 6 };
        let found = gather(&trace, &order(&trace), |row| row == 123, fineness);
        let is_single = |row: usize| {
            let place = found.places[row] as usize;
            let event = Event { parent: -1, ..found.trace.events[place] };
            let same = event == Event { parent: -1, ..trace.events[row] };
            found.calls[place] == 0 && found.numbers[place] as usize == row && same
        };
        let mut pointed = 0;
        for (row, event) in trace.events.iter().enumerate() {
            if event.errno().is_some() || event.duration().0 == 90 {
                assert!(is_single(row), "row {row}");
                pointed += 1;
            }
        }
        assert_eq!(pointed, 2 * (5 + 6));
        assert!(is_single(123) && !is_single(124));
    }

    #[test]
    fn sums_of_a_row_lie_behind_each_other_and_the_axis_keeps_its_ends() {
        let trace = busy();
        for cells in [1, 5, 50, 500] {
            let found = gathered(&trace, Fineness { cells, longest: 2 });
            assert_eq!(span(&found.trace), span(&trace));
            assert_eq!(found.order.rows.len(), order(&trace).rows.len());
            for row in &found.order.rows {
                let events = &found.trace.events[row.first..row.first + row.count];
                assert!(
                    events.windows(2).all(|pair| pair[0].end <= pair[1].start),
                    "{cells} cells"
                );
            }
            assert!(found.places.iter().all(|&place| (place as usize) < found.trace.events.len()));
        }
    }
}
