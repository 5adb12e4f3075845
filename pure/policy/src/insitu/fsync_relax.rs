//! Relaxed syncs. With `join=TIME` one `fsync` or `fdatasync` is made for all who asked for one within that
//! time ([`super::rounds`]), and each returns when it has been: durability is as it was. Otherwise they return
//! at once. **Weaker durability**: a crash of the machine may take what was synced; a crash of the program
//! takes nothing.
//!
//! Without a parameter, or with `syncs=drop`, syncs are dropped. With `every=TIME` one per file and time is carried out: the
//! first at once, of those that come sooner one is owed, and carried out before the first call on
//! the file after that time, at the latest before a close or when the file is handed on. There is
//! no timer: a program that makes no call leaves what it owes. A sync that fails then fails the next sync or close.
//!
//! It hears syncs before whoever holds bytes, so it stands above; descriptions opened with `O_SYNC`
//! reach no strategy and stay as they are.

use super::null::memory_of;
use super::parameter::{Parameters, duration, unknown};
use super::rounds::{Rounds, Ticket};
use super::{Action, Call, Errno, Event, Handle, Interest, Outcome, Strategy};
use crate::machine::Machine;
use iolab_vocab::{Nanos, Refusal};

/// Who writes a minute where a second was meant is told.
const JOIN_MAX: Nanos = Nanos(10_000_000_000);

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct FsyncRelax {
    /// Without it, no sync is carried out that is not joined.
    every: Option<Nanos>,
    /// All syncs are joined.
    rounds: Option<Rounds>,
    synced_at: Option<Nanos>,
    /// A sync was answered and not carried out; whether data alone would do.
    owed: Option<bool>,
    /// Of a sync that was owed; no call has reported it yet.
    failure: Option<Errno>,
    under_way: Option<UnderWay>,
}

/// What is under way below.
#[derive(Clone, Copy, Debug)]
enum UnderWay {
    /// The program's own call.
    Passed(Call),
    /// A sync that was owed; then this call goes on.
    Owed(Handle, Call),
}

impl FsyncRelax {
    /// Reads `join=10ms`, `every=1s` or `syncs=drop`.
    pub fn parse(parameters: &Parameters) -> Result<FsyncRelax, Refusal> {
        let mut relax = FsyncRelax::default();
        for (key, value) in parameters {
            match (key.as_str(), value.as_str()) {
                ("every", _) => relax.every = Some(duration(key, value)?),
                ("join", _) => relax.rounds = Some(Rounds::of(short_wait(key, value)?)),
                ("syncs", "drop") => {}
                ("syncs", _) => {
                    return Err(Refusal {
                        message: format!("syncs: `{value}` is nothing that syncs can do"),
                        hint: "write syncs=drop, join=10ms or every=1s".to_owned(),
                    });
                }
                _ => return Err(unknown(key, "join, every, syncs, paths, exclude")),
            }
        }
        let ways = ["join", "every", "syncs"];
        let mut given = parameters.iter().map(|it| &*it.0).filter(|key| ways.contains(key));
        match (given.next(), given.next()) {
            (Some(one), Some(other)) => Err(Refusal {
                message: format!("`{one}` and `{other}` are two ways to treat syncs"),
                hint: "choose one of join=10ms, every=1s and syncs=drop".to_owned(),
            }),
            _ => Ok(relax),
        }
    }

    fn is_due(&self, now: Nanos) -> bool {
        let due = |every| self.synced_at.is_none_or(|synced_at| now >= synced_at.after(every));
        self.every.is_some_and(due)
    }

