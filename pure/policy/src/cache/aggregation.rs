//! Aggregation: write-behind that joins whatever touches, wherever it stands in the queue.
//!
//! After Kuhn 2009. The oldest job is taken; then the queue is scanned from the front again and
//! again, and every job of the same file that ends at its start or starts at its end joins, until
//! a scan finds none; the first join that would exceed the largest transfer ends everything.
//!
//! The scans are not carried out. Jobs are indexed by where they start and where they end, and
//! "the next one a scan would meet" is the touching job with the lowest number above the last one
//! joined, or, when there is none, the lowest of all: O(log n) per join instead of O(n) per scan.

use super::desk::Desk;
use super::{Action, Cache, Event, Job, Settings};
use iolab_vocab::{Extent, FileId, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// A server that joins what touches.
#[derive(Debug)]
pub struct Aggregation {
    desk: Desk,
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

impl Aggregation {
    /// An idle one.
    pub fn new(settings: Settings) -> Aggregation {
        Aggregation {
            desk: Desk::new(settings),
            reads: Queue::default(),
            writes: Queue::default(),
            joined: Vec::new(),
        }
    }

    fn start(&mut self, out: &mut Vec<Action>) {
        while self.desk.is_free() {
            if !self.start_read(out) && !self.start_write(out) {
                return;
            }
        }
    }

    /// Only the first job's memory is checked, as in the original.
    fn start_read(&mut self, out: &mut Vec<Action>) -> bool {
        let Some((_, oldest)) = self.reads.oldest() else { return false };
        if !self.desk.has_more_than(oldest.extent.length) {
            return false;
        }
        let access_bytes = self.desk.access_bytes();
        let taken = self.reads.take_joined(access_bytes, &mut self.joined);
        let (file, extent) = taken.expect("there is an oldest read");
        self.desk.fetch(file, extent, self.joined.drain(..), out);
        true
    }

    fn start_write(&mut self, out: &mut Vec<Action>) -> bool {
        let access_bytes = self.desk.access_bytes();
        match self.writes.take_joined(access_bytes, &mut self.joined) {
            None => false,
            Some((file, extent)) => {
                self.desk.store(file, extent, extent.length, out);
                true
            }
        }
    }
}

impl Cache for Aggregation {
    fn step(&mut self, _now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::ReadArrived { tag, file, extent } => {
                self.reads.push(Job { tag, file, extent });
                self.start(out);
            }
            Event::WriteOffered { bytes } => {
                if !self.desk.has_more_than(bytes) {
                    return out.push(Action::Refuse);
                }
                self.desk.take(bytes);
                out.push(Action::Admit);
            }
            Event::WriteArrived { tag, file, extent } => {
                self.writes.push(Job { tag, file, extent });
                self.start(out);
            }
            Event::Completed { operation } => self.desk.complete(operation, out),
            Event::Released { bytes } => {
                self.desk.give_back(bytes);
                self.start(out);
            }
            Event::DeviceReady => {
                self.desk.ready();
                self.start(out);
            }
            Event::FlushArrived { .. } | Event::Woke => {}
        }
    }

    fn held_bytes(&self) -> u64 {
        self.desk.held_bytes()
    }

    fn queued_count(&self) -> usize {
        self.reads.jobs.len() + self.writes.jobs.len()
    }
}
