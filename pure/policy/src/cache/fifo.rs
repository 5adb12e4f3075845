//! Two queues in order of arrival, reads before writes: what no cache and write-behind share.

use super::desk::Desk;
use super::{Action, Event, Job, Settings};
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

    /// All a first-come server does; the members differ in which offered writes they admit, memory
    /// permitting.
    pub(super) fn step(
        &mut self,
        event: Event,
        admits: impl FnOnce(&Fifo) -> bool,
        out: &mut Vec<Action>,
    ) {
        match event {
            Event::ReadArrived { tag, file, extent } => {
                self.reads.push_back(Job { tag, file, extent });
                self.start(out);
            }
            Event::WriteOffered { bytes } => {
                if !admits(self) || !self.desk.has_more_than(bytes) {
                    return out.push(Action::Refuse);
                }
                self.desk.take(bytes);
                out.push(Action::Admit);
            }
            Event::WriteArrived { tag, file, extent } => {
                self.writes.push_back(Job { tag, file, extent });
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

    pub(super) fn has_queued_writes(&self) -> bool {
        !self.writes.is_empty()
    }

    pub(super) fn queued_count(&self) -> usize {
        self.reads.len() + self.writes.len()
    }

    /// Fills the device: the oldest read that memory allows, else the oldest write.
    fn start(&mut self, out: &mut Vec<Action>) {
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
