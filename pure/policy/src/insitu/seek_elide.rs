//! Seek elision: the file position lives here, so a seek costs nothing below and a seek followed
//! by a transfer becomes one positioned transfer. Changes no byte and no result.
//!
//! State: the position of each description. Descriptions opened with append pass unchanged, since
//! a positioned write to them would go to the end of the file all the same.
//! Ancestor: the seek-removing strategy of Schmidtke 2017, without its harm.

use super::descriptions::{Descriptions, seek_short, seek_target};
use super::null::memory_of;
use super::{Action, At, Call, Event, Handle, Interest, Outcome, Short, Strategy, Whence};
use crate::machine::Machine;
use iolab_vocab::Nanos;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct SeekElide {
    descriptions: Descriptions,
    asked: Option<Asked>,
}

/// The call that is under way below.
#[derive(Clone, Copy, Debug)]
enum Asked {
    /// Nothing to learn from its outcome.
    Plain,
    /// A transfer that moves the position by what it moved.
    Advance(Handle),
    /// A seek only the file could answer.
    Seek(Handle),
    /// The position below is being made true; then the settle itself goes down.
    Position(Handle),
}

impl Machine for SeekElide {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Arrived { handle, call } => self.arrived(handle, call, out),
            Event::Performed(outcome) => self.performed(outcome, out),
            Event::Woke => unreachable!("seek elision never asks to be woken"),
        }
    }
}

/// Whatever uses the position, and descriptions that come and go.
const HEARD: Interest = Interest::OPEN
    .and(Interest::READ)
    .and(Interest::WRITE)
    .and(Interest::SEEK)
    .and(Interest::SETTLE)
    .and(Interest::CLOSE);

impl Strategy for SeekElide {
    fn interest(&self) -> Interest {
        HEARD
    }

    fn short(&mut self, handle: Handle, call: &Call) -> Short {
        // Others may be on a description that is not open yet.
        if !HEARD.without(Interest::OPEN).hears(Interest::of(call)) {
            return Short::Ask;
        }
        let description = self.descriptions.get(handle);
        match *call {
            _ if description.access.append => Short::Ask,
            Call::Read { at: At::Position, .. } | Call::Write { at: At::Position, .. } => {
                Short::At(description.position)
            }
            Call::Seek { offset, whence } => seek_short(&mut description.position, offset, whence),
            _ => Short::Ask,
        }
    }

    fn moved(&mut self, handle: Handle, bytes: u64) {
        self.descriptions.get(handle).position += bytes;
    }
}

impl SeekElide {
    fn arrived(&mut self, handle: Handle, call: Call, out: &mut Vec<Action>) {
        if let Call::Open { access, position, .. } = call {
            self.descriptions.open(handle, access, position);
        }
        let description = *self.descriptions.get(handle);
        match call {
            _ if description.access.append => self.pass(handle, call, Asked::Plain, out),
            Call::Read { at: At::Position, length } => {
                let call = Call::Read { at: At::Offset(description.position), length };
                self.pass(handle, call, Asked::Advance(handle), out);
            }
            Call::Write { at: At::Position, length } => {
                let call = Call::Write { at: At::Offset(description.position), length };
                self.pass(handle, call, Asked::Advance(handle), out);
            }
            Call::Seek { offset, whence } => self.seek(handle, offset, whence, out),
            Call::Settle if description.position != description.below => {
                let call =
                    Call::Seek { offset: description.position as i64, whence: Whence::Start };
                self.pass(handle, call, Asked::Position(handle), out);
            }
            _ => self.pass(handle, call, Asked::Plain, out),
        }
        if call == Call::Close {
            self.descriptions.close(handle);
        }
    }

    /// The end of the file and its holes are only known below; all else is arithmetic.
    fn seek(&mut self, handle: Handle, offset: i64, whence: Whence, out: &mut Vec<Action>) {
        let description = self.descriptions.get(handle);
        if matches!(whence, Whence::End | Whence::Sparse(_)) {
            return self.pass(handle, Call::Seek { offset, whence }, Asked::Seek(handle), out);
        }
        let target = seek_target(description.position, 0, offset, whence)
            .expect("seeks from start and position are arithmetic");
        if let Ok(position) = target {
            description.position = position;
        }
        out.push(Action::Answer(target));
    }

    fn pass(&mut self, handle: Handle, call: Call, asked: Asked, out: &mut Vec<Action>) {
        self.asked = Some(asked);
        out.push(Action::Perform { handle, call, memory: memory_of(call) });
    }

    fn performed(&mut self, outcome: Outcome, out: &mut Vec<Action>) {
        let asked = self.asked.take().expect("something was asked of the stage below");
        match (asked, outcome) {
            (Asked::Advance(handle), Ok(moved)) => self.descriptions.get(handle).position += moved,
            (Asked::Seek(handle), Ok(position)) => {
                let description = self.descriptions.get(handle);
                (description.position, description.below) = (position, position);
            }
            (Asked::Position(handle), Ok(position)) => {
                self.descriptions.get(handle).below = position;
                return self.pass(handle, Call::Settle, Asked::Plain, out);
            }
            _ => {}
        }
        out.push(Action::Answer(outcome));
    }
}
