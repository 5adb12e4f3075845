//! The null strategy: every call goes down as it came. Template of the family, and the measure of
//! what the machinery itself costs.

use super::{Action, Call, Event, Place, Strategy};
use crate::machine::Machine;
use iolab_vocab::Nanos;

/// Passes everything through.
#[derive(Clone, Copy, Debug, Default)]
pub struct Null;

impl Machine for Null {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Arrived { handle, call } => {
                out.push(Action::Perform { handle, call, memory: memory_of(call) });
            }
            Event::Performed(outcome) => out.push(Action::Answer(outcome)),
            Event::Woke => unreachable!("the null strategy never asks to be woken"),
        }
    }
}

impl Strategy for Null {}

/// Where the bytes of a call lie that is handed on unchanged.
pub(super) fn memory_of(call: Call) -> Place {
    match call {
        Call::Read { .. } | Call::Write { .. } => Place::Caller(0),
        _ => Place::Nowhere,
    }
}
