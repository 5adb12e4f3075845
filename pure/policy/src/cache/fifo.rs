//! Two queues in order of arrival, reads before writes: what no cache and write-behind share.

use super::desk::Desk;
use super::{Action, Job, Operation, Settings};
use iolab_vocab::Extent;
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Fifo {
    pub(super) desk: Desk,
    reads: VecDeque<Job>,
    writes: VecDeque<Job>,
}

impl Fifo {
    pub(super) fn new(settings: Settings) -> Fifo {
        Fifo { desk: Desk::new(settings), reads: VecDeque::new(), writes: VecDeque::new() }
    }

    pub(super) fn read_arrived(&mut self, job: Job, out: &mut Vec<Action>) {
        self.reads.push_back(job);
        self.start(out);
    }

    pub(super) fn write_arrived(&mut self, job: Job, out: &mut Vec<Action>) {
        self.writes.push_back(job);
        self.start(out);
    }

    pub(super) fn completed(&mut self, operation: Operation, out: &mut Vec<Action>) {
        self.desk.complete(operation, out);
    }

    pub(super) fn has_queued_writes(&self) -> bool {
        !self.writes.is_empty()
    }

    pub(super) fn queued_count(&self) -> usize {
        self.reads.len() + self.writes.len()
    }

    /// Fills the device: the oldest read that memory allows, else the oldest write.
    pub(super) fn start(&mut self, out: &mut Vec<Action>) {
        while self.desk.is_free() {
            if !self.start_read(out) && !self.start_write(out) {
                return;
            }
        }
    }

    fn start_read(&mut self, out: &mut Vec<Action>) -> bool {
        let Some(&job) = self.reads.front() else { return false };
        if !self.desk.has_more_than(job.extent.length) {
            return false;
        }
        self.reads.pop_front();
        self.desk.fetch(job.file, job.extent, std::iter::once(job), out);
        true
    }

    /// The oldest write, joined with those directly behind it as long as they continue it.
    fn start_write(&mut self, out: &mut Vec<Action>) -> bool {
        let Some(job) = self.writes.pop_front() else { return false };
        let mut length = job.extent.length;
        while let Some(next) = self.writes.front() {
            let continues =
                next.file == job.file && next.extent.offset == job.extent.offset + length;
            if !continues || length + next.extent.length > self.desk.access_bytes() {
                break;
            }
            length += next.extent.length;
            self.writes.pop_front();
        }
        self.desk.store(job.file, Extent::new(job.extent.offset, length), length, out);
        true
    }
}
