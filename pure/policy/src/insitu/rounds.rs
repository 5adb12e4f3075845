//! Syncs that are joined: one for all who asked within a time on one file, each of whom returns when it has
//! been made. **Nothing is given up**: who is told that bytes are safe had written them before that sync
//! began.
//!
//! The first who asks opens a round, which is open for so long; each who asks meanwhile takes a ticket of the
//! same round and waits by himself. Whoever comes back first makes one sync for the round, which ends it;
//! the others find what it came to. Rounds follow each other, so what the last failure was is all that has
//! to be kept: a waiter may be told of a failure after his own round, never of less than his own.

use super::{Errno, Outcome};
use iolab_vocab::Nanos;

/// A place among those who wait for one sync of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Which sync, counted from 1.
    pub round: u64,
    /// When to come back.
    pub until: Nanos,
}

/// The rounds of one file.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    time: Nanos,
    /// How many rounds have ended.
    ended: u64,
    open: Option<Open>,
    /// The last round of which the sync failed, and why.
    failed: Option<(u64, Errno)>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    until: Nanos,
    /// Data alone would do for all.
    data_only: bool,
}

impl Rounds {
    /// Rounds that are open for so long.
    pub(super) fn of(time: Nanos) -> Rounds {
        Rounds { time, ended: 0, open: None, failed: None }
    }

    /// Somebody asks for a sync.
    pub(super) fn ask(&mut self, now: Nanos, data_only: bool) -> Ticket {
        let until = now.after(self.time);
        let open = self.open.get_or_insert(Open { until, data_only });
        open.data_only &= data_only;
        Ticket { round: self.ended + 1, until: open.until }
    }

    /// What came of the sync for that ticket, once it has been made.
    pub(super) fn outcome(&self, ticket: Ticket) -> Option<Outcome> {
        match self.failed {
            _ if ticket.round > self.ended => None,
            Some((round, errno)) if round >= ticket.round => Some(Err(errno)),
            _ => Some(Ok(0)),
        }
    }

    /// Whether somebody waits, and data alone would do for all of them.
    pub(super) fn awaited(&self) -> Option<bool> {
        self.open.map(|open| open.data_only)
    }

    /// A sync that began after all of the open round had asked has come to this.
    pub(super) fn end(&mut self, outcome: Outcome) {
        if self.open.take().is_some() {
            self.ended += 1;
            if let Err(errno) = outcome {
                self.failed = Some((self.ended, errno));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EIO: Errno = Errno(5);

    #[test]
    fn who_asks_while_a_round_is_open_shares_its_sync_and_who_asks_later_does_not() {
        let mut rounds = Rounds::of(Nanos(10));
        let (first, second) = (rounds.ask(Nanos(100), true), rounds.ask(Nanos(105), false));
        assert_eq!(first, Ticket { round: 1, until: Nanos(110) });
        assert_eq!(second, first);
        assert_eq!((rounds.outcome(first), rounds.awaited()), (None, Some(false)));
        rounds.end(Ok(0));
        assert_eq!((rounds.outcome(first), rounds.awaited()), (Some(Ok(0)), None));
        let third = rounds.ask(Nanos(106), true);
        assert_eq!(third, Ticket { round: 2, until: Nanos(116) });
        assert_eq!(rounds.outcome(third), None);
    }

    #[test]
    fn a_failure_is_told_to_its_round_and_to_who_still_waits_of_older_ones_but_to_none_after_it() {
        let mut rounds = Rounds::of(Nanos(10));
        let tickets: Vec<Ticket> = [Ok(0), Err(EIO), Ok(0)]
            .into_iter()
            .map(|outcome| {
                let ticket = rounds.ask(Nanos(0), true);
                rounds.end(outcome);
                ticket
            })
            .collect();
        let told: Vec<_> = tickets.into_iter().map(|ticket| rounds.outcome(ticket)).collect();
        assert_eq!(told, [Some(Err(EIO)), Some(Err(EIO)), Some(Ok(0))]);
    }

    #[test]
    fn a_sync_nobody_waits_for_ends_no_round() {
        let mut rounds = Rounds::of(Nanos(10));
        rounds.end(Err(EIO));
        assert_eq!(rounds.ask(Nanos(0), true).round, 1);
    }
}