    fn arrived(&mut self, now: Nanos, handle: Handle, call: Call, out: &mut Vec<Action>) {
        if self.rounds.is_some() {
            return self.arrived_to_join(handle, call, out);
        }
        if let Call::Sync { data_only } = call {
            let data_only = data_only && self.owed.unwrap_or(true);
            if self.is_due(now) {
                self.owed = None;
                return self.pass(handle, Call::Sync { data_only }, out);
            }
            self.owed = self.every.map(|_| data_only);
            return out.push(Action::Answer(self.told(Ok(0))));
        }
        let is_last = matches!(call, Call::Close | Call::Settle);
        // By a description that is being opened nothing can be made durable yet.
        let is_open = !matches!(call, Call::Open { .. });
        match self.owed {
            Some(data_only) if is_last || is_open && self.is_due(now) => {
                self.owed = None;
                self.sync_first(handle, call, data_only, out);
            }
            _ => self.pass(handle, call, out),
        }
    }

    /// A sync is made for all who wait for one; who closes or hands a file on does not leave them alone.
    fn arrived_to_join(&mut self, handle: Handle, call: Call, out: &mut Vec<Action>) {
        let awaited = self.rounds.as_ref().and_then(Rounds::awaited);
        match (call, awaited) {
            (Call::Sync { data_only }, _) => {
                let data_only = data_only && awaited.unwrap_or(true);
                self.pass(handle, Call::Sync { data_only }, out);
            }
            (Call::Close | Call::Settle, Some(data_only)) => {
                self.sync_first(handle, call, data_only, out);
            }
            _ => self.pass(handle, call, out),
        }
    }

    fn sync_first(&mut self, handle: Handle, call: Call, data_only: bool, out: &mut Vec<Action>) {
        self.under_way = Some(UnderWay::Owed(handle, call));
        let call = Call::Sync { data_only };
        out.push(Action::Perform { handle, call, memory: memory_of(call) });
    }

    fn pass(&mut self, handle: Handle, call: Call, out: &mut Vec<Action>) {
        self.under_way = Some(UnderWay::Passed(call));
        out.push(Action::Perform { handle, call, memory: memory_of(call) });
    }

    fn performed(&mut self, now: Nanos, outcome: Outcome, out: &mut Vec<Action>) {
        let under_way = self.under_way.take().expect("something was asked of the stage below");
        if let Some(rounds) = &mut self.rounds {
            return match under_way {
                UnderWay::Owed(handle, call) => {
                    rounds.end(outcome);
                    self.pass(handle, call, out);
                }
                UnderWay::Passed(call) => {
                    if let Call::Sync { .. } = call {
                        rounds.end(outcome);
                    }
                    out.push(Action::Answer(outcome));
                }
            };
        }
        match under_way {
            UnderWay::Owed(handle, call) => {
                self.synced_at = Some(now);
                self.failure = self.failure.or(outcome.err());
                self.pass(handle, call, out);
            }
            UnderWay::Passed(call) => {
                let outcome = match call {
                    Call::Sync { .. } => {
                        self.synced_at = Some(now);
                        self.told(outcome)
                    }
                    Call::Close => self.told(outcome),
                    _ => outcome,
                };
                out.push(Action::Answer(outcome));
            }
        }
    }

    /// The outcome of a sync or close, or the failure of a sync that was owed.
    fn told(&mut self, outcome: Outcome) -> Outcome {
        match outcome {
            Ok(value) => self.failure.take().map_or(Ok(value), Err),
            failed => failed,
        }
    }
}

impl Machine for FsyncRelax {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Arrived { handle, call } => self.arrived(now, handle, call, out),
            Event::Performed(outcome) => self.performed(now, outcome, out),
            Event::Woke | Event::Ended(_) => unreachable!("relaxed syncs never ask to be woken"),
        }
    }
}

/// A program waits for so long.
fn short_wait(key: &str, value: &str) -> Result<Nanos, Refusal> {
    let time = duration(key, value)?;
    match time <= JOIN_MAX {
        true => Ok(time),
        false => Err(Refusal {
            message: format!("{key}: {value} is long for a program to wait at each sync"),
            hint: format!("choose up to 10s, for example {key}=10ms"),
        }),
    }
}

