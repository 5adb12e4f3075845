//! Relaxed syncs: `fsync` and `fdatasync` return at once. **Weaker durability**: a crash of the machine may
//! take what was synced; a crash of the program takes nothing.
//!
//! Without a parameter syncs are dropped. With `every=TIME` one per file and time is carried out: the
//! first at once, of those that come sooner one is owed, and carried out before the first call on
//! the file after that time, at the latest before a close or when the file is handed on. There is
//! no timer: a program that makes no call leaves what it owes. A sync that fails then fails the next sync or close.
//!
//! It hears syncs before whoever holds bytes, so it stands above; descriptions opened with `O_SYNC`
//! reach no strategy and stay as they are.

use super::null::memory_of;
use super::parameter::{Parameters, duration, unknown};
use super::{Action, Call, Errno, Event, Handle, Outcome, Strategy};
use crate::machine::Machine;
use iolab_vocab::{Nanos, Refusal};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct FsyncRelax {
    /// Without it, no sync is carried out.
    every: Option<Nanos>,
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
    /// Reads `every=1s`.
    pub fn parse(parameters: &Parameters) -> Result<FsyncRelax, Refusal> {
        let mut every = None;
        for (key, value) in parameters {
            match key.as_str() {
                "every" => every = Some(duration(key, value)?),
                _ => return Err(unknown(key, "every, paths, exclude")),
            }
        }
        Ok(FsyncRelax { every, ..FsyncRelax::default() })
    }

    fn is_due(&self, now: Nanos) -> bool {
        let due = |every| self.synced_at.is_none_or(|synced_at| now >= synced_at.after(every));
        self.every.is_some_and(due)
    }

    fn arrived(&mut self, now: Nanos, handle: Handle, call: Call, out: &mut Vec<Action>) {
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
        match self.owed {
            Some(data_only) if is_last || self.is_due(now) => {
                self.owed = None;
                self.under_way = Some(UnderWay::Owed(handle, call));
                let call = Call::Sync { data_only };
                out.push(Action::Perform { handle, call, memory: memory_of(call) });
            }
            _ => self.pass(handle, call, out),
        }
    }

    fn pass(&mut self, handle: Handle, call: Call, out: &mut Vec<Action>) {
        self.under_way = Some(UnderWay::Passed(call));
        out.push(Action::Perform { handle, call, memory: memory_of(call) });
    }

    fn performed(&mut self, now: Nanos, outcome: Outcome, out: &mut Vec<Action>) {
        match self.under_way.take().expect("something was asked of the stage below") {
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
            Event::Woke => unreachable!("relaxed syncs never ask to be woken"),
        }
    }
}

impl Strategy for FsyncRelax {
    fn reads_clock(&self) -> bool {
        self.every.is_some()
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
