//! The picture of a large trace before its calls are unpacked: the same rows, in each cell of time one stretch
//! for each function, as long as its calls are there together. In the exchange form itself, so that a viewer
//! draws it as it draws calls. Costs one pass over the events, and at most [`CELLS_MAX`] cells.

use super::Timeline;
use super::column::{Column, clamp};
use super::head::{Packed, head, span};
use super::order::{Order, Row, times_of};
use super::timeline::{assemble, functions_used};
use iolab_trace::{Event, Function};
use std::collections::BTreeMap;

/// Smaller traces are unpacked in less than a tenth of a second.
const EVENTS_MIN: usize = 1 << 18;
/// Over all rows: about half a megabyte of page, unpacked in a few hundredths of a second.
const CELLS_MAX: usize = 1 << 18;
/// Of a row: as many as a screen has pixels.
const CELLS_PER_ROW_MAX: usize = 1440;
/// With fewer the picture would say less than nothing.
const CELLS_PER_ROW_MIN: usize = 64;

/// A stretch of time spent in calls of a function, nanoseconds of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    start: u64,
    end: u64,
    function: u8,
}

/// The overview of a trace; `None` when it is small, or when there are so many rows that it would not be.
pub(super) fn encode(timeline: &Timeline<'_>, order: &Order) -> Option<Vec<u8>> {
    let trace = timeline.trace;
    let cells = (CELLS_MAX / order.rows.len().max(1)).min(CELLS_PER_ROW_MAX);
    if trace.events.len() < EVENTS_MIN || cells < CELLS_PER_ROW_MIN {
        return None;
    }
    let functions = &functions_used(trace);
    let (start_ns, end_ns) = span(trace);
    let [start_ns, end_ns] = [whole(start_ns), whole(end_ns)];
    let width = (end_ns - start_ns).div_ceil(cells as u64).max(1);
    let mut columns = [
        ("gap", Column::default()),
        ("duration", Column::default()),
        ("function", Column::default()),
    ];
    let mut rows = Vec::with_capacity(order.rows.len());
    let mut first = 0;
    for row in &order.rows {
        let events = order.events[row.first..row.first + row.count].iter();
        let calls = events.map(|&index| call(&trace.events[index as usize], functions));
        let stretches = stretches(calls, functions.len(), start_ns, width);
        let mut before = start_ns;
        for Stretch { start, end, function } in &stretches {
            columns[0].1.signed((start - before) as i64);
            columns[1].1.unsigned(end - start);
            columns[2].1.byte(*function);
            before = *end;
        }
        rows.push(Row { first, count: stretches.len(), ..*row });
        first += stretches.len();
    }
    let packed = columns.map(|(name, column)| Packed {
        name,
        raw_bytes: column.raw_bytes(),
        bytes: column.deflate(),
    });
    let drawn = Order { events: Vec::new(), rows };
    let head = head(timeline, &drawn, functions, &packed).standing_for(trace.events.len());
    Some(assemble(&head, &packed))
}

/// What is drawn of a call.
fn call(event: &Event, functions: &BTreeMap<Function, u8>) -> Stretch {
    let (start, end) = times_of(event);
    let start = whole(start.0);
    Stretch { start, end: whole(end.0).max(start), function: functions[&event.function] }
}

/// A time as far as the form holds it.
fn whole(time: u64) -> u64 {
    clamp(time as i64).unsigned_abs()
}

/// The calls of a row, in the order they start, as stretches in cells of `width` from `zero` on: side by side from
/// the beginning of the cell, by function. A call of no length is one nanosecond; where calls overlap, the first counts.
fn stretches(
    calls: impl Iterator<Item = Stretch>,
    functions: usize,
    zero: u64,
    width: u64,
) -> Vec<Stretch> {
    let mut found = Vec::new();
    let mut sums = vec![0; functions];
    let mut cell = 0;
    let mut covered = 0;
    for Stretch { start, end, function } in calls {
        let end = end.max(start + 1);
        let mut from = start.max(covered);
        while from < end {
            let here = (from - zero) / width;
            if here != cell {
                close(&mut sums, zero + cell * width, width, &mut found);
                cell = here;
            }
            let to = end.min(zero + (here + 1) * width);
            sums[function as usize] += to - from;
            from = to;
        }
        covered = covered.max(end);
    }
    close(&mut sums, zero + cell * width, width, &mut found);
    found
}

/// Lays the sums of a cell side by side and begins the next one.
fn close(sums: &mut [u64], begin: u64, width: u64, found: &mut Vec<Stretch>) {
    let mut start = begin;
    for (function, sum) in sums.iter_mut().enumerate() {
        let end = (start + std::mem::take(sum)).min(begin + width);
        if start < end {
            found.push(Stretch { start, end, function: function as u8 });
        }
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(calls: &[(u64, u64, u8)], zero: u64, width: u64) -> Vec<(u64, u64, u8)> {
        let calls = calls.iter().map(|&(start, end, function)| Stretch { start, end, function });
        let found = stretches(calls, 2, zero, width);
        found.iter().map(|stretch| (stretch.start, stretch.end, stretch.function)).collect()
    }

    #[test]
    fn the_calls_of_a_cell_stand_side_by_side_by_function() {
        let calls = [(12, 14, 1), (14, 15, 0), (16, 18, 1), (31, 32, 0)];
        assert_eq!(of(&calls, 10, 10), [(10, 11, 0), (11, 15, 1), (30, 31, 0)]);
    }

    #[test]
    fn a_long_call_fills_the_cells_it_lies_in() {
        assert_eq!(of(&[(5, 25, 0)], 0, 10), [(0, 5, 0), (10, 20, 0), (20, 25, 0)]);
    }

    #[test]
    fn a_call_of_no_length_is_seen() {
        assert_eq!(of(&[(7, 7, 1)], 0, 10), [(0, 1, 1)]);
    }

    #[test]
    fn where_calls_overlap_time_is_not_counted_twice() {
        assert_eq!(of(&[(0, 10, 0), (2, 8, 1), (5, 12, 1)], 0, 20), [(0, 10, 0), (10, 12, 1)]);
    }

    #[test]
    fn all_time_in_calls_is_in_the_picture() {
        let calls: Vec<_> =
            (0..5000).map(|at| (at * 37, at * 37 + at % 30 + 1, (at % 2) as u8)).collect();
        let found = of(&calls, 0, 1000);
        let time = |calls: &[(u64, u64, u8)], function| -> u64 {
            calls.iter().filter(|call| call.2 == function).map(|call| call.1 - call.0).sum()
        };
        assert_eq!([time(&calls, 0), time(&calls, 1)], [time(&found, 0), time(&found, 1)]);
        assert!(found.is_sorted_by(|a, b| a.1 <= b.0), "drawn in order, none over another");
        assert!(found.len() <= 2 * 186);
    }
}
