//! The discipline of strategies, step by step.
//!
//! **The driver** has one call under way at a time; it tells what came of a `Perform`, or that the
//! time of a `WakeAt` has come, and nothing else meanwhile. **The machine** answers each event by any
//! number of `Copy` and then one of `Perform`, `WakeAt`, `Answer`. Bytes lie in its staging memory or
//! in the memory of the call that arrived, where that moves bytes; a call that goes down has memory
//! for as many bytes as it moves, and nothing moved more than it was asked to. Nobody below knows a
//! description before its opening has gone down.
//!
//! **Work** is begun between calls, one at a time, and goes out of staging memory that stays as it is
//! until the machine is told what became of it; `Await` waits for that, and for nothing else.
//!
//! That a program cannot tell the difference is held against a plain file by the family's conformance
//! suite.

use super::plan::Lane;
use super::{
    Action, At, Call, Counts, Event, Handle, HeldPiece, Holding, Interest, Outcome, Place, Short,
    Strategy, Ticket,
};
use crate::machine::{Checked, Laws};
use iolab_vocab::{Extent, Nanos};

/// One strategy on one file, as far as its discipline goes.
#[derive(Debug)]
pub struct StrategyLaws {
    staging_bytes: u64,
    /// The call under way, and what is awaited for it.
    call: Option<(Call, Awaited)>,
    /// The work under way, and from where in staging memory it goes out.
    work: Option<(Call, u64)>,
    /// The description whose opening has arrived and not gone down.
    opening: Option<Handle>,
}

#[derive(Clone, Copy, Debug)]
enum Awaited {
    Outcome(Call),
    Time(Nanos),
    Work,
}

/// Holds a strategy to its discipline.
pub fn checked(strategy: Box<dyn Strategy>) -> Box<dyn Strategy> {
    let laws = StrategyLaws::of(strategy.staging_bytes());
    Box::new(Checked::new(strategy, laws))
}

/// No transfer moves more than it was asked to.
fn is_possible(call: Call, outcome: Outcome) -> bool {
    let is_transfer = matches!(call, Call::Read { .. } | Call::Write { .. });
    !is_transfer || outcome.is_ok_and(|moved| moved <= call.transfer_bytes()) || outcome.is_err()
}

impl StrategyLaws {
    fn of(staging_bytes: u64) -> StrategyLaws {
        StrategyLaws { staging_bytes, call: None, work: None, opening: None }
    }

    /// The call the event belongs to.
    fn told(&mut self, now: Nanos, event: &Event) -> Result<Call, String> {
        match (*event, self.call) {
            (Event::Arrived { handle, call }, None) => {
                self.opening = matches!(call, Call::Open { .. }).then_some(handle);
                Ok(call)
            }
            (Event::Performed(outcome), Some((call, Awaited::Outcome(below)))) => {
                match is_possible(below, outcome) {
                    true => Ok(call),
                    false => Err(format!("{below:?} came to {outcome:?}")),
                }
            }
            (Event::Woke, Some((call, Awaited::Time(time)))) if now >= time => Ok(call),
            (Event::Ended(outcome), Some((call, Awaited::Work))) => {
                self.end(outcome).map(|()| call)
            }
            (_, under_way) => Err(format!("told while {under_way:?} is under way")),
        }
    }

    fn lies_in_memory(&self, call: Call, place: Place, length: u64) -> bool {
        let (from, most) = match place {
            Place::Caller(from) => (from, call.transfer_bytes()),
            Place::Staging(from) => (from, self.staging_bytes),
            Place::Nowhere => return length == 0,
        };
        from.checked_add(length).is_some_and(|end| end <= most)
    }

    fn copy(&self, call: Call, action: &Action) -> Result<(), String> {
        let Action::Copy { from, to, length } = *action else {
            return Err(format!("{action:?} stands before the end of its batch"));
        };
        if self.goes_out(to, length) {
            return Err(format!("{action:?} changes what is on its way out"));
        }
        match self.lies_in_memory(call, from, length) && self.lies_in_memory(call, to, length) {
            true => Ok(()),
            false => Err(format!("{action:?} leaves the memory there is")),
        }
    }

    /// Whether bytes at that place are those of work under way.
    fn goes_out(&self, place: Place, length: u64) -> bool {
        let (Some((call, from)), Place::Staging(at)) = (self.work, place) else { return false };
        Extent::new(at, length).overlaps(Extent::new(from, call.transfer_bytes()))
    }

