//! What caused what: for each row the rows without which it would not have begun, or not have ended.
//!
//! Kept beside the rows, because most traces have none: lists of row numbers, packed behind each other. A trace
//! without causes costs nothing; one with causes eight bytes per row and four per cause, for either end.
//!
//! A cause counts from one *moment* of its row, its end or else its start: the latest that is not after what it
//! caused. So a command that is still under way has begun the message it sent, and a device that is
//! through has ended the answer that waited for it. Followed backwards, moments never get later.

use crate::Event;
use iolab_vocab::Nanos;
use std::collections::BTreeSet;

/// Lists of rows by row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// Where the list of each row ends; lists behind the last one that has something are not kept.
    ends: Vec<usize>,
    rows: Vec<u32>,
}

impl Links {
    /// Of pairs (row, cause) in any order; equal ones count once.
    pub fn from_pairs(mut pairs: Vec<(u32, u32)>) -> Links {
        pairs.sort_unstable();
        pairs.dedup();
        let count = pairs.last().map_or(0, |&(row, _)| row as usize + 1);
        let mut links = Links { ends: Vec::with_capacity(count), rows: Vec::new() };
        for (row, cause) in pairs {
            links.ends.resize(row as usize + 1, links.rows.len());
            links.rows.push(cause);
            links.ends[row as usize] = links.rows.len();
        }
        links
    }

    /// What is listed for a row; nothing where there is no such row.
    pub fn of(&self, row: usize) -> &[u32] {
        let Some(&end) = self.ends.get(row) else { return &[] };
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.rows[start..end]
    }

    /// Whether nothing is listed for any row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All pairs (row, cause), by row.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let rows = 0..self.ends.len();
        rows.flat_map(|row| self.of(row).iter().map(move |&cause| (row as u32, cause)))
    }
}

/// What began and what ended each row of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// Rows without which a row would not have begun.
    pub begun_by: Links,
    /// Rows without which it would not have ended.
    pub ended_by: Links,
}

/// The start or the end of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Row number.
    pub row: u32,
    /// Its end, not its start.
    pub is_end: bool,
}

impl Moment {
    /// When it is.
    pub fn time(self, events: &[Event]) -> Nanos {
        let event = &events[self.row as usize];
        if self.is_end { event.end } else { event.start }
    }

    /// From when a cause counts for what happened at `time`: `None` when it came later.
    pub fn of_cause(events: &[Event], cause: u32, time: Nanos) -> Option<Moment> {
        let event = events.get(cause as usize)?;
        let is_end = event.end <= time && event.start <= event.end;
        (event.start <= time).then_some(Moment { row: cause, is_end })
    }
}

/// Causes that cannot be, and were left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impossible {
    /// Rows that are not there.
    pub nowhere: u64,
    /// Rows said to have caused themselves.
    pub itself: u64,
    /// Rows that began after what they are said to have caused.
    pub later: u64,
    /// Causes that lead back to what they are said to have caused, all at the same moment.
    pub circle: u64,
}

impl Impossible {
    /// All of them.
    pub fn count(&self) -> u64 {
        self.nowhere + self.itself + self.later + self.circle
    }
}

