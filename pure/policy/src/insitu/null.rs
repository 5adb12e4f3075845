//! The null strategy: every call goes down as it came. Template of the family, and the measure of
//! what the machinery itself costs: of a call that comes as far as the stack (`hear=everything`), of one
//! that a strategy is stepped for as well (`hear=steps`), and of one that does neither (`hear=nothing`).

use super::parameter::{Parameters, unknown};
use super::{Action, Call, Event, Interest, Place, Strategy};
use crate::machine::Machine;
use iolab_vocab::{Nanos, Refusal};

/// Passes everything through.
#[derive(Clone, Copy, Debug)]
pub struct Null {
    interest: Interest,
    passes: Interest,
}

impl Null {
    /// One that hears nothing.
    pub const DEAF: Null = Null { interest: Interest::NOTHING, passes: Interest::NOTHING };

    /// Reads `hear=nothing`.
    pub fn parse(parameters: &Parameters) -> Result<Null, Refusal> {
        let mut null = Null { interest: Interest::EVERYTHING, passes: Interest::EVERYTHING };
        for (key, value) in parameters {
            (null.interest, null.passes) = match (key.as_str(), value.as_str()) {
                ("hear", "everything") => (Interest::EVERYTHING, Interest::EVERYTHING),
                ("hear", "steps") => (Interest::EVERYTHING, Interest::NOTHING),
                ("hear", "nothing") => (Interest::NOTHING, Interest::NOTHING),
                ("hear", _) => {
                    return Err(Refusal {
                        message: format!("hear: `{value}` is none of everything, steps, nothing"),
                        hint: "for example hear=nothing".to_owned(),
                    });
                }
                _ => return Err(unknown(key, "hear, paths, exclude")),
            };
        }
        Ok(null)
    }
}

impl Machine for Null {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Arrived { handle, call } => {
                out.push(Action::Perform { handle, call, memory: memory_of(call) });
            }
            Event::Performed(outcome) => out.push(Action::Answer(outcome)),
            Event::Woke | Event::Ended(_) => {
                unreachable!("the null strategy never asks to be woken")
            }
        }
    }
}

impl Strategy for Null {
    fn interest(&self) -> Interest {
        self.interest
    }

    fn passes(&self) -> Interest {
        self.passes
    }
}

/// Where the bytes of a call lie that is handed on unchanged.
pub(super) fn memory_of(call: Call) -> Place {
    match call {
        Call::Read { .. } | Call::Write { .. } => Place::Caller(0),
        _ => Place::Nowhere,
    }
}
