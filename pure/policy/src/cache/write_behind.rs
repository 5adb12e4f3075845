//! Write-behind: everything that fits memory comes in; the device works it off in order.
//!
//! After Kuhn 2009. Queued writes that continue each other directly are joined, up to the largest
//! transfer; without that joining eight published rows change, the worst by 12.7 %.

use super::fifo::Fifo;
use super::{Action, Cache, Event, Job, Settings};
use iolab_vocab::Nanos;

/// A server that takes what memory holds.
#[derive(Debug)]
pub struct WriteBehind(Fifo);

impl WriteBehind {
    /// An idle one.
    pub fn new(settings: Settings) -> WriteBehind {
        WriteBehind(Fifo::new(settings))
    }
}

impl Cache for WriteBehind {
    fn step(&mut self, _now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::ReadArrived { tag, file, extent } => {
                self.0.read_arrived(Job { tag, file, extent }, out);
            }
            Event::WriteOffered { bytes } => {
                if !self.0.desk.has_more_than(bytes) {
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