impl Causes {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.begun_by.is_empty() && self.ended_by.is_empty()
    }

    /// What is listed for one end of a row.
    pub fn of(&self, moment: Moment) -> &[u32] {
        let links = if moment.is_end { &self.ended_by } else { &self.begun_by };
        links.of(moment.row as usize)
    }

    /// The same causes where rows have other numbers; those of rows without one are gone.
    pub fn renumbered(&self, place: impl Fn(u32) -> Option<u32>) -> Causes {
        let moved = |links: &Links| {
            let pair = |(row, cause)| Some((place(row)?, place(cause)?));
            Links::from_pairs(links.pairs().filter_map(pair).collect())
        };
        Causes { begun_by: moved(&self.begun_by), ended_by: moved(&self.ended_by) }
    }

    /// Leaves out what cannot be, so that every way back over causes ends; tells how much that was.
    pub fn keep_possible(&mut self, events: &[Event]) -> Impossible {
        let mut impossible = Impossible::default();
        if self.is_empty() {
            return impossible;
        }
        let mut sift = |links: &Links, is_end| {
            let is_possible = |&(row, cause): &(u32, u32)| {
                if events.len() <= row.max(cause) as usize {
                    impossible.nowhere += 1;
                    return false;
                }
                let time = Moment { row, is_end }.time(events);
                let comes_later = Moment::of_cause(events, cause, time).is_none();
                impossible.itself += u64::from(row == cause);
                impossible.later += u64::from(row != cause && comes_later);
                row != cause && !comes_later
            };
            Links::from_pairs(links.pairs().filter(is_possible).collect())
        };
        let mut sifted =
            Causes { begun_by: sift(&self.begun_by, false), ended_by: sift(&self.ended_by, true) };
        // Another way may lead around what was left out, so a look is taken until there is none.
        loop {
            let closing = sifted.circles(events);
            if closing.is_empty() {
                break;
            }
            impossible.circle += closing.len() as u64;
            sifted = sifted.without(&closing);
        }
        *self = sifted;
        impossible
    }

    fn without(&self, closing: &BTreeSet<(Moment, u32)>) -> Causes {
        let left = |links: &Links, is_end| {
            let stays =
                |&(row, cause): &(u32, u32)| !closing.contains(&(Moment { row, is_end }, cause));
            Links::from_pairs(links.pairs().filter(stays).collect())
        };
        Causes { begun_by: left(&self.begun_by, false), ended_by: left(&self.ended_by, true) }
    }

    /// Causes that close circles of moments that are all at one time; some, if there are any circles.
    fn circles(&self, events: &[Event]) -> BTreeSet<(Moment, u32)> {
        let mut closing = BTreeSet::new();
        let mut states = vec![State::New; 2 * events.len()];
        let place = |moment: Moment| 2 * moment.row as usize + usize::from(moment.is_end);
        let ends = [(&self.begun_by, false), (&self.ended_by, true)];
        let firsts = ends
            .iter()
            .flat_map(|&(links, is_end)| links.pairs().map(move |(row, _)| Moment { row, is_end }));
        for first in firsts {
            if states[place(first)] != State::New {
                continue;
            }
            states[place(first)] = State::UnderWay;
            // Each with the next of its causes to look at.
            let mut way: Vec<(Moment, usize)> = vec![(first, 0)];
            while let Some((moment, next)) = way.last_mut() {
                let (moment, at) = (*moment, *next);
                *next += 1;
                let Some((before, cause)) = self.at_once(events, moment, at) else {
                    states[place(moment)] = State::Done;
                    way.pop();
                    continue;
                };
                let Some(before) = before else { continue };
                match (states[place(before)], cause) {
                    (State::New, _) => {
                        states[place(before)] = State::UnderWay;
                        way.push((before, 0));
                    }
                    (State::UnderWay, Some(cause)) => {
                        closing.insert((moment, cause));
                    }
                    // A row leads to its own start whatever is left out: it must not be come to.
                    (State::UnderWay, None) => closing.extend(self.way_to(&way)),
                    _ => {}
                }
            }
        }
        closing
    }

    /// The cause over which a way has come to its last moment.
    fn way_to(&self, way: &[(Moment, usize)]) -> Option<(Moment, u32)> {
        let (before, next) = *way.len().checked_sub(2).and_then(|at| way.get(at))?;
        let cause = self.of(before).get(next.checked_sub(1)?)?;
        Some((before, *cause))
    }

    /// What is before a moment at the same time: its causes one by one, then the start of its row. `None`
    /// when there is no further one.
    fn at_once(&self, events: &[Event], moment: Moment, at: usize) -> Option<Step> {
        let (causes, time) = (self.of(moment), moment.time(events));
        let is_same = |before: &Moment| before.time(events) == time;
        match causes.get(at) {
            Some(&cause) => {
                let before = Moment::of_cause(events, cause, time).filter(is_same);
                Some((before, Some(cause)))
            }
            None if at == causes.len() && moment.is_end => {
                let start = Moment { row: moment.row, is_end: false };
                Some((Some(start).filter(is_same), None))
            }
            None => None,
        }
    }
}

/// The moment before another one, and over which cause; its own row leads there without.
type Step = (Option<Moment>, Option<u32>);

