//! No cache: one write on the device, at most one packet's worth queued behind it.
//!
//! This is the null member and the template. After Kuhn 2009. A second packet is refused until
//! the queue of writes is empty, so clients wait for the device. It does join queued writes that
//! continue each other, which the original text denies and its code does.

use super::fifo::Fifo;
use super::{Action, Cache, Event, Job, Settings};
use iolab_vocab::Nanos;

/// A server that holds nothing back.
#[derive(Debug)]
pub struct NoCache(Fifo);

impl NoCache {
    /// An idle one.
    pub fn new(settings: Settings) -> NoCache {
        NoCache(Fifo::new(settings))
    }
}

impl Cache for NoCache {
    fn step(&mut self, _now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::ReadArrived { tag, file, extent } => {
                self.0.read_arrived(Job { tag, file, extent }, out);
            }
            Event::WriteOffered { bytes } => {
                if self.0.has_queued_writes() || !self.0.desk.has_more_than(bytes) {
                    return out.push(Action::Refuse);
                }
                self.0.desk.take(bytes);
                out.push(Action::Admit);
            }
            Event::WriteArrived { tag, file, extent } => {
                self.0.write_arrived(Job { tag, file, extent }, out);
            }
            Event::Completed { operation } => self.0.completed(operation, out),
            Event::Released { bytes } => {
                self.0.desk.give_back(bytes);
                self.0.start(out);
            }
            Event::DeviceReady => {
                self.0.desk.ready();
                self.0.start(out);
            }
            Event::FlushArrived { .. } | Event::Woke => {}
        }
    }

    fn held_bytes(&self) -> u64 {
        self.0.desk.held_bytes()
    }

    fn queued_count(&self) -> usize {
        self.0.queued_count()
    }
}
