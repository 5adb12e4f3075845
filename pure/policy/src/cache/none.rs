//! No cache: one write on the device, at most one packet's worth queued behind it.
//!
//! This is the null member and the template. After Kuhn 2009. A second packet is refused until
//! the queue of writes is empty, so clients wait for the device. It does join queued writes that
//! continue each other, which the original text denies and its code does.

use super::fifo::Fifo;
use super::{Action, Cache, Event, Settings};
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
        self.0.step(event, |fifo| !fifo.has_queued_writes(), out);
    }

    fn held_bytes(&self) -> u64 {
        self.0.desk.held_bytes()
    }

    fn queued_count(&self) -> usize {
        self.0.queued_count()
    }
}
