//! Bandwidth over time, in a fixed number of slices whose width doubles as the run gets longer.

use iolab_vocab::Nanos;
use serde::Serialize;

/// A run is shown in at least half this many slices.
const SLICES: usize = 240;
/// First width; short enough for a run of a quarter millisecond.
const FIRST_WIDTH_NS: u64 = 1 << 10;

/// What happened in one slice of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Slice {
    /// Bytes read.
    pub read_bytes: f64,
    /// Bytes written.
    pub written_bytes: f64,
    /// Time spent in calls, summed over threads.
    pub io_ns: f64,
    /// Calls that move no data, by their start.
    pub metadata_calls: u64,
}

impl Slice {
    fn merge(&mut self, other: Slice) {
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
        self.io_ns += other.io_ns;
        self.metadata_calls = self.metadata_calls.saturating_add(other.metadata_calls);
    }
}

/// Slices of equal width since the trace's time zero.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timeline {
    /// Width of a slice.
    pub slice_ns: u64,
    /// What happened in each.
    pub slices: Vec<Slice>,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline { slice_ns: FIRST_WIDTH_NS, slices: Vec::new() }
    }
}

impl Timeline {
    /// Spreads what a call moved evenly over the time it took.
    pub(crate) fn add(&mut self, start: Nanos, end: Nanos, read: u64, written: u64) {
        let end = end.max(start);
        self.reach(end);
        let span = (end.since(start).0).max(1) as f64;
        let (first, last) = (self.index(start), self.index(end));
        for index in first..=last {
            let begin = (index as u64 * self.slice_ns).max(start.0);
            let finish = (index as u64 + 1).saturating_mul(self.slice_ns).min(end.0);
            // A call without duration counts where it is.
            let inside = finish.saturating_sub(begin) as f64;
            let share = if first == last { 1.0 } else { inside / span };
            let slice = &mut self.slices[index];
            slice.read_bytes += read as f64 * share;
            slice.written_bytes += written as f64 * share;
            slice.io_ns += inside;
        }
    }

    pub(crate) fn add_metadata(&mut self, start: Nanos, end: Nanos, calls: u64) {
        self.add(start, end, 0, 0);
        let index = self.index(start);
        let slice = &mut self.slices[index];
        slice.metadata_calls = slice.metadata_calls.saturating_add(calls);
    }

    fn index(&self, time: Nanos) -> usize {
        (time.0 / self.slice_ns) as usize
    }

    fn reach(&mut self, time: Nanos) {
        while self.index(time) >= SLICES {
            self.halve();
        }
        let needed = self.index(time) + 1;
        if self.slices.len() < needed {
            self.slices.resize(needed, Slice::default());
        }
    }

    fn halve(&mut self) {
        self.slice_ns *= 2;
        for index in 0..self.slices.len().div_ceil(2) {
            let mut slice = self.slices[2 * index];
            if let Some(&second) = self.slices.get(2 * index + 1) {
                slice.merge(second);
            }
            self.slices[index] = slice;
        }
        self.slices.truncate(self.slices.len().div_ceil(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_time_are_conserved_however_often_the_width_doubles() {
        let mut timeline = Timeline::default();
        for call in 0..1000 {
            let start = call * call * 1000;
            timeline.add(Nanos(start), Nanos(start + 1_500_000), 100, 50);
        }
        let sum = |value: fn(&Slice) -> f64| timeline.slices.iter().map(value).sum::<f64>();
        assert!((sum(|s| s.read_bytes) - 100_000.0).abs() < 1e-3);
        assert!((sum(|s| s.written_bytes) - 50_000.0).abs() < 1e-3);
        assert!((sum(|s| s.io_ns) - 1.5e9).abs() < 1.0);
        assert!((SLICES / 2..=SLICES).contains(&timeline.slices.len()));
    }

    #[test]
    fn a_call_lies_in_the_slices_of_its_time() {
        let mut timeline = Timeline::default();
        timeline.add(Nanos(1024), Nanos(1024 + 2048), 2048, 0);
        let read: Vec<f64> = timeline.slices.iter().map(|slice| slice.read_bytes).collect();
        assert_eq!(read[..3], [0.0, 1024.0, 1024.0]);
    }
}
