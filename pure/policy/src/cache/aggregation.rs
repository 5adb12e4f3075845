//! Aggregation: write-behind that joins whatever touches, wherever it stands in the queue.
//!
//! After Kuhn 2009. The oldest job is taken; then the queue is scanned from the front again and
//! again, and every job of the same file that ends at its start or starts at its end joins, until
//! a scan finds none; the first join that would exceed the largest transfer ends everything.
//!
//! The scans are not carried out. Jobs are indexed by where they start and where they end, and
//! "the next one a scan would meet" is the touching job with the lowest number above the last one
//! joined, or, when there is none, the lowest of all: O(log n) per join instead of O(n) per scan.

use super::in_flight::InFlight;
use super::layer::{Layer, Queues};
use super::{Action, Cache, Job, Settings};
use iolab_vocab::{Extent, FileId};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
struct Aggregation {
    reads: Queue,
    writes: Queue,
    joined: Vec<Job>,
}

/// Waiting jobs in order of arrival, and by their ends.
#[derive(Debug, Default)]
struct Queue {
    arrivals: u64,
    jobs: BTreeMap<u64, Job>,
    by_start: BTreeSet<(FileId, u64, u64)>,
    by_end: BTreeSet<(FileId, u64, u64)>,
}

impl Queue {
    fn push(&mut self, job: Job) {
        self.arrivals += 1;
        self.jobs.insert(self.arrivals, job);
        self.by_start.insert((job.file, job.extent.offset, self.arrivals));
        self.by_end.insert((job.file, job.extent.end(), self.arrivals));
    }

    fn remove(&mut self, number: u64) -> Job {
        let job = self.jobs.remove(&number).expect("the indexes name waiting jobs only");
        self.by_start.remove(&(job.file, job.extent.offset, number));
        self.by_end.remove(&(job.file, job.extent.end(), number));
        job
    }

    fn oldest(&self) -> Option<(u64, Job)> {
        self.jobs.first_key_value().map(|(number, job)| (*number, *job))
    }

    fn has(&self, file: FileId) -> bool {
        self.by_start.range((file, 0, 0)..).next().is_some_and(|entry| entry.0 == file)
    }

    /// The first job behind number `after` that touches `extent`.
    fn touching(&self, file: FileId, extent: Extent, after: u64) -> Option<u64> {
        let first = |index: &BTreeSet<(FileId, u64, u64)>, at: u64| {
            index.range((file, at, after + 1)..=(file, at, u64::MAX)).next().map(|entry| entry.2)
        };
        let behind = first(&self.by_start, extent.end());
        let before = first(&self.by_end, extent.offset);
        match (behind, before) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Takes the oldest job and all that scans would join to it.
    fn take_joined(
        &mut self,
        access_bytes: u64,
        joined: &mut Vec<Job>,
    ) -> Option<(FileId, Extent)> {
        let (number, job) = self.oldest()?;
        joined.clear();
        joined.push(self.remove(number));
        let (mut extent, mut cursor) = (job.extent, 0);
        loop {
            let next = self.touching(job.file, extent, cursor);
            let Some(number) = next.or_else(|| self.touching(job.file, extent, 0)) else { break };
            let other = self.jobs[&number].extent;
            if extent.length + other.length > access_bytes {
                break;
            }
            joined.push(self.remove(number));
            extent = Extent::new(extent.offset.min(other.offset), extent.length + other.length);
            cursor = number;
        }
        Some((job.file, extent))
    }
}

/// A server that joins what touches.
pub fn aggregation(settings: Settings) -> impl Cache {
    Layer::new(settings, Aggregation::default())
}

impl Queues for Aggregation {
    fn push_read(&mut self, job: Job) {
        self.reads.push(job);
    }

    fn push_write(&mut self, job: Job) -> u64 {
        self.writes.push(job);
        0
    }

    /// Only the first job's memory decides whether a read starts, as in the original; but no more
    /// joins than memory holds.
    fn start_read(&mut self, in_flight: &mut InFlight, out: &mut Vec<Action>) -> bool {
        let Some((_, oldest)) = self.reads.oldest() else { return false };
        if !in_flight.has_more_than(oldest.extent.length) {
            return false;
        }
        let limit_bytes = in_flight.access_bytes().min(in_flight.free_bytes());
        let taken = self.reads.take_joined(limit_bytes, &mut self.joined);
        let (file, extent) = taken.expect("there is an oldest read");
        in_flight.fetch(file, extent, self.joined.drain(..), out);
        true
    }

    fn start_write(&mut self, in_flight: &mut InFlight, out: &mut Vec<Action>) -> bool {
        let Some((file, extent)) =
            self.writes.take_joined(in_flight.access_bytes(), &mut self.joined)
        else {
            return false;
        };
        in_flight.store(file, extent, extent.length, out);
        true
    }

    fn has_reads(&self) -> bool {
        !self.reads.jobs.is_empty()
    }

    fn has_writes(&self, file: Option<FileId>) -> bool {
        match file {
            None => !self.writes.jobs.is_empty(),
            Some(file) => self.writes.has(file),
        }
    }

    fn queued_count(&self) -> usize {
        self.reads.jobs.len() + self.writes.jobs.len()
    }
}