    /// Work is begun by these actions, or there is none to do.
    fn begin(&mut self, actions: &[Action]) -> Result<(), String> {
        if let (Some(under_way), _) | (_, Some((under_way, _))) =
            (self.work.map(|it| it.0), self.call)
        {
            return Err(format!("asked for work while {under_way:?} is under way"));
        }
        let Some((last, copies)) = actions.split_last() else { return Ok(()) };
        copies.iter().try_for_each(|copy| self.copy(Call::Flush, copy))?;
        let Action::Perform { call, memory: Place::Staging(from), .. } = *last else {
            return Err(format!("{last:?} is no work out of staging memory"));
        };
        let is_write = matches!(call, Call::Write { .. });
        if !is_write || !self.lies_in_memory(call, Place::Staging(from), call.transfer_bytes()) {
            return Err(format!("{last:?} is no work out of the memory there is"));
        }
        self.work = Some((call, from));
        Ok(())
    }

    /// The work under way came to this.
    fn end(&mut self, outcome: Outcome) -> Result<(), String> {
        match self.work.take() {
            Some((call, _)) if is_possible(call, outcome) => Ok(()),
            Some((call, _)) => Err(format!("{call:?} came to {outcome:?}")),
            None => Err("told of work that was not begun".to_owned()),
        }
    }

    fn conclude(&mut self, call: Call, action: &Action) -> Result<(), String> {
        self.call = match *action {
            Action::Await if self.work.is_none() => {
                return Err("awaits work that was not begun".to_owned());
            }
            Action::Await => Some((call, Awaited::Work)),
            Action::Copy { .. } => return Err("a step ends with a copy".to_owned()),
            Action::Perform { handle, call: below, memory } => {
                if self.opening == Some(handle) {
                    match below {
                        Call::Open { .. } => self.opening = None,
                        _ => return Err(format!("{below:?} goes down before the opening does")),
                    }
                }
                if !self.lies_in_memory(call, memory, below.transfer_bytes()) {
                    return Err(format!("{below:?} goes down with {memory:?}"));
                }
                Some((call, Awaited::Outcome(below)))
            }
            Action::WakeAt(time) => Some((call, Awaited::Time(time))),
            Action::Answer(outcome) if is_possible(call, outcome) => None,
            Action::Answer(outcome) => return Err(format!("{call:?} is answered by {outcome:?}")),
        };
        Ok(())
    }
}

impl Laws for StrategyLaws {
    type Event = Event;
    type Action = Action;

    fn check(&mut self, now: Nanos, event: &Event, actions: &[Action]) -> Result<(), String> {
        let call = self.told(now, event)?;
        let (last, copies) = actions.split_last().ok_or("a step without any action")?;
        copies.iter().try_for_each(|copy| self.copy(call, copy))?;
        self.conclude(call, last)
    }
}

impl<S: Strategy> Strategy for Checked<S, StrategyLaws> {
    fn staging_bytes(&self) -> u64 {
        self.machine.staging_bytes()
    }

    fn holding_bytes(&self) -> u64 {
        self.machine.holding_bytes()
    }

    fn holding(&self) -> Holding {
        self.machine.holding()
    }

    fn held_pieces(&self, show: &mut dyn FnMut(HeldPiece)) {
        self.machine.held_pieces(show);
    }

    fn drained(&mut self, file_bytes: u64) {
        assert!(self.laws.call.is_none(), "drained while {:?} is under way", self.laws.call);
        assert!(self.laws.work.is_none(), "drained while {:?} is under way", self.laws.work);
        self.machine.drained(file_bytes);
    }

    fn begin(&mut self, out: &mut Vec<Action>) {
        let from = out.len();
        self.machine.begin(out);
        if let Err(broken) = self.laws.begin(&out[from..]) {
            panic!("{broken} (on a request for work: {:?})", &out[from..]);
        }
    }

    fn ended(&mut self, outcome: Outcome) {
        assert!(self.laws.call.is_none(), "told of work while {:?} is under way", self.laws.call);
        if let Err(broken) = self.laws.end(outcome) {
            panic!("{broken}");
        }
        self.machine.ended(outcome);
    }

    fn interest(&self) -> Interest {
        self.machine.interest()
    }

    fn passes(&self) -> Interest {
        self.machine.passes()
    }

    fn follow(&mut self, lanes: Vec<Lane>) {
        self.machine.follow(lanes);
    }

    fn join(&mut self, now: Nanos, call: &Call) -> Option<Ticket> {
        assert!(self.laws.call.is_none(), "joined while {:?} is under way", self.laws.call);
        self.machine.join(now, call)
    }

