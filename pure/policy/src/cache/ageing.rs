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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_waited_for_the_limit_is_overdue_and_of_two_the_older_goes_first() {
        let ageing = |read: u64, write: u64, refusal: u64| {
            let mut ageing = Ageing::new(Some(Nanos(10)));
            ageing.read_waits(Nanos(read));
            ageing.write_waits(Nanos(write));
            ageing.refused(Nanos(refusal));
            ageing
        };
        let alone = ageing(100, 3, 100);
        assert_eq!([12, 13].map(|now| alone.is_write_first(Nanos(now))), [false, true]);
        // Since when a read, a write and a refused packet wait; who is overdue at 20.
        let cases = [
            ((3, 5, 9), (true, false, false)),
            ((5, 3, 9), (true, true, false)),
            ((5, 5, 5), (true, false, false)),
            ((5, 9, 3), (false, false, true)),
            ((5, 9, 4), (false, false, true)),
            ((11, 5, 11), (false, true, false)),
        ];
        for ((read, write, refusal), expected) in cases {
            let (ageing, now) = (ageing(read, write, refusal), Nanos(20));
            let found = (
                ageing.is_read_overdue(now),
                ageing.is_write_first(now),
                ageing.is_refusal_overdue(now),
            );
            assert_eq!(found, expected, "{read} {write} {refusal}");
        }
    }

    #[test]
    fn being_served_begins_the_wait_anew_and_without_a_limit_nobody_is_overdue() {
        let mut ageing = Ageing::new(Some(Nanos(10)));
        ageing.write_waits(Nanos(0));
        ageing.write_waits(Nanos(5));
        assert!(ageing.is_write_first(Nanos(10)), "the oldest counts");
        ageing.write_started(Nanos(10), true);
        assert!(!ageing.is_write_first(Nanos(19)) && ageing.is_write_first(Nanos(20)));
        ageing.write_started(Nanos(20), false);
        ageing.refused(Nanos(20));
        assert!(!ageing.is_write_first(Nanos(99)) && ageing.is_refusal_overdue(Nanos(30)));
        ageing.admitted();
        assert!(!ageing.is_refusal_overdue(Nanos(99)));
        let mut never = Ageing::new(None);
        never.write_waits(Nanos(0));
        assert!(!never.is_write_first(Nanos(u64::MAX)));
    }
}
