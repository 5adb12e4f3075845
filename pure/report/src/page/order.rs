//! The order events are drawn in: per process and thread one band, per depth of nesting one row.
//!
//! A call made inside another one stands one row below it. Calls of one thread that overlap without
//! being nested (asynchronous ones, a simulated device with a queue) are moved down to the first free
//! row, so within a row no two events overlap and a viewer can find any moment by bisection.

use iolab_trace::{Class, Event, Trace};
use iolab_vocab::Nanos;
use serde::Serialize;

/// Rows a thread may have at most; what overlaps still further is left overlapping in the last one.
const DEPTH_MAX: u8 = 63;

/// How the events of a row relate to those of the rows above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Placement {
    /// Each stands as deep as calls are around it.
    Nested,
    /// Some are here because they overlap others without being inside them.
    Concurrent,
}

/// A run of events of one thread at one depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) process: u32,
    pub(super) thread: u32,
    pub(super) depth: u8,
    pub(super) placement: Placement,
    /// Position of its first event in `Order::events`.
    pub(super) first: usize,
    pub(super) count: usize,
}

/// Row numbers of the trace in drawing order, and how they fall into rows.
pub(super) struct Order {
    pub(super) events: Vec<u32>,
    pub(super) rows: Vec<Row>,
}

/// When an event is drawn, its end not before its start. A row that only says where the data of a call lie has the
/// times of that call: it stands at its beginning, so that thousands of extents are one row and take no time.
pub(super) fn times_of(event: &Event) -> (Nanos, Nanos) {
    match event.function.class() {
        Class::Piece => (event.start, event.start),
        _ => (event.start, event.end.max(event.start)),
    }
}

/// What nests: how many calls an event stands in.
fn nesting(events: &[Event]) -> Vec<u8> {
    let mut depths = vec![0; events.len()];
    if events.iter().all(|event| event.parent < 0) {
        return depths;
    }
    for (row, depth) in depths.iter_mut().enumerate() {
        *depth = ancestors(events, row);
    }
    depths
}

/// How many ancestors a row has; a damaged trace whose parents form a ring ends at `DEPTH_MAX`.
fn ancestors(events: &[Event], row: usize) -> u8 {
    let mut depth = 0;
    let mut at = row;
    while depth < DEPTH_MAX {
        match parent_of(events, at) {
            Some(parent) => at = parent,
            None => break,
        }
        depth += 1;
    }
    depth
}

/// The row of the call this one was made in, if it is a row of the same thread.
pub(super) fn parent_of(events: &[Event], row: usize) -> Option<usize> {
    let event = &events[row];
    let parent = usize::try_from(event.parent).ok()?;
    let above = events.get(parent)?;
    let same_thread = (above.process, above.thread) == (event.process, event.thread);
    (same_thread && parent != row).then_some(parent)
}

/// Finds the drawing order of a trace.
pub(super) fn order(trace: &Trace) -> Order {
    assert!(trace.events.len() < u32::MAX as usize, "a page holds fewer than 2^32 events");
    let events = &trace.events;
    let nested = nesting(events);
    let mut depths = nested.clone();
    let mut sorted: Vec<u32> = (0..events.len() as u32).collect();
    let by_time = |&row: &u32| {
        let event = &events[row as usize];
        (event.process, event.thread, event.start, depths[row as usize], row)
    };
    if !sorted.is_sorted_by_key(by_time) {
        sorted.sort_by_key(by_time);
    }
    separate(events, &sorted, &mut depths);
    let band = |&row: &u32| {
        let event = &events[row as usize];
        (event.process, event.thread, depths[row as usize])
    };
    sorted.sort_by_key(band);
    let is_moved = |&row: &u32| depths[row as usize] != nested[row as usize];
    let rows = runs(&sorted, band, is_moved);
    Order { events: sorted, rows }
}

/// Moves events down until no two of a row overlap.
fn separate(events: &[Event], sorted: &[u32], depths: &mut [u8]) {
    let mut free_from = [0; DEPTH_MAX as usize + 1];
    let mut band = None;
    for &row in sorted {
        let event = &events[row as usize];
        if band != Some((event.process, event.thread)) {
            band = Some((event.process, event.thread));
            free_from.fill(0);
        }
        let depth = &mut depths[row as usize];
        while *depth < DEPTH_MAX && free_from[*depth as usize] > event.start.0 {
            *depth += 1;
        }
        free_from[*depth as usize] = times_of(event).1.0;
    }
}