    fn joined(&self, ticket: Ticket) -> Option<Outcome> {
        self.machine.joined(ticket)
    }

    fn note(&mut self, call: &Call) {
        self.machine.note(call);
    }

    fn counts(&self) -> Option<(&str, &Counts)> {
        self.machine.counts()
    }

    fn reads_clock(&self) -> bool {
        self.machine.reads_clock()
    }

    fn keeps_bytes(&self) -> bool {
        self.machine.keeps_bytes()
    }

    fn held_bytes(&self) -> u64 {
        self.machine.held_bytes()
    }

    fn short(&mut self, handle: Handle, call: &Call) -> Short {
        assert!(self.laws.call.is_none(), "a call came while {:?} is under way", self.laws.call);
        let short = self.machine.short(handle, call);
        let is_transfer = matches!(
            call,
            Call::Read { at: At::Position, .. } | Call::Write { at: At::Position, .. }
        );
        assert!(is_transfer || !matches!(short, Short::At(_)), "{call:?} has no place to change");
        short
    }

    fn moved(&mut self, handle: Handle, bytes: u64) {
        self.machine.moved(handle, bytes);
    }

    fn absorb(&mut self, handle: Handle, at: At, length: u64) -> Option<u64> {
        assert!(self.laws.call.is_none(), "a write came while {:?} is under way", self.laws.call);
        let before = (self.machine.interest(), self.machine.held_bytes() > 0);
        let place = self.machine.absorb(handle, at, length);
        let after = (self.machine.interest(), self.machine.held_bytes() > 0);
        assert_eq!(before, after, "a write was absorbed that changes what is heard");
        let fits = |place: u64| place + length <= self.laws.staging_bytes;
        assert!(place.is_none_or(fits), "{length} B at {place:?} leave the staging memory");
        let goes_out = |place: u64| self.laws.goes_out(Place::Staging(place), length);
        assert!(!place.is_some_and(goes_out), "{length} B at {place:?} are on their way out");
        place
    }

    fn serve(&mut self, handle: Handle, at: At, length: u64) -> Option<u64> {
        assert!(self.laws.call.is_none(), "a read came while {:?} is under way", self.laws.call);
        let place = self.machine.serve(handle, at, length);
        let fits = |place: u64| place + length <= self.laws.staging_bytes;
        assert!(place.is_none_or(fits), "{length} B at {place:?} leave the staging memory");
        place
    }
}

#[cfg(test)]
mod tests {
    use super::super::Errno;
    use super::*;

    const HANDLE: Handle = Handle(0);
    const READ: Call = Call::Read { at: At::Position, length: 10 };
    const WRITE: Call = Call::Write { at: At::Position, length: 10 };

    fn arrived(call: Call) -> Event {
        Event::Arrived { handle: HANDLE, call }
    }

    fn perform(call: Call, memory: Place) -> Action {
        Action::Perform { handle: HANDLE, call, memory }
    }

    fn copy(from: Place, to: Place, length: u64) -> Action {
        Action::Copy { from, to, length }
    }

    /// What a strategy with 100 B of staging memory breaks by these steps.
    fn broken(steps: &[(u64, Event, &[Action])]) -> Option<String> {
        let mut laws = StrategyLaws::of(100);
        steps.iter().find_map(|(now, event, out)| laws.check(Nanos(*now), event, out).err())
    }

    #[test]
    fn a_call_that_waits_goes_down_in_parts_and_is_answered_breaks_nothing() {
        let (caller, staging) = (Place::Caller(0), Place::Staging(90));
        let steps: [(u64, Event, &[Action]); 4] = [
            (0, arrived(WRITE), &[copy(caller, staging, 10), Action::WakeAt(Nanos(7))]),
            (7, Event::Woke, &[perform(WRITE, staging)]),
            (8, Event::Performed(Ok(10)), &[perform(Call::Flush, Place::Nowhere)]),
            (9, Event::Performed(Err(Errno(5))), &[Action::Answer(Ok(10))]),
        ];
        assert_eq!(broken(&steps), None);
        assert_eq!(broken(&[steps[0], steps[1], steps[2], steps[3], steps[0]]), None);
    }

