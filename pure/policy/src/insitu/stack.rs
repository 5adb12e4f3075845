//! Strategies on top of each other, as one machine: what one stage performs arrives at the next.
//!
//! The stack turns each stage's relative places into absolute ones, so a driver only has to know
//! the program's memory and one staging area per stage. Stages that need not hear a call are gone
//! around. Cost per event: the stages that hear it, no allocation once the scratch vectors have grown.

use super::{
    Action, At, Call, Counts, Event, Handle, HeldPiece, Holding, Interest, Outcome, Place, Short,
    Strategy, Ticket, checked,
};
use crate::machine::Machine;
use iolab_vocab::Nanos;
use std::ops::Range;

/// An absolute place: the program's own memory, or the staging memory of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// Byte of the memory of the program's call.
    Program(u64),
    /// Byte of the staging memory of stage `stage` (0 is the top).
    Staging {
        /// Which stage.
        stage: u32,
        /// Which byte.
        offset: u64,
    },
    /// No bytes move.
    Nowhere,
}

impl Slot {
    /// Where the bytes of a program's own call lie.
    pub fn of(call: &Call) -> Slot {
        match call {
            Call::Read { .. } | Call::Write { .. } => Slot::Program(0),
            _ => Slot::Nowhere,
        }
    }
}

/// What the driver is to do. The same discipline as for a single stage: `Copy`s, then exactly one
/// of the others. The sequence of commands is what a conformance test compares between drivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Command {
    /// Copy bytes now.
    Copy {
        /// From there.
        from: Slot,
        /// To there.
        to: Slot,
        /// This many.
        length: u64,
    },
    /// Carry out this call on the real (or simulated) file and feed back its outcome.
    Perform {
        /// On which description.
        handle: Handle,
        /// What.
        call: Call,
        /// Where the bytes lie.
        memory: Slot,
    },
    /// Feed back `Woke` at that time.
    WakeAt(Nanos),
    /// Feed back `Ended` when the work is done that was begun ([`Stack::begin`]).
    Await,
    /// The program's call is over.
    Answer(Outcome),
}

/// What a stack would have done while no call waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// Copy these bytes now: from, to, how many.
    pub copies: Vec<(Slot, Slot, u64)>,
    /// Then carry this out, in its own time, on this description.
    pub handle: Handle,
    /// What.
    pub call: Call,
    /// Where the bytes lie, which stay as they are until then.
    pub memory: Slot,
}

/// A stack of strategies on one file. At most one call of the program is under way at a time.
pub struct Stack {
    stages: Vec<Stage>,
    /// The stage that waits for `Performed` or `Woke`; `None` when the program does, no stage being
    /// asked.
    waiting: Option<usize>,
    /// The stage whose work has been begun.
    working: Option<usize>,
    actions: Vec<Action>,
    pub(super) commands: Vec<Command>,
    reads_clock: bool,
    /// What any stage wants to hear.
    interest: Interest,
    /// The part of it that some stage has to be stepped for.
    needs: Interest,
    /// Whether any stage holds something.
    holds: bool,
    /// Whether any stage counts what comes by.
    counts: bool,
}

struct Stage {
    strategy: Box<dyn Strategy>,
    interest: Interest,
    /// The part of it that it has to be stepped for.
    needs: Interest,
    holds: bool,
    counts: bool,
    /// The stage that asked for the call that arrived here; `None` for the program.
    above: Option<usize>,
    /// Where the memory of the call that arrived here begins.
    caller: Slot,
}

impl Stack {
    /// A stack with `strategies[0]` on top. It must not be empty: use [`super::Null`].
    pub fn new(strategies: Vec<Box<dyn Strategy>>) -> Stack {
        assert!(!strategies.is_empty(), "a stack needs a stage; the null strategy is one");
        let reads_clock = strategies.iter().any(|strategy| strategy.reads_clock());
        let stage = |strategy: Box<dyn Strategy>| Stage {
            interest: strategy.interest(),
            needs: strategy.interest().without(strategy.passes()),
            holds: strategy.held_bytes() > 0,
            counts: strategy.counts().is_some(),
            above: None,
            caller: Slot::Nowhere,
            strategy: if cfg!(debug_assertions) { checked(strategy) } else { strategy },
        };
        let stages: Vec<Stage> = strategies.into_iter().map(stage).collect();
        let mut stack = Stack {
            counts: stages.iter().any(|stage| stage.counts),
            stages,
            waiting: None,
            working: None,
            actions: Vec::with_capacity(16),
            commands: Vec::with_capacity(32),
            reads_clock,
            interest: Interest::NOTHING,
            needs: Interest::NOTHING,
            holds: false,
        };
        stack.take_note();
        stack
    }