/// Cuts the ordered events into rows.
fn runs(
    sorted: &[u32],
    band: impl Fn(&u32) -> (u32, u32, u8),
    is_moved: impl Fn(&u32) -> bool,
) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (first, row) in sorted.iter().enumerate() {
        let (process, thread, depth) = band(row);
        let placement = if is_moved(row) { Placement::Concurrent } else { Placement::Nested };
        match rows.last_mut() {
            Some(last) if (last.process, last.thread, last.depth) == (process, thread, depth) => {
                last.count += 1;
                if placement == Placement::Concurrent {
                    last.placement = placement;
                }
            }
            _ => rows.push(Row { process, thread, depth, placement, first, count: 1 }),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::Function;

    fn event(thread: u32, start: u64, end: u64, parent: i64) -> Event {
        Event { thread, start: Nanos(start), end: Nanos(end), parent, ..Event::of(Function::WRITE) }
    }

    fn depths_of(events: Vec<Event>) -> Vec<(u32, u8, usize)> {
        let trace = Trace { events, ..Trace::default() };
        order(&trace).rows.iter().map(|row| (row.thread, row.depth, row.count)).collect()
    }

    #[test]
    fn a_call_made_inside_another_stands_one_row_below_it() {
        let events = vec![event(0, 0, 10, -1), event(0, 2, 8, 0), event(0, 12, 20, -1)];
        assert_eq!(depths_of(events), [(0, 0, 2), (0, 1, 1)]);
    }

    #[test]
    fn calls_that_overlap_without_nesting_get_rows_of_their_own() {
        let events = vec![event(0, 0, 10, -1), event(0, 5, 15, -1), event(0, 10, 20, -1)];
        assert_eq!(depths_of(events), [(0, 0, 2), (0, 1, 1)]);
    }

    #[test]
    fn the_extents_of_a_call_are_one_row_however_many_they_are() {
        let extent =
            Event { parent: 0, ..Event { end: Nanos(10), ..Event::of(Function::VIEW_PIECE) } };
        let mut events = vec![event(0, 0, 10, -1), event(0, 0, 9, 0)];
        events.extend(vec![extent; 500]);
        assert_eq!(depths_of(events), [(0, 0, 1), (0, 1, 1), (0, 2, 500)]);
    }

    #[test]
    fn rows_of_calls_inside_others_are_told_from_rows_of_calls_that_overlap() {
        let placements = |events| {
            let trace = Trace { events, ..Trace::default() };
            order(&trace).rows.iter().map(|row| row.placement).collect::<Vec<_>>()
        };
        use Placement::{Concurrent, Nested};
        let inside = vec![event(0, 0, 10, -1), event(0, 2, 8, 0)];
        assert_eq!(placements(inside), [Nested, Nested]);
        let overlapping = vec![event(0, 0, 10, -1), event(0, 5, 15, -1)];
        assert_eq!(placements(overlapping), [Nested, Concurrent]);
        // One call inside, and later one that only overlaps.
        let both = vec![
            event(0, 0, 10, -1),
            event(0, 2, 8, 0),
            event(0, 20, 30, -1),
            event(0, 25, 35, -1),
        ];
        assert_eq!(placements(both), [Nested, Concurrent]);
    }

    #[test]
    fn threads_do_not_share_rows_whatever_the_order_of_the_trace() {
        let events = vec![event(1, 0, 10, -1), event(0, 5, 15, -1), event(1, 20, 30, -1)];
        assert_eq!(depths_of(events), [(0, 0, 1), (1, 0, 2)]);
    }

    #[test]
    fn parents_that_form_a_ring_or_do_not_exist_do_no_harm() {
        let ring = vec![event(0, 0, 10, 1), event(0, 0, 10, 0), event(0, 20, 30, 99)];
        assert_eq!(depths_of(ring).iter().map(|row| row.2).sum::<usize>(), 3);
    }
}
