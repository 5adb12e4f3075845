//! Rows of a trace that stay while others are left out, chosen as they are met.
//!
//! Promises: a row that stays names as its parent the nearest row around it that stays. Costs: O(1) for each row; memory for
//! those that stay, 4 bytes for each of the others and 8 more if it has a parent.

use crate::Event;

/// See the module.
#[derive(Debug, Default)]
pub struct Retained {
    events: Vec<Event>,
    /// Which rows of the whole trace these are.
    rows: Vec<u32>,
    /// Of each row met: its place among those that stay.
    places: Vec<u32>,
    /// Of each row that is left out and has one: the row around it.
    around: Vec<(u32, u32)>,
}

/// The place of a row that is left out.
const LEFT_OUT: u32 = u32::MAX;

impl Retained {
    /// The next row of the trace, and whether it stays.
    pub fn meet(&mut self, event: &Event, stays: bool) {
        let row = self.places.len() as u32;
        if stays {
            self.places.push(self.events.len() as u32);
            self.rows.push(row);
            self.events.push(*event);
            return;
        }
        self.places.push(LEFT_OUT);
        if let Ok(around) = u32::try_from(event.parent) {
            self.around.push((row, around));
        }
    }

    /// So many rows come next that are left out, and lie around none that stays.
    pub fn pass_over(&mut self, rows: u64) {
        self.places.resize(self.places.len() + rows as usize, LEFT_OUT);
    }

    /// How many rows were met.
    pub fn met(&self) -> usize {
        self.places.len()
    }

    /// The place of a row, if it stays.
    pub fn place(&self, row: u32) -> Option<u32> {
        self.places.get(row as usize).copied().filter(|&place| place != LEFT_OUT)
    }

    /// The rows that stay, and which rows of the trace they were.
    pub fn finish(mut self) -> (Vec<Event>, Vec<u32>) {
        let mut events = std::mem::take(&mut self.events);
        for event in &mut events {
            event.parent = self.nearest(event.parent).map_or(-1, i64::from);
        }
        (events, self.rows)
    }

    /// The place of the first row that stays, from this one outward.
    fn nearest(&self, row: i64) -> Option<u32> {
        let outward = |row: &u32| {
            let found = self.around.binary_search_by_key(row, |&(row, _)| row);
            found.ok().map(|at| self.around[at].1)
        };
        // No chain is longer than there are rows, though a damaged trace may have rings.
        let chain = std::iter::successors(u32::try_from(row).ok(), outward);
        chain.take(self.places.len()).find_map(|row| self.place(row))
    }
}