    /// What any stage wants to hear as of now.
    pub fn interest(&self) -> Interest {
        self.interest
    }

    /// Whether a call would come out at the bottom as it is and be answered as it came out, nothing
    /// in any stage being different after it.
    #[inline]
    pub fn passes(&self, call: &Call) -> bool {
        !self.needs.hears(Interest::of(call))
    }

    /// Whether every call passes and nothing is counted, now and later: stages change by steps only.
    pub fn is_idle(&self) -> bool {
        self.needs == Interest::NOTHING && self.counts().next().is_none()
    }

    /// How many stages have to be stepped for a call that comes in.
    pub fn stepped(&self, call: &Call) -> usize {
        let kind = Interest::of(call);
        self.stages.iter().filter(|stage| stage.needs.hears(kind)).count()
    }

    /// Whether a call is to wait for others who ask for the same, and until when ([`Strategy::join`]): the
    /// first stage to hear it decides.
    pub fn join(&mut self, now: Nanos, call: &Call) -> Option<Ticket> {
        let at = self.listener(0, Interest::of(call))?;
        self.stages[at].strategy.join(now, call)
    }

    /// What came of the call for which that ticket was taken, if it has been made by somebody else.
    pub fn joined(&self, call: &Call, ticket: Ticket) -> Option<Outcome> {
        let at = self.listener(0, Interest::of(call))?;
        self.stages[at].strategy.joined(ticket)
    }

    /// Such a call is over.
    pub fn passed_on(&mut self, call: &Call) {
        if let Some(at) = self.listener(0, Interest::of(call)) {
            self.note(0..at, call);
        }
    }

    /// A call that passes is made as it is, and nothing else is told of it.
    #[inline]
    pub fn passed(&mut self, call: &Call) {
        self.note(0..self.stages.len(), call);
    }

    /// What stages have counted: which stage, the name of its place, and the counts.
    pub fn counts(&self) -> impl Iterator<Item = (usize, &str, &Counts)> {
        let counting = self.stages.iter().enumerate().filter(|(_, stage)| stage.counts);
        counting.filter_map(move |(at, stage)| stage.strategy.counts().map(|it| (at, it.0, it.1)))
    }

    /// A call goes by these stages without a step.
    #[inline]
    fn note(&mut self, stages: Range<usize>, call: &Call) {
        if self.counts {
            let counting = self.stages[stages].iter_mut().filter(|stage| stage.counts);
            counting.for_each(|stage| stage.strategy.note(call));
        }
    }

    /// The first stage, from that one on, that has to be stepped for calls of that kind.
    #[inline]
    fn listener(&self, from: usize, kind: Interest) -> Option<usize> {
        let mut stages = self.stages[from..].iter();
        stages.position(|stage| stage.needs.hears(kind)).map(|at| from + at)
    }

    /// Takes note of what the stages hear and hold.
    fn take_note(&mut self) {
        (self.interest, self.needs) = (Interest::NOTHING, Interest::NOTHING);
        self.holds = false;
        for stage in &self.stages {
            self.interest = self.interest.and(stage.interest);
            self.needs = self.needs.and(stage.needs);
            self.holds |= stage.holds;
        }
    }

    /// As [`Stack::take_note`], after one stage may have changed.
    #[inline]
    fn take_note_of(&mut self, at: usize) {
        let stage = &mut self.stages[at];
        let (interest, holds) = (stage.strategy.interest(), stage.strategy.held_bytes() > 0);
        if (interest, holds) != (stage.interest, stage.holds) {
            (stage.interest, stage.holds) = (interest, holds);
            stage.needs = interest.without(stage.strategy.passes());
            self.take_note();
        }
    }

