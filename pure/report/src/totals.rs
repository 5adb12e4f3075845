//! What is added up of calls: how many, how many bytes, how long, apart for reads, writes and the rest.

use crate::stream::Calls;
use iolab_trace::{Class, Event};

/// Calls, bytes and time of a layer, a file or a process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    pub(crate) calls: u64,
    pub(crate) nested: u64,
    pub(crate) reads: Calls,
    pub(crate) writes: Calls,
    /// Calls that move no data.
    pub(crate) metadata: Calls,
    pub(crate) failed: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, row: u64, event: &Event) {
        self.count_call(event);
        match event.function.class() {
            Class::Read => self.reads.add(row, event),
            Class::Write => self.writes.add(row, event),
            Class::Copy => {
                self.reads.add(row, event);
                if event.argument >= 0 {
                    self.writes.merge(copied(row, event));
                }
            }
            // A process that waits for its child does no I/O.
            Class::Process => {}
            _ => self.metadata.add(row, event),
        }
    }

    /// The source of a copy inside the kernel is read.
    pub(crate) fn copied_from(&mut self, row: u64, event: &Event) {
        self.count_call(event);
        self.reads.add(row, event);
    }

    /// Its target is written, in the same time.
    pub(crate) fn copied_to(&mut self, row: u64, event: &Event) {
        self.count_call(event);
        self.writes.merge(copied(row, event));
    }

    fn count_call(&mut self, event: &Event) {
        self.calls = self.calls.saturating_add(event.calls());
        self.nested += u64::from(event.parent >= 0);
        self.failed += u64::from(event.errno().is_some());
    }

    pub(crate) fn io_ns(&self) -> u64 {
        self.reads.and(self.writes).and(self.metadata).ns
    }
}

/// The writing half of a copy, whose time is that of the reading one.
fn copied(row: u64, event: &Event) -> Calls {
    Calls { count: event.calls(), bytes: event.moved_bytes(), ns: 0, row: Some(row) }
}
