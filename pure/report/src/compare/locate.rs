//! Where in a run a difference lies: when, in which process, and in which call most of it.

use super::Stretch;
use super::cells::Key;
use super::matching::{Both, steps};
use std::collections::BTreeMap;

/// Parts a run is cut into to find the stretch of a difference.
const PARTS: usize = 200;
/// What of a difference lies in its stretch.
const MOST: f64 = 0.8;

/// Where the difference of a cell lies.
#[derive(Clone, Debug)]
pub(super) struct Place {
    more_ns: Vec<i64>,
    active: Option<(usize, usize)>,
    by_process: BTreeMap<u32, i64>,
    most: u64,
    pub(super) rows: [Option<usize>; 2],
}

/// Finds the places of the differences of these cells; `cell` says which one a key is of, if any.
pub(super) fn locate(
    joined: &[Both],
    span: (u64, u64),
    cell: impl Fn(Key) -> Option<Key>,
) -> BTreeMap<Key, Place> {
    let mut places: BTreeMap<Key, Place> = BTreeMap::new();
    let width = (span.1.saturating_sub(span.0) / PARTS as u64).max(1);
    steps(joined, &mut |step| {
        let Some(key) = cell(step.key) else { return };
        let place = places.entry(key).or_insert_with(Place::empty);
        let part = (step.at.saturating_sub(span.0) / width).min(PARTS as u64 - 1) as usize;
        place.more_ns[part] = place.more_ns[part].saturating_add(step.more_ns);
        let (first, last) = place.active.unwrap_or((part, part));
        place.active = Some((first.min(part), last.max(part)));
        let process = place.by_process.entry(step.process).or_default();
        *process = process.saturating_add(step.more_ns);
        if place.most < step.more_ns.unsigned_abs() {
            (place.most, place.rows) = (step.more_ns.unsigned_abs(), step.rows);
        }
    });
    places
}

impl Place {
    fn empty() -> Place {
        Place {
            more_ns: vec![0; PARTS],
            active: None,
            by_process: BTreeMap::new(),
            most: 0,
            rows: [None, None],
        }
    }

    fn total(&self) -> i64 {
        self.more_ns.iter().copied().fold(0, i64::saturating_add)
    }

    /// The shortest stretch that holds most of the difference, where it is at most half of what the cell
    /// stretches over.
    pub(super) fn stretch(&self, span: (u64, u64)) -> Option<Stretch> {
        let (first, last) = self.active?;
        let total = self.total();
        let wanted = total.unsigned_abs() as f64 * MOST;
        let holds = |from: usize, to: usize| {
            let sum = self.more_ns[from..to].iter().copied().fold(0, i64::saturating_add);
            sum.signum() == total.signum() && sum.unsigned_abs() as f64 >= wanted
        };
        let of_length =
            |length: usize| (first..=last + 1 - length).find(|&from| holds(from, from + length));
        let half = (last + 1 - first) / 2;
        let (from, length) = (1..=half).find_map(|length| Some((of_length(length)?, length)))?;
        let width = (span.1.saturating_sub(span.0) / PARTS as u64).max(1);
        let at = |part: usize| span.0.saturating_add(width.saturating_mul(part as u64));
        Some(Stretch { start_ns: at(from), end_ns: at(from + length) })
    }

    /// The process that has most of it, if others have the same kind of calls.
    pub(super) fn process(&self) -> Option<u32> {
        let total = self.total();
        let most = |(_, more): &(&u32, &i64)| {
            more.signum() == total.signum()
                && more.unsigned_abs() as f64 >= total.unsigned_abs() as f64 * MOST
        };
        let found = self.by_process.iter().find(most)?;
        (self.by_process.len() > 1 && total != 0).then_some(*found.0)
    }
}