    /// Staging memory of each stage, top first.
    pub fn staging_bytes(&self) -> impl Iterator<Item = u64> + '_ {
        self.stages.iter().map(|stage| stage.strategy.staging_bytes())
    }

    /// The part of each stage's staging memory that may be the only place of held bytes, top first.
    pub fn holding_bytes(&self) -> impl Iterator<Item = u64> + '_ {
        self.stages.iter().map(|stage| stage.strategy.holding_bytes())
    }

    /// How the staging memory of a stage stands.
    pub fn holding(&self, stage: usize) -> Holding {
        self.stages[stage].strategy.holding()
    }

    /// Shows each piece a stage holds. What an upper stage holds is newer than what lower ones do.
    pub fn held_pieces(&self, stage: usize, show: &mut dyn FnMut(HeldPiece)) {
        self.stages[stage].strategy.held_pieces(show);
    }

    /// Somebody else has written out what all stages held, lower ones first; the file below now
    /// measures `file_bytes`. Between calls only.
    pub fn drained(&mut self, file_bytes: u64) {
        for at in 0..self.stages.len() {
            self.stages[at].strategy.drained(file_bytes);
            self.take_note_of(at);
        }
    }

    /// Work to be done while no call waits for it, if a stage has some below which nobody hears of it: a stage
    /// has one call under way at a time. One piece of work of a stack is under way at a time as well.
    pub fn begin(&mut self) -> Option<Work> {
        if self.working.is_some() {
            return None;
        }
        let last = self.stages.iter().rposition(|stage| stage.needs.hears(Interest::TRANSFERS))?;
        let mut actions = std::mem::take(&mut self.actions);
        actions.clear();
        self.stages[last].strategy.begin(&mut actions);
        let work = actions.split_last().map(|(work, copies)| {
            let Action::Perform { handle, call, memory } = *work else {
                panic!("stage {last} began {work:?}");
            };
            let copies = copies.iter().map(|copy| match *copy {
                Action::Copy { from, to, length } => {
                    (self.resolve(last, from), self.resolve(last, to), length)
                }
                _ => panic!("stage {last} put {copy:?} before its work"),
            });
            Work { copies: copies.collect(), handle, call, memory: self.resolve(last, memory) }
        });
        self.actions = actions;
        if let Some(work) = &work {
            self.working = Some(last);
            self.note(last + 1..self.stages.len(), &work.call);
        }
        work
    }

    /// The work that was begun came to this. Between calls only; a call that awaits it is told by
    /// [`Event::Ended`].
    pub fn ended(&mut self, outcome: Outcome) {
        let at = self.working.take().expect("work was begun");
        self.stages[at].strategy.ended(outcome);
        self.take_note_of(at);
    }

    /// Whether any stage looks at `now`.
    pub fn reads_clock(&self) -> bool {
        self.reads_clock
    }

    /// Bytes held back by all stages together.
    pub fn held_bytes(&self) -> u64 {
        self.stages.iter().map(|stage| stage.strategy.held_bytes()).sum()
    }

    /// Whether anything is held back.
    #[inline]
    pub fn holds(&self) -> bool {
        self.holds
    }

    /// The short way for a write that the first stage to hear it takes in whole at once: the place in
    /// staging memory its bytes are to be copied to. The same as `step` answering with one
    /// [`Command::Copy`] and [`Command::Answer`] of `length`; `None` means that `step` must decide.
    #[inline]
    pub fn absorb(&mut self, handle: Handle, at: At, length: u64) -> Option<Slot> {
        let stage = self.taker(at)?;
        let offset = self.stages[stage].strategy.absorb(handle, at, length)?;
        self.note(0..stage, &Call::Write { at, length });
        Some(Slot::Staging { stage: stage as u32, offset })
    }

    /// The short way for a call that only the first stage to hear it has to do with: that stage, and what
    /// it says. The same as `step` answering with [`Command::Answer`], or with one
    /// [`Command::Perform`] of the whole transfer at another place; [`Short::Ask`] means that `step` must
    /// decide. What a transfer has moved is told by [`Stack::moved`].
    #[inline]
    pub fn short(&mut self, handle: Handle, call: &Call) -> (usize, Short) {
        let Some(at) = self.listener(0, Interest::of(call)) else { return (0, Short::Ask) };
        let moves = matches!(call, Call::Read { .. } | Call::Write { .. });
        if moves && self.listener(at + 1, Interest::TRANSFERS).is_some() {
            return (at, Short::Ask);
        }
        let short = self.stages[at].strategy.short(handle, call);
        if short != Short::Ask {
            self.note(0..at, call);
        }
        if let Short::At(_) = short {
            // Who counts does not look at the place.
            self.note(at + 1..self.stages.len(), call);
        }
        (at, short)
    }

    /// The transfer that a stage sent down by the short way has moved so many bytes.
    #[inline]
    pub fn moved(&mut self, stage: usize, handle: Handle, bytes: u64) {
        self.stages[stage].strategy.moved(handle, bytes);
    }

    /// The stage that [`Stack::absorb`] would ask.
    #[inline]
    pub fn taker(&self, at: At) -> Option<usize> {
        self.listener(0, Interest::of(&Call::Write { at, length: 0 }))
    }

    /// Whether a stage answers reads from what it has read before ([`Strategy::keeps_bytes`]).
    pub fn keeps_bytes(&self) -> bool {
        self.stages.iter().any(|stage| stage.strategy.keeps_bytes())
    }

    /// The short way for a read the top stage answers in whole: the byte of stage 0's staging memory
    /// from which its bytes are to be copied. The same as `step` answering with one
    /// [`Command::Copy`] and [`Command::Answer`] of `length`; `None` means that `step` must decide.
    #[inline]
    pub fn serve(&mut self, handle: Handle, at: At, length: u64) -> Option<Slot> {
        let stage = self.listener(0, Interest::of(&Call::Read { at, length }))?;
        let offset = self.stages[stage].strategy.serve(handle, at, length)?;
        self.note(0..stage, &Call::Read { at, length });
        Some(Slot::Staging { stage: stage as u32, offset })
    }

    /// Hands the copies of a batch to the driver and returns what concludes the batch.
    fn copy_all(&self, at: usize, actions: &[Action], out: &mut Vec<Command>) -> Action {
        let (conclusion, copies) = actions.split_last().expect("a step concludes with an action");
        for action in copies {
            let Action::Copy { from, to, length } = *action else {
                panic!("stage {at} put {action:?} before the end of its batch");
            };
            let (from, to) = (self.resolve(at, from), self.resolve(at, to));
            out.push(Command::Copy { from, to, length });
        }
        assert!(!matches!(conclusion, Action::Copy { .. }), "stage {at} concluded with a copy");
        *conclusion
    }

    /// The stage a call arrives at that `above` (or the program) asks for; `None` when it comes out at
    /// the bottom.
    #[inline]
    fn hand_down(&mut self, above: Option<usize>, call: &Call, memory: Slot) -> Option<usize> {
        let from = above.map_or(0, |above| above + 1);
        let next = self.listener(from, Interest::of(call));
        self.note(from..next.unwrap_or(self.stages.len()), call);
        match next {
            Some(next) => {
                let stage = &mut self.stages[next];
                (stage.above, stage.caller) = (above, memory);
            }
            None => self.waiting = above,
        }
        next
    }

    fn resolve(&self, at: usize, place: Place) -> Slot {
        match place {
            Place::Nowhere => Slot::Nowhere,
            Place::Staging(offset) => Slot::Staging { stage: at as u32, offset },
            Place::Caller(ahead) => match self.stages[at].caller {
                Slot::Program(offset) => Slot::Program(offset + ahead),
                Slot::Staging { stage, offset } => Slot::Staging { stage, offset: offset + ahead },
                Slot::Nowhere => Slot::Nowhere,
            },
        }
    }
}

