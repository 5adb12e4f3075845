//! The lanes of a thread: on which track a row is drawn.
//!
//! A call made inside another one (its `parent`) stands on the lane of that one, inside of it. Whatever else goes on at
//! the same time (requests of a server, non-blocking calls) gets the first lane on which nothing is under way. So two
//! events of a track overlap only where one is inside the other.
//!
//! A viewer ties a flow to the innermost event that it finds at its place, so nothing stands inside of a row
//! with causes or effects, and such a row is alone on its lane for a nanosecond at least.
//!
//! Costs O(log lanes) a row, and memory by lanes, not by rows. Rows that go back in time, as they do where a row group
//! begins anew, never come to lie over what is there.

use super::flows;
use crate::{Class, Event, Header};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Whether a row is drawn as a point: a piece of an access has the times of all of it, and there may be thousands.
pub(super) fn is_point(event: &Event, is_linked: bool) -> bool {
    event.function.class() == Class::Piece && !is_linked
}

/// The lanes of all threads.
pub(super) struct Lanes {
    threads: BTreeMap<(u32, u32), Thread>,
    /// Of each track its process.
    processes: Vec<u32>,
    first: u32,
}

/// Where a row is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) track: u32,
    /// Its index among the lanes of the thread, if the row is the first one there.
    pub(super) opened: Option<usize>,
}

#[derive(Default)]
struct Thread {
    lanes: Vec<Lane>,
    free: BTreeSet<usize>,
    /// The others, by when they are free.
    busy: BinaryHeap<Reverse<(u64, usize)>>,
    /// The lane of each row that others may stand inside of.
    holders: BTreeMap<u64, usize>,
    latest_start: u64,
}

struct Lane {
    track: u32,
    /// The rows around the one that comes next, the outermost first.
    open: Vec<Open>,
    end: u64,
    latest_start: u64,
}

struct Open {
    row: u64,
    end: u64,
    may_hold: bool,
}

impl Lanes {
    /// Tracks are numbered behind the processes: in the format a thread of its process's number is its main one.
    pub(super) fn new(header: &Header) -> Lanes {
        let first = header.processes.len() as u32 + 1;
        Lanes { threads: BTreeMap::new(), processes: Vec::new(), first }
    }

    pub(super) fn process_of(&self, track: u32) -> u32 {
        self.processes[(track - self.first) as usize]
    }

    /// Finds the place of a row; `is_linked` when a flow begins or ends there.
    pub(super) fn place(&mut self, row: u64, event: &Event, is_linked: bool) -> Placed {
        let next_track = self.first + self.processes.len() as u32;
        let thread = self.threads.entry((event.process, event.thread)).or_default();
        let start = event.start.0;
        let least_end = start.saturating_add(is_linked.into());
        let end = if is_point(event, is_linked) { start } else { event.end.0 };
        let open = Open { row, end: end.max(least_end), may_hold: !is_linked };
        // At the end of another row a flow may end that stands behind this one in the file, see `flows`.
        let is_early = is_linked && flows::is_early(event);
        let free_at = start.saturating_sub(is_early.into());
        thread.come_to(free_at);
        if let Some(lane) = thread.lane_inside(event.parent, free_at, &open, start) {
            return Placed { track: thread.put(lane, start, open), opened: None };
        }
        let end = open.end;
        let (lane, opened) = match thread.free.pop_first() {
            Some(lane) => (lane, None),
            None => {
                let lane = Lane { track: next_track, open: Vec::new(), end: 0, latest_start: 0 };
                thread.lanes.push(lane);
                self.processes.push(event.process);
                (thread.lanes.len() - 1, Some(thread.lanes.len() - 1))
            }
        };
        thread.lanes[lane].end = end;
        thread.busy.push(Reverse((end, lane)));
        Placed { track: thread.put(lane, start, open), opened }
    }
}

impl Thread {
    /// Frees the lanes on which nothing is under way at `start`.
    fn come_to(&mut self, start: u64) {
        if start < self.latest_start {
            self.busy.extend(
                std::mem::take(&mut self.free)
                    .into_iter()
                    .map(|at| Reverse((self.lanes[at].end, at))),
            );
        }
        self.latest_start = start;
        while let Some(&Reverse((end, lane))) = self.busy.peek() {
            if end > start {
                break;
            }
            self.busy.pop();
            self.free.insert(lane);
            self.close(lane, 0);
        }
    }