/// How far a moment has been looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    UnderWay,
    Done,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Function;

    fn links(pairs: &[(u32, u32)]) -> Links {
        Links::from_pairs(pairs.to_vec())
    }

    fn rows(times: &[(u64, u64)]) -> Vec<Event> {
        let row = |&(start, end): &(u64, u64)| Event {
            start: Nanos(start),
            end: Nanos(end),
            ..Event::of(Function::SEND)
        };
        times.iter().map(row).collect()
    }

    #[test]
    fn every_row_has_its_list_and_rows_without_one_have_an_empty_one() {
        let links = links(&[(3, 9), (1, 4), (3, 2), (1, 4)]);
        let lists: Vec<_> = (0..6).map(|row| links.of(row).to_vec()).collect();
        assert_eq!(lists, [vec![], vec![4], vec![], vec![2, 9], vec![], vec![]]);
        assert_eq!(links.pairs().collect::<Vec<_>>(), [(1, 4), (3, 2), (3, 9)]);
        assert_eq!(Links::from_pairs(Vec::new()), Links::default());
    }

    #[test]
    fn causes_follow_rows_to_their_new_numbers_and_those_of_rows_that_are_gone_go() {
        let causes = Causes { begun_by: links(&[(0, 2), (1, 2)]), ended_by: links(&[(2, 1)]) };
        let moved = causes.renumbered(|row| [Some(7), None, Some(0)][row as usize]);
        assert_eq!(moved, Causes { begun_by: links(&[(7, 0)]), ended_by: Links::default() });
    }

    #[test]
    fn a_cause_counts_from_its_end_and_while_it_goes_on_from_its_start() {
        let rows = rows(&[(10, 20)]);
        let from = |time| Moment::of_cause(&rows, 0, Nanos(time)).map(|moment| moment.is_end);
        assert_eq!([9, 10, 19, 20].map(from), [None, Some(false), Some(false), Some(true)]);
        assert_eq!(Moment::of_cause(&rows, 1, Nanos(99)), None);
    }

    #[test]
    fn what_cannot_have_caused_anything_is_left_out_and_counted() {
        let rows = rows(&[(0, 5), (10, 20), (30, 40)]);
        let mut causes = Causes {
            begun_by: links(&[(1, 0), (1, 1), (1, 2), (1, 9), (9, 1)]),
            ended_by: links(&[(1, 0), (1, 2), (2, 1)]),
        };
        let told = causes.keep_possible(&rows);
        assert_eq!(told, Impossible { nowhere: 2, itself: 1, later: 2, circle: 0 });
        assert_eq!(told.count(), 5);
        let left = Causes { begun_by: links(&[(1, 0)]), ended_by: links(&[(1, 0), (2, 1)]) };
        assert_eq!(causes, left);
    }

    #[test]
    fn a_message_and_the_command_that_it_ends_are_no_circle() {
        // Command, its send, the receive that ends the command.
        let rows = rows(&[(0, 100), (0, 10), (20, 100)]);
        let mut causes = Causes { begun_by: links(&[(1, 0), (2, 1)]), ended_by: links(&[(0, 2)]) };
        let before = causes.clone();
        assert_eq!(causes.keep_possible(&rows).count(), 0);
        assert_eq!(causes, before);
    }

    #[test]
    fn rows_that_begin_each_other_lose_the_cause_that_closes_the_circle() {
        let rows = rows(&[(5, 9), (5, 5), (5, 7)]);
        let mut causes =
            Causes { begun_by: links(&[(0, 1), (1, 2), (2, 0)]), ended_by: Links::default() };
        assert_eq!(causes.keep_possible(&rows), Impossible { circle: 1, ..Default::default() });
        assert_eq!(causes.begun_by.pairs().count(), 2);
        assert_eq!(causes.keep_possible(&rows).count(), 0, "what is left has no circle");
    }

    #[test]
    fn no_way_leads_back_around_a_cause_that_was_left_out() {
        // Row 1 takes no time; rows 0, 2 and 3 each began when it ended, and it began when they did.
        let rows = rows(&[(5, 9), (5, 5), (5, 9), (5, 9)]);
        let begun_by = links(&[(0, 1), (2, 1), (3, 1), (1, 0), (1, 2), (1, 3)]);
        let mut causes = Causes { begun_by, ended_by: Links::default() };
        assert!(causes.keep_possible(&rows).circle >= 3);
        assert_eq!(causes.keep_possible(&rows).count(), 0);
        assert!(!causes.is_empty());
    }

    #[test]
    fn a_circle_through_a_row_that_took_no_time_is_found() {
        let rows = rows(&[(5, 5), (5, 5)]);
        // Row 1 began when row 0 ended, which ended when row 1 did.
        let mut causes = Causes { begun_by: links(&[(1, 0)]), ended_by: links(&[(0, 1)]) };
        assert_eq!(causes.keep_possible(&rows).circle, 1);
        assert_eq!(causes.keep_possible(&rows).count(), 0);
    }
}