impl Strategy for FsyncRelax {
    fn interest(&self) -> Interest {
        const ENDS: Interest = Interest::SYNC.and(Interest::CLOSE).and(Interest::SETTLE);
        match (&self.rounds, self.every) {
            (Some(_), _) => ENDS,
            (None, Some(_)) => Interest::EVERYTHING,
            (None, None) => Interest::SYNC,
        }
    }

    fn reads_clock(&self) -> bool {
        self.every.is_some()
    }

    fn join(&mut self, now: Nanos, call: &Call) -> Option<Ticket> {
        match (&mut self.rounds, call) {
            (Some(rounds), Call::Sync { data_only }) => Some(rounds.ask(now, *data_only)),
            _ => None,
        }
    }

    fn joined(&self, ticket: Ticket) -> Option<Outcome> {
        self.rounds.as_ref()?.outcome(ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insitu::{At, Place};

    const HANDLE: Handle = Handle(0);
    const SYNC: Call = Call::Sync { data_only: false };
    const DATA_SYNC: Call = Call::Sync { data_only: true };
    const WRITE: Call = Call::Write { at: At::Position, length: 8 };

    fn relaxed(parameters: &[(&str, &str)]) -> FsyncRelax {
        let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        FsyncRelax::parse(&parameters.iter().map(owned).collect::<Vec<_>>()).unwrap()
    }

    /// What goes down for a call at that millisecond, each with this outcome, and the answer.
    fn call(
        relax: &mut FsyncRelax,
        ms: u64,
        call: Call,
        below: &[Outcome],
    ) -> (Vec<Call>, Outcome) {
        let (mut down, mut outcomes) = (Vec::new(), below.iter());
        let mut event = Event::Arrived { handle: HANDLE, call };
        loop {
            let mut out = Vec::new();
            relax.step(Nanos(ms * 1_000_000), event, &mut out);
            match out[..] {
                [Action::Answer(outcome)] => {
                    assert_eq!(outcomes.next(), None, "{call:?}: {down:?}");
                    return (down, outcome);
                }
                [Action::Perform { handle: HANDLE, call, memory }] => {
                    assert_eq!(memory == Place::Caller(0), call.transfer_bytes() > 0);
                    down.push(call);
                    event = Event::Performed(*outcomes.next().expect("as many as asked for"));
                }
                _ => panic!("{out:?}"),
            }
        }
    }

    #[test]
    fn without_a_time_no_sync_goes_down_and_all_else_does() {
        let mut relax = relaxed(&[]);
        assert!(!relax.reads_clock());
        assert_eq!(call(&mut relax, 0, SYNC, &[]), (vec![], Ok(0)));
        for other in [WRITE, Call::Settle, Call::Close] {
            assert_eq!(call(&mut relax, 0, other, &[Ok(0)]), (vec![other], Ok(0)));
        }
    }

    #[test]
    fn a_way_to_treat_syncs_is_chosen_once_and_within_reason() {
        let refused = |parameters: &[(&str, &str)]| {
            let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
            FsyncRelax::parse(&parameters.iter().map(owned).collect::<Vec<_>>()).unwrap_err()
        };
        assert!(refused(&[("join", "1s"), ("every", "1s")]).message.contains("`join` and `every`"));
        assert!(refused(&[("join", "1s"), ("syncs", "drop")]).message.contains("two ways"));
        assert!(refused(&[("join", "11s")]).message.contains("11s is long"));
        assert!(refused(&[("syncs", "async")]).message.contains("`async`"));
        assert!(!relaxed(&[("syncs", "drop")]).interest().hears(Interest::TRANSFERS));
    }

    #[test]
    fn one_sync_is_made_for_all_who_asked_and_its_outcome_told_to_each() {
        let full = Err(Errno(28));
        for below in [Ok(0), full] {
            let mut relax = relaxed(&[("join", "10ms")]);
            let first = relax.join(Nanos(0), &DATA_SYNC).unwrap();
            let second = relax.join(Nanos(5), &SYNC).unwrap();
            assert_eq!((relax.joined(first), relax.joined(second)), (None, None));
            assert_eq!(call(&mut relax, 10, WRITE, &[Ok(8)]), (vec![WRITE], Ok(8)));
            assert_eq!(relax.joined(second), None, "a write makes nothing durable");
            assert_eq!(call(&mut relax, 10, DATA_SYNC, &[below]), (vec![SYNC], below));
            assert_eq!((relax.joined(first), relax.joined(second)), (Some(below), Some(below)));
        }
    }

    #[test]
    fn who_closes_or_hands_a_file_on_syncs_for_who_still_waits() {
        let full = Err(Errno(28));
        for last in [Call::Close, Call::Settle] {
            let mut relax = relaxed(&[("join", "10ms")]);
            let ticket = relax.join(Nanos(0), &DATA_SYNC).unwrap();
            assert_eq!(call(&mut relax, 2, last, &[full, Ok(0)]), (vec![DATA_SYNC, last], Ok(0)));
            assert_eq!(relax.joined(ticket), Some(full));
            assert_eq!(call(&mut relax, 3, last, &[Ok(0)]), (vec![last], Ok(0)));
        }
    }

    #[test]
    fn one_sync_goes_down_per_time_and_what_is_owed_with_the_next_call() {
        let mut relax = relaxed(&[("every", "10ms")]);
        assert_eq!(call(&mut relax, 0, DATA_SYNC, &[Ok(0)]), (vec![DATA_SYNC], Ok(0)));
        assert_eq!(call(&mut relax, 1, SYNC, &[]), (vec![], Ok(0)));
        assert_eq!(call(&mut relax, 2, DATA_SYNC, &[]), (vec![], Ok(0)));
        assert_eq!(call(&mut relax, 9, WRITE, &[Ok(8)]), (vec![WRITE], Ok(8)));
        assert_eq!(call(&mut relax, 10, WRITE, &[Ok(0), Ok(8)]), (vec![SYNC, WRITE], Ok(8)));
        assert_eq!(call(&mut relax, 11, WRITE, &[Ok(8)]), (vec![WRITE], Ok(8)));
        assert_eq!(call(&mut relax, 12, SYNC, &[]), (vec![], Ok(0)));
        assert_eq!(call(&mut relax, 20, DATA_SYNC, &[Ok(0)]), (vec![SYNC], Ok(0)));
    }

    #[test]
    fn who_closes_or_hands_a_file_on_pays_what_is_owed() {
        for last in [Call::Close, Call::Settle] {
            let mut relax = relaxed(&[("every", "10ms")]);
            _ = call(&mut relax, 0, SYNC, &[Ok(0)]);
            _ = call(&mut relax, 1, DATA_SYNC, &[]);
            assert_eq!(call(&mut relax, 2, last, &[Ok(0), Ok(0)]), (vec![DATA_SYNC, last], Ok(0)));
            assert_eq!(call(&mut relax, 3, last, &[Ok(0)]), (vec![last], Ok(0)));
        }
    }

    #[test]
    fn a_sync_that_was_owed_and_failed_fails_the_next_sync_or_close() {
        let full = Err(Errno(28));
        for next in [SYNC, Call::Close] {
            let mut relax = relaxed(&[("every", "10ms")]);
            _ = call(&mut relax, 0, SYNC, &[Ok(0)]);
            _ = call(&mut relax, 1, SYNC, &[]);
            assert_eq!(call(&mut relax, 20, WRITE, &[full, Ok(8)]).1, Ok(8));
            let below: &[Outcome] = if next == SYNC { &[] } else { &[Ok(0)] };
            assert_eq!(call(&mut relax, 21, next, below).1, full);
            assert_eq!(call(&mut relax, 40, SYNC, &[Ok(0)]).1, Ok(0));
        }
        let mut relax = relaxed(&[("every", "10ms")]);
        _ = call(&mut relax, 0, SYNC, &[Ok(0)]);
        _ = call(&mut relax, 1, SYNC, &[]);
        assert_eq!(call(&mut relax, 2, Call::Close, &[full, Ok(0)]).1, full);
    }
}
