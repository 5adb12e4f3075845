//! Locations of a thread: on each, calls lie in one another or one behind the other, and time does not run back.
//!
//! Rows of a thread mostly do; calls that overlap otherwise, and rows that go back in time, are on a further location.

use crate::Event;

/// A thread: its process and its number there.
pub(super) struct Thread {
    pub of: (u32, u32),
    pub lanes: Vec<Lane>,
}

pub(super) struct Lane {
    pub location: u64,
    /// When the last event was.
    now: u64,
    /// Calls under way, the outermost first.
    open: Vec<Open>,
}

/// A call under way.
pub(super) struct Open {
    pub row: i64,
    pub event: Event,
    /// What is to be complete at its end.
    pub operation: Option<u64>,
}

impl Thread {
    pub(super) fn new(of: (u32, u32)) -> Thread {
        Thread { of, lanes: Vec::new() }
    }

    /// The first location that has room for a row, if one does.
    pub(super) fn lane_for(&self, event: &Event) -> Option<usize> {
        self.lanes.iter().position(|lane| lane.has_room(event))
    }

    pub(super) fn add(&mut self, location: u64) -> usize {
        self.lanes.push(Lane { location, now: 0, open: Vec::new() });
        self.lanes.len() - 1
    }
}

impl Lane {
    /// Whether a call has ended when a row begins. One that it was made in has not, even if both end with that.
    fn is_over(open: &Open, event: &Event) -> bool {
        open.event.end <= event.start && open.row != event.parent
    }

    fn has_room(&self, event: &Event) -> bool {
        let over = self.open.iter().rev().take_while(|open| Lane::is_over(open, event));
        let around = self.open.len().checked_sub(over.count() + 1).map(|at| &self.open[at]);
        self.now <= event.start.0 && around.is_none_or(|around| event.end <= around.event.end)
    }

    /// Takes a call that has ended before a row begins, the innermost one.
    pub(super) fn pop_before(&mut self, event: &Event) -> Option<Open> {
        match self.open.last().is_some_and(|open| Lane::is_over(open, event)) {
            true => self.pop(),
            false => None,
        }
    }

    /// Takes the innermost call.
    pub(super) fn pop(&mut self) -> Option<Open> {
        let ended = self.open.pop()?;
        self.now = self.now.max(ended.event.end.0);
        Some(ended)
    }

    pub(super) fn push(&mut self, open: Open) {
        self.now = self.now.max(open.event.start.0);
        self.open.push(open);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Function;
    use iolab_vocab::Nanos;

    fn call(start: u64, end: u64) -> Event {
        Event { start: Nanos(start), end: Nanos(end), ..Event::of(Function::WRITE) }
    }

    fn open(row: i64, event: Event) -> Open {
        Open { row, event, operation: None }
    }

    #[test]
    fn what_lies_inside_or_behind_has_room_and_what_overlaps_or_is_earlier_has_not() {
        let mut thread = Thread::new((0, 0));
        thread.add(0);
        thread.lanes[0].push(open(0, call(100, 200)));
        for (start, end, room) in [
            (100, 200, true),
            (120, 150, true),
            (200, 300, true),
            (150, 250, false),
            (50, 60, false),
        ] {
            assert_eq!(thread.lane_for(&call(start, end)).is_some(), room, "{start} {end}");
        }
    }

    #[test]
    fn a_call_at_the_end_of_the_one_around_it_is_still_inside() {
        let mut lane = Lane { location: 0, now: 0, open: Vec::new() };
        lane.push(open(7, call(0, 10)));
        assert!(lane.pop_before(&Event { parent: 7, ..call(10, 10) }).is_none());
        assert!(lane.pop_before(&call(10, 10)).is_some());
    }
}
