//! The clock and what is to come.

use super::event::Event;
use crate::queue::{EventQueue, Source};
use iolab_vocab::Nanos;

#[derive(Debug)]
pub(super) struct Calendar<Q> {
    pub(super) now: Nanos,
    pub(super) queue: Q,
    /// The first event that would come after the end of time.
    pub(super) late: Option<Event>,
}

/// Simulated time ends here, after 584 years.
pub(super) const END_OF_TIME: Nanos = Nanos(u64::MAX);

impl<Q: EventQueue<Event>> Calendar<Q> {
    #[inline]
    pub(super) fn post(&mut self, after_nanos: u64, source: u32, event: Event) {
        let time = self.time_of(after_nanos, event);
        self.queue.push(time, Source(source), event);
    }

    #[inline]
    fn time_of(&mut self, after_nanos: u64, event: Event) -> Nanos {
        let time = self.now.after(Nanos(after_nanos));
        if time == END_OF_TIME && self.late.is_none() {
            self.late = Some(event);
        }
        time
    }

    /// Posts the end of a node's next job; a node has one at most.
    #[inline]
    pub(super) fn set_timer(&mut self, after_nanos: u64, node: u32, event: Event) {
        let time = self.time_of(after_nanos, event);
        self.queue.set_timer(node, time, Source(node), event);
    }

    /// Another job of the node ends next, or at another time.
    #[inline]
    pub(super) fn move_timer(&mut self, after_nanos: u64, node: u32, event: Event) {
        let time = self.time_of(after_nanos, event);
        self.queue.move_timer(node, time, Source(node), event);
    }
}
