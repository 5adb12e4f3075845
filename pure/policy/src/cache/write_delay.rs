//! Delayed writes: held back until they are old enough, many enough, or somebody flushes.
//!
//! After Kuhn 2009, where writes were flushed every 0.33 s or above 50 MiB; the published runs had
//! this switched off. Once writes may go, all that wait go; then the next are held back again.

use super::Action;
use iolab_vocab::Nanos;

/// How long, and how many bytes of, writes are held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// From the first write held back to the flush.
    pub age: Nanos,
    /// More than this is flushed at once.
    pub bytes: u64,
}

impl Delay {
    /// As in the ancestor's code.
    pub const CLASSIC: Delay = Delay { age: Nanos(330_000_000), bytes: 50 << 20 };
}

#[derive(Debug)]
pub(super) struct WriteDelay {
    delay: Option<Delay>,
    is_open: bool,
    /// Bytes that came in since it closed.
    held_bytes: u64,
    /// When the first of them came.
    since: Nanos,
    is_armed: bool,
}

impl WriteDelay {
    pub(super) fn new(delay: Option<Delay>) -> WriteDelay {
        WriteDelay {
            delay,
            is_open: delay.is_none(),
            held_bytes: 0,
            since: Nanos::ZERO,
            is_armed: false,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// A write is held back.
    pub(super) fn queued(&mut self, now: Nanos, bytes: u64, out: &mut Vec<Action>) {
        let Some(delay) = self.delay else { return };
        if self.held_bytes == 0 {
            self.since = now;
        }
        self.held_bytes += bytes;
        self.is_open |= self.held_bytes > delay.bytes;
        self.arm(delay, out);
    }

    fn arm(&mut self, delay: Delay, out: &mut Vec<Action>) {
        if !self.is_open && !self.is_armed {
            self.is_armed = true;
            out.push(Action::WakeAt(self.since.after(delay.age)));
        }
    }

    /// Lets out what waits. Tells whether that changes anything.
    pub(super) fn open(&mut self) -> bool {
        let was_closed = !self.is_open;
        self.is_open |= self.held_bytes > 0;
        was_closed && self.is_open
    }

    /// Nothing waits any more.
    pub(super) fn drained(&mut self) {
        self.is_open = self.delay.is_none();
        self.held_bytes = 0;
    }

    /// The timer has rung; what it was set for may have gone long ago.
    pub(super) fn woke(&mut self, now: Nanos, out: &mut Vec<Action>) {
        let Some(delay) = self.delay else { return };
        self.is_armed = false;
        if self.held_bytes > 0 && now.since(self.since) < delay.age {
            return self.arm(delay, out);
        }
        self.open();
    }
}
