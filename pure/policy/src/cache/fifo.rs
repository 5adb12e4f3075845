//! Two queues in order of arrival, reads before writes: what no cache and write-behind share.

use super::in_flight::InFlight;
use super::layer::Queues;
use super::{Action, Job};
use iolab_vocab::{Extent, FileId};
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Fifo {
    reads: VecDeque<Job>,
    writes: VecDeque<Job>,
    /// Whether writes may come in while others wait.
    queues_writes: bool,
}

impl Fifo {
    pub(super) fn new(queues_writes: bool) -> Fifo {
        Fifo { reads: VecDeque::new(), writes: VecDeque::new(), queues_writes }
    }
}

impl Queues for Fifo {
    fn admits(&mut self) -> bool {
        self.queues_writes || self.writes.is_empty()
    }

    fn push_read(&mut self, job: Job) {
        self.reads.push_back(job);
    }

    fn push_write(&mut self, job: Job) -> u64 {
        self.writes.push_back(job);
        0
    }

    fn start_read(&mut self, in_flight: &mut InFlight, out: &mut Vec<Action>) -> bool {
        let Some(&job) = self.reads.front() else { return false };
        if !in_flight.has_more_than(job.extent.length) {
            return false;
        }
        self.reads.pop_front();
        in_flight.fetch(job.file, job.extent, std::iter::once(job), out);
        true
    }

    /// The oldest write, joined with those directly behind it as long as they continue it.
    fn start_write(&mut self, in_flight: &mut InFlight, out: &mut Vec<Action>) -> bool {
        let Some(job) = self.writes.pop_front() else { return false };
        let mut length = job.extent.length;
        while let Some(next) = self.writes.front() {
            let continues =
                next.file == job.file && next.extent.offset == job.extent.offset + length;
            if !continues || length + next.extent.length > in_flight.access_bytes() {
                break;
            }
            length += next.extent.length;
            self.writes.pop_front();
        }
        in_flight.store(job.file, Extent::new(job.extent.offset, length), length, out);
        true
    }

    fn has_reads(&self) -> bool {
        !self.reads.is_empty()
    }

    fn has_writes(&self, file: Option<FileId>) -> bool {
        match file {
            None => !self.writes.is_empty(),
            Some(file) => self.writes.iter().any(|job| job.file == file),
        }
    }

    fn queued_count(&self) -> usize {
        self.reads.len() + self.writes.len()
    }
}
