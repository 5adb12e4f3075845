//! Strategies on top of each other, as one machine: what one stage performs arrives at the next.
//!
//! The stack turns each stage's relative places into absolute ones, so a driver only has to know
//! the program's memory and one staging area per stage. Cost per event: the stages it passes, no
//! allocation once the scratch vectors have grown.

use super::{
    Action, At, Call, Event, Handle, HeldPiece, Holding, Outcome, Place, Strategy, checked,
};
use crate::machine::Machine;
use iolab_vocab::Nanos;

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
    /// The program's call is over.
    Answer(Outcome),
}

/// A stack of strategies on one file. At most one call of the program is under way at a time.
pub struct Stack {
    stages: Vec<Stage>,
    /// The stage that waits for `Performed` or `Woke`.
    waiting: usize,
    actions: Vec<Action>,
    pub(super) commands: Vec<Command>,
    reads_clock: bool,
}

struct Stage {
    strategy: Box<dyn Strategy>,
    /// Where the memory of the call that arrived here begins.
    caller: Slot,
}

impl Stack {
    /// A stack with `strategies[0]` on top. It must not be empty: use [`super::Null`].
    pub fn new(strategies: Vec<Box<dyn Strategy>>) -> Stack {
        assert!(!strategies.is_empty(), "a stack needs a stage; the null strategy is one");
        let reads_clock = strategies.iter().any(|strategy| strategy.reads_clock());
        let stage = |strategy: Box<dyn Strategy>| Stage {
            strategy: if cfg!(debug_assertions) { checked(strategy) } else { strategy },
            caller: Slot::Nowhere,
        };
        Stack {
            stages: strategies.into_iter().map(stage).collect(),
            waiting: 0,
            actions: Vec::with_capacity(16),
            commands: Vec::with_capacity(32),
            reads_clock,
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
        self.stages.iter_mut().for_each(|stage| stage.strategy.drained(file_bytes));
    }

    /// Whether any stage looks at `now`.
    pub fn reads_clock(&self) -> bool {
        self.reads_clock
    }

    /// Bytes held back by all stages together.
    pub fn held_bytes(&self) -> u64 {
        self.stages.iter().map(|stage| stage.strategy.held_bytes()).sum()
    }

    /// The short way for a write the top stage takes in whole at once: the byte of stage 0's
    /// staging memory its bytes are to be copied to. The same as `step` answering with one
    /// [`Command::Copy`] and [`Command::Answer`] of `length`; `None` means that `step` must decide.
    #[inline]
    pub fn absorb(&mut self, handle: Handle, at: At, length: u64) -> Option<u64> {
        self.stages[0].strategy.absorb(handle, at, length)
    }

    /// Whether a stage answers reads from what it has read before ([`Strategy::keeps_bytes`]).
    pub fn keeps_bytes(&self) -> bool {
        self.stages.iter().any(|stage| stage.strategy.keeps_bytes())
    }

    /// The short way for a read the top stage answers in whole: the byte of stage 0's staging memory
    /// from which its bytes are to be copied. The same as `step` answering with one
    /// [`Command::Copy`] and [`Command::Answer`] of `length`; `None` means that `step` must decide.
    #[inline]
    pub fn serve(&mut self, handle: Handle, at: At, length: u64) -> Option<u64> {
        self.stages[0].strategy.serve(handle, at, length)
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

    /// Feeds one event: a call of the program, or what came of the last `Perform` or `WakeAt`.
    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Command>) {
        let mut event = event;
        let mut at = match event {
            Event::Arrived { call, .. } => {
                self.stages[0].caller = match call {
                    Call::Read { .. } | Call::Write { .. } => Slot::Program(0),
                    _ => Slot::Nowhere,
                };
                0
            }
            Event::Performed(_) | Event::Woke => self.waiting,
        };
        loop {
            let mut actions = std::mem::take(&mut self.actions);
            actions.clear();
            self.stages[at].strategy.step(now, event, &mut actions);
            let conclusion = self.copy_all(at, &actions, out);
            self.actions = actions;
            match conclusion {
                Action::Perform { handle, call, memory } => {
                    let memory = self.resolve(at, memory);
                    if at + 1 == self.stages.len() {
                        self.waiting = at;
                        return out.push(Command::Perform { handle, call, memory });
                    }
                    at += 1;
                    self.stages[at].caller = memory;
                    event = Event::Arrived { handle, call };
                }
                Action::Answer(outcome) => {
                    if at == 0 {
                        return out.push(Command::Answer(outcome));
                    }
                    at -= 1;
                    event = Event::Performed(outcome);
                }
                Action::WakeAt(time) => {
                    self.waiting = at;
                    return out.push(Command::WakeAt(time));
                }
                Action::Copy { .. } => unreachable!("copies were taken off the batch"),
            }
        }
    }
}