impl Machine for Stack {
    type Event = Event;
    type Action = Command;

    /// Feeds one event: a call of the program, or what came of the last `Perform`, `WakeAt` or `Await`.
    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Command>) {
        let (mut at, mut event) = match (event, self.waiting) {
            (Event::Arrived { handle, call }, _) => {
                let memory = Slot::of(&call);
                let Some(first) = self.hand_down(None, &call, memory) else {
                    return out.push(Command::Perform { handle, call, memory });
                };
                (first, event)
            }
            (Event::Performed(outcome), None) => return out.push(Command::Answer(outcome)),
            (Event::Performed(_) | Event::Woke | Event::Ended(_), waiting) => {
                (waiting.expect("only a stage asks to be woken"), event)
            }
        };
        if matches!(event, Event::Ended(_)) {
            self.working = None;
        }
        loop {
            let mut actions = std::mem::take(&mut self.actions);
            actions.clear();
            self.stages[at].strategy.step(now, event, &mut actions);
            self.take_note_of(at);
            let conclusion = self.copy_all(at, &actions, out);
            self.actions = actions;
            match conclusion {
                Action::Perform { handle, call, memory } => {
                    let memory = self.resolve(at, memory);
                    let Some(next) = self.hand_down(Some(at), &call, memory) else {
                        return out.push(Command::Perform { handle, call, memory });
                    };
                    (at, event) = (next, Event::Arrived { handle, call });
                }
                Action::Answer(outcome) => {
                    let Some(above) = self.stages[at].above else {
                        return out.push(Command::Answer(outcome));
                    };
                    (at, event) = (above, Event::Performed(outcome));
                }
                Action::WakeAt(time) => {
                    self.waiting = Some(at);
                    return out.push(Command::WakeAt(time));
                }
                Action::Await => {
                    self.waiting = Some(at);
                    return out.push(Command::Await);
                }
                Action::Copy { .. } => unreachable!("copies were taken off the batch"),
            }
        }
    }
}
