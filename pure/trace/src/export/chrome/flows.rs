//! Causes as flows: from the moment of the cause to the start or end of what it began or ended.
//!
//! Perfetto ties an end of a flow to the event of its track that began last, going by time and at one time by the order of the
//! file. So flows stand behind all rows, and the end of a row is told a nanosecond before it, when the next one has not begun. Where
//! the cause is at that end and takes no time (the arrival of a short message), this would be too early: such causes and
//! their flows stand before all other rows.

use super::lanes::Lanes;
use super::{Document, Micros, processes};
use crate::{Causes, Event};
use iolab_vocab::Nanos;
use std::io::{self, Write};

/// The rows that are or have a cause, and where they are drawn.
pub(super) struct Flows<'a> {
    causes: &'a Causes,
    /// Ascending.
    rows: Vec<u32>,
    /// Of the first of them.
    places: Vec<Place>,
}

#[derive(Clone, Copy)]
struct Place {
    track: u32,
    start: Nanos,
    end: Nanos,
}

impl Place {
    /// A point at its start or end that no other event of its track has.
    fn point(&self, is_end: bool) -> Nanos {
        if is_end { Nanos(self.end.0.saturating_sub(1)).max(self.start) } else { self.start }
    }
}

/// Whether a row with a flow stands before all others.
pub(super) fn is_early(event: &Event) -> bool {
    event.end <= event.start
}

impl<'a> Flows<'a> {
    pub(super) fn of(causes: &'a Causes) -> Flows<'a> {
        let pairs = causes.begun_by.pairs().chain(causes.ended_by.pairs());
        let mut rows: Vec<u32> = pairs.flat_map(|(row, cause)| [row, cause]).collect();
        rows.sort_unstable();
        rows.dedup();
        Flows { causes, rows, places: Vec::new() }
    }

    /// Whether a row has a flow.
    pub(super) fn has(&self, row: usize) -> bool {
        u32::try_from(row).is_ok_and(|row| self.rows.binary_search(&row).is_ok())
    }

    /// The same of the row that comes next.
    pub(super) fn is_next(&self, row: usize) -> bool {
        self.rows.get(self.places.len()).is_some_and(|&next| next as usize == row)
    }

    /// Remembers where a row is drawn, if it has a flow.
    pub(super) fn keep(&mut self, row: usize, track: u32, event: &Event) {
        if self.is_next(row) {
            let end = event.end.max(event.start);
            self.places.push(Place { track, start: event.start, end });
        }
    }

    /// Writes those that stand before other rows, or the others.
    pub(super) fn write(
        &self,
        early: bool,
        lanes: &Lanes,
        document: &mut Document<impl Write>,
    ) -> io::Result<()> {
        let links =
            [(&self.causes.begun_by, false, "begins"), (&self.causes.ended_by, true, "ends")];
        let mut id = 0;
        for (links, is_end, name) in links {
            for (row, cause) in links.pairs().filter(|(row, cause)| row != cause) {
                let (Some(effect), Some(cause)) = (self.place(row), self.place(cause)) else {
                    continue;
                };
                let time = if is_end { effect.end } else { effect.start };
                if cause.start > time {
                    continue;
                }
                // A cause counts from its end, or while it still goes on from its start.
                let from = cause.point(cause.end <= time);
                let to = effect.point(is_end);
                id += 1;
                if early != (from > to) {
                    continue;
                }
                let to = to.max(from);
                for (phase, track, time) in
                    [("\"s\"", cause.track, from), ("\"f\",\"bp\":\"e\"", effect.track, to)]
                {
                    write!(
                        document.next()?,
                        "{{\"ph\":{phase},\"id\":{id},\"name\":\"{name}\",\"cat\":\"cause\",\"pid\":{},\"tid\":{track},\"ts\":{}}}",
                        processes::number(lanes.process_of(track)),
                        Micros(time),
                    )?;
                }
            }
        }
        Ok(())
    }

    fn place(&self, row: u32) -> Option<&Place> {
        self.places.get(self.rows.binary_search(&row).ok()?)
    }
}