    /// The lane of the call around a row, if the row fits there.
    fn lane_inside(
        &mut self,
        parent: i64,
        free_at: u64,
        inner: &Open,
        start: u64,
    ) -> Option<usize> {
        let parent = u64::try_from(parent).ok()?;
        let at = *self.holders.get(&parent)?;
        if start < self.lanes[at].latest_start {
            return None;
        }
        let open = &self.lanes[at].open;
        let stays = open.iter().rposition(|around| around.end > free_at).map_or(0, |last| last + 1);
        self.close(at, stays);
        let around = self.lanes[at].open.last()?;
        (around.row == parent && around.may_hold && inner.end <= around.end).then_some(at)
    }

    /// Ends what is open on a lane but for the outermost `stays`.
    fn close(&mut self, lane: usize, stays: usize) {
        for ended in self.lanes[lane].open.drain(stays..) {
            self.holders.remove(&ended.row);
        }
    }

    fn put(&mut self, lane: usize, start: u64, open: Open) -> u32 {
        if open.may_hold {
            self.holders.insert(open.row, lane);
        }
        let lane = &mut self.lanes[lane];
        lane.latest_start = start;
        lane.open.push(open);
        lane.track
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Function;
    use iolab_vocab::Nanos;

    /// Tracks of rows (start, end, parent); those in `linked` have causes.
    fn tracks(rows: &[(u64, u64, i64)], linked: &[usize]) -> Vec<u32> {
        let mut lanes = Lanes::new(&Header::default());
        let place = |(row, &(start, end, parent)): (usize, &(u64, u64, i64))| {
            let (start, end) = (Nanos(start), Nanos(end));
            let event = Event { start, end, parent, ..Event::of(Function::WRITE) };
            lanes.place(row as u64, &event, linked.contains(&row)).track
        };
        rows.iter().enumerate().map(place).collect()
    }

    #[test]
    fn calls_one_after_the_other_share_a_lane_and_calls_at_once_do_not() {
        assert_eq!(tracks(&[(0, 5, -1), (5, 9, -1), (7, 12, -1), (9, 20, -1)], &[]), [1, 1, 2, 1]);
    }

    #[test]
    fn a_call_stands_inside_of_the_one_it_was_made_in_and_of_no_other() {
        assert_eq!(tracks(&[(0, 10, -1), (2, 8, 0), (3, 4, 1), (8, 10, 0)], &[]), [1, 1, 1, 1]);
        assert_eq!(tracks(&[(0, 10, -1), (2, 8, -1)], &[]), [1, 2], "it only goes on meanwhile");
        assert_eq!(tracks(&[(0, 10, -1), (2, 8, 0), (4, 9, 0)], &[]), [1, 1, 2]);
        assert_eq!(tracks(&[(0, 10, -1), (2, 12, 0)], &[]), [1, 2], "longer than its parent");
    }

    #[test]
    fn nothing_stands_inside_of_a_row_with_causes_or_begins_with_it() {
        assert_eq!(tracks(&[(0, 10, -1), (2, 8, 0)], &[0]), [1, 2]);
        assert_eq!(tracks(&[(0, 10, -1), (2, 8, 0), (3, 5, 1)], &[1]), [1, 1, 2]);
        assert_eq!(tracks(&[(5, 5, -1), (5, 9, -1)], &[0]), [1, 2]);
        assert_eq!(tracks(&[(0, 5, -1), (5, 5, -1), (6, 7, -1)], &[1]), [1, 2, 1]);
        assert_eq!(tracks(&[(5, 5, -1), (5, 9, -1)], &[]), [1, 1]);
    }

    #[test]
    fn pieces_of_an_access_are_points_and_share_a_lane() {
        let times = Event { end: Nanos(9), ..Event::of(Function::VIEW_PIECE) };
        let mut lanes = Lanes::new(&Header::default());
        let access = Event { end: Nanos(9), ..Event::of(Function::MPI_FILE_READ) };
        let mut tracks = vec![lanes.place(0, &access, true).track];
        tracks
            .extend((1..4).map(|row| lanes.place(row, &Event { parent: 0, ..times }, false).track));
        assert_eq!(tracks, [1, 2, 2, 2]);
    }

    #[test]
    fn rows_that_go_back_in_time_lie_over_nothing() {
        // The second row group begins before the first one ends.
        let rows = [(0, 50, -1), (10, 20, 0), (30, 40, 0), (60, 70, -1), (15, 35, 0), (70, 80, -1)];
        assert_eq!(tracks(&rows, &[]), [1, 1, 1, 1, 2, 1]);
        // A lane that was free is not, at an earlier time.
        assert_eq!(
            tracks(&[(0, 10, -1), (20, 30, -1), (5, 6, -1), (31, 32, -1)], &[]),
            [1, 1, 2, 1]
        );
    }

    #[test]
    fn parents_that_are_not_there_or_are_the_row_itself_do_no_harm() {
        assert_eq!(tracks(&[(0, 10, 0), (2, 4, 99), (3, 3, 1)], &[]), [1, 2, 2]);
    }
}
