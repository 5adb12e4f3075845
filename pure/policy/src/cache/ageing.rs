//! Ageing between reads and writes: how long either may be passed over.
//!
//! By itself reads go first and memory goes to whoever comes. A steady stream of reads then
//! starves the writes, and writes that fill memory starve a read that needs some. With ageing,
//! writes that waited longer go first; a read that waited longer for memory keeps further writes
//! out; and a packet refused for longer keeps further reads from starting.

use iolab_vocab::Nanos;

#[derive(Debug)]
pub(super) struct Ageing {
    limit: Option<Nanos>,
    /// Since when the reads, the writes, the refused have gone without service.
    read: Option<Nanos>,
    write: Option<Nanos>,
    refusal: Option<Nanos>,
}

impl Ageing {
    pub(super) fn new(limit: Option<Nanos>) -> Ageing {
        Ageing { limit, read: None, write: None, refusal: None }
    }

    fn is_overdue(&self, since: Option<Nanos>, now: Nanos) -> bool {
        let (Some(limit), Some(since)) = (self.limit, since) else { return false };
        now.since(since) >= limit
    }

    pub(super) fn read_waits(&mut self, now: Nanos) {
        self.read.get_or_insert(now);
    }

    pub(super) fn write_waits(&mut self, now: Nanos) {
        self.write.get_or_insert(now);
    }

    pub(super) fn read_started(&mut self, now: Nanos, more_wait: bool) {
        self.read = more_wait.then_some(now);
    }

    pub(super) fn write_started(&mut self, now: Nanos, more_wait: bool) {
        self.write = more_wait.then_some(now);
    }

    pub(super) fn refused(&mut self, now: Nanos) {
        self.refusal.get_or_insert(now);
    }

    pub(super) fn admitted(&mut self) {
        self.refusal = None;
    }

    /// Whether a read has been passed over too long, and no refused packet longer.
    pub(super) fn is_read_overdue(&self, now: Nanos) -> bool {
        let is_refusal_older = self.is_overdue(self.refusal, now) && self.refusal < self.read;
        self.is_overdue(self.read, now) && !is_refusal_older
    }

    /// Whether a packet has been refused too long, and no read been passed over longer.
    pub(super) fn is_refusal_overdue(&self, now: Nanos) -> bool {
        let is_read_older = self.is_overdue(self.read, now) && self.read <= self.refusal;
        self.is_overdue(self.refusal, now) && !is_read_older
    }

    /// Whether writes go first: they are overdue, and no read is longer so.
    pub(super) fn is_write_first(&self, now: Nanos) -> bool {
        let is_read_older = self.is_overdue(self.read, now) && self.read <= self.write;
        self.is_overdue(self.write, now) && !is_read_older
    }
}