    #[test]
    fn work_is_one_write_out_of_staging_memory_that_stays_as_it_is_until_it_is_done() {
        let laws = || StrategyLaws::of(100);
        let (caller, staging) = (Place::Caller(0), Place::Staging(40));
        let work = [copy(Place::Staging(0), staging, 10), perform(WRITE, staging)];
        let answer = Action::Answer(Ok(10));
        for (actions, law) in [
            (&[answer][..], "no work"),
            (&[perform(WRITE, caller)], "no work"),
            (&[perform(READ, staging)], "no work"),
            (&[perform(WRITE, Place::Staging(95))], "the memory there is"),
            (&[copy(caller, staging, 1), perform(WRITE, staging)], "leaves the memory"),
        ] {
            let told = laws().begin(actions).unwrap_err();
            assert!(told.contains(law), "{told}");
        }
        let mut laws = laws();
        assert!(laws.end(Ok(0)).unwrap_err().contains("not begun"));
        assert_eq!(laws.begin(&[]), Ok(()));
        assert_eq!(laws.begin(&work), Ok(()));
        assert!(laws.begin(&work).unwrap_err().contains("under way"));
        let step = |laws: &mut StrategyLaws, event, actions: &[Action]| {
            laws.check(Nanos(0), &event, actions).err().unwrap_or_default()
        };
        let beside = [copy(caller, Place::Staging(50), 10), answer];
        assert_eq!(step(&mut laws, arrived(WRITE), &beside), "");
        let into_it = [copy(caller, Place::Staging(49), 1), answer];
        assert!(step(&mut laws, arrived(WRITE), &into_it).contains("on its way out"));
        laws.call = None;
        assert_eq!(step(&mut laws, arrived(WRITE), &[Action::Await]), "");
        assert!(step(&mut laws, Event::Woke, &[answer]).contains("told while"));
        assert!(step(&mut laws, Event::Ended(Ok(11)), &[answer]).contains("came to"));
        laws.work = Some((WRITE, 40));
        assert_eq!(step(&mut laws, Event::Ended(Ok(3)), &[answer]), "");
        let awaits_nothing = step(&mut laws, arrived(WRITE), &[Action::Await]);
        assert!(awaits_nothing.contains("not begun"), "{awaits_nothing}");
    }

    #[test]
    fn a_description_is_used_once_its_opening_has_gone_down() {
        let access = super::super::Access::default();
        let open = Call::Open { access, file_bytes: 0, position: 0 };
        let (nowhere, sync) = (Place::Nowhere, Call::Sync { data_only: false });
        let other = Action::Perform { handle: Handle(1), call: sync, memory: nowhere };
        let steps: [(u64, Event, &[Action]); 3] = [
            (0, arrived(open), &[other]),
            (0, Event::Performed(Ok(0)), &[perform(open, nowhere)]),
            (0, Event::Performed(Ok(0)), &[perform(sync, nowhere)]),
        ];
        assert_eq!(broken(&steps), None);
        let told = broken(&[(0, arrived(open), &[perform(sync, nowhere)])]).expect("too early");
        assert!(told.contains("before the opening"), "{told}");
    }

    #[test]
    fn each_way_to_leave_the_discipline_is_seen_and_named() {
        let (caller, staging) = (Place::Caller(0), Place::Staging(0));
        let answer = Action::Answer(Ok(0));
        let machines: [(&[Action], &str); 9] = [
            (&[], "without any action"),
            (&[answer, answer], "before the end"),
            (&[copy(caller, staging, 1)], "ends with a copy"),
            (&[copy(caller, staging, 11), answer], "leaves the memory"),
            (&[copy(Place::Staging(95), caller, 10), answer], "leaves the memory"),
            (&[copy(Place::Nowhere, caller, 1), answer], "leaves the memory"),
            (&[perform(READ, Place::Nowhere)], "goes down"),
            (&[perform(READ, Place::Caller(1))], "goes down"),
            (&[Action::Answer(Ok(11))], "is answered by"),
        ];
        for (actions, law) in machines {
            let told = broken(&[(0, arrived(READ), actions)]).expect(law);
            assert!(told.contains(law), "{told}");
        }
        let down: (u64, Event, &[Action]) = (0, arrived(READ), &[perform(READ, caller)]);
        let waits: (u64, Event, &[Action]) = (0, arrived(READ), &[Action::WakeAt(Nanos(7))]);
        let drivers = [
            (down, 0, arrived(READ)),
            (down, 0, Event::Woke),
            (down, 0, Event::Performed(Ok(11))),
            (waits, 6, Event::Woke),
            (waits, 7, Event::Performed(Ok(0))),
        ];
        for (first, now, event) in drivers {
            assert!(broken(&[first, (now, event, &[answer])]).is_some(), "{event:?} at {now}");
        }
    }
}
