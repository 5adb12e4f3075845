//! Seek elision: the file position lives here, so a seek costs nothing below and a seek followed
//! by a transfer becomes one positioned transfer. Changes no byte and no result.
//!
//! State: the position of each description. Descriptions opened with append pass unchanged, since
//! a positioned write to them would go to the end of the file all the same.
//!
//! With `outsiders=none` the end of the file is known here as well, as long as no other process of the run
//! has it open (`keeps_bytes`); without, whoever seeks to the end may do so to see whether the file has
//! grown, and the file is asked.
//! Ancestor: the seek-removing strategy of Schmidtke 2017, without its harm.

use super::descriptions::{Descriptions, seek_short, seek_target};
use super::known_size::KnownSize;
use super::null::memory_of;
use super::parameter::{Parameters, parse_outsiders, unknown};
use super::{Action, At, Call, Event, Handle, Interest, Outcome, Short, Strategy, Whence};
use crate::machine::Machine;
use iolab_vocab::{Nanos, Refusal};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct SeekElide {
    descriptions: Descriptions,
    asked: Option<Asked>,
    /// The user says that nobody outside of the run writes to the file.
    is_alone: bool,
    file_bytes: KnownSize,
}

/// The call that is under way below.
#[derive(Clone, Copy, Debug)]
enum Asked {
    /// The program's own call.
    Passed(Handle, Call),
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
            Event::Woke | Event::Ended(_) => unreachable!("seek elision never asks to be woken"),
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
/// Whatever changes the size beside that.
const SIZED: Interest = Interest::WRITE_AT.and(Interest::TRUNCATE).and(Interest::ALLOCATE);

impl Strategy for SeekElide {
    fn interest(&self) -> Interest {
        if self.is_alone { HEARD.and(SIZED) } else { HEARD }
    }

    fn keeps_bytes(&self) -> bool {
        self.is_alone
    }

    fn drained(&mut self, file_bytes: u64) {
        self.file_bytes.set(file_bytes);
    }

    fn short(&mut self, handle: Handle, call: &Call) -> Short {
        // Others may be on a description that is not open yet.
        if !HEARD.without(Interest::OPEN).hears(Interest::of(call)) {
            return Short::Ask;
        }
        let description = self.descriptions.get(handle);
        match *call {
            _ if description.access.append => Short::Ask,
            Call::Write { .. } if self.is_alone => Short::Ask,
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
    /// Reads `outsiders=none`.
    pub(super) fn parse(parameters: &Parameters) -> Result<SeekElide, Refusal> {
        let mut strategy = SeekElide::default();
        for (key, value) in parameters {
            match key.as_str() {
                "outsiders" => parse_outsiders(key, value)?,
                _ => return Err(unknown(key, "outsiders, paths, exclude")),
            }
            strategy.is_alone = true;
        }
        Ok(strategy)
    }

    fn arrived(&mut self, handle: Handle, call: Call, out: &mut Vec<Action>) {
        if let Call::Open { access, file_bytes, position } = call {
            self.descriptions.open(handle, access, position);
            self.file_bytes.set(file_bytes);
        }
        let description = *self.descriptions.get(handle);
        match call {
            _ if description.access.append => self.pass(handle, call, out),
            Call::Seek { offset, whence } => self.seek(handle, offset, whence, out),
            Call::Settle if description.position != description.below => {
                let position = description.position as i64;
                let call = Call::Seek { offset: position, whence: Whence::Start };
                self.asked = Some(Asked::Position(handle));
                out.push(Action::Perform { handle, call, memory: memory_of(call) });
            }
            _ => self.pass(handle, call, out),
        }
    }

    /// The holes of the file are only known below, and mostly its end; all else is arithmetic.
    fn seek(&mut self, handle: Handle, offset: i64, whence: Whence, out: &mut Vec<Action>) {
        let end = self.file_bytes.get().filter(|_| self.is_alone);
        let description = self.descriptions.get(handle);
        match seek_target(description.position, end.unwrap_or(0), offset, whence) {
            Some(target) if whence != Whence::End || end.is_some() => {
                if let Ok(position) = target {
                    description.position = position;
                }
                out.push(Action::Answer(target));
            }
            _ => self.pass(handle, Call::Seek { offset, whence }, out),
        }
    }

    fn pass(&mut self, handle: Handle, call: Call, out: &mut Vec<Action>) {
        self.asked = Some(Asked::Passed(handle, call));
        let call = self.descriptions.placed(handle, call);
        out.push(Action::Perform { handle, call, memory: memory_of(call) });
    }

    fn performed(&mut self, outcome: Outcome, out: &mut Vec<Action>) {
        match self.asked.take().expect("something was asked of the stage below") {
            Asked::Passed(handle, call) => {
                let description = *self.descriptions.get(handle);
                self.file_bytes.learn(description, call, outcome);
                if let Ok(value) = outcome {
                    self.descriptions.moved(handle, call, value);
                }
                if call == Call::Close {
                    self.descriptions.close(handle);
                }
                out.push(Action::Answer(outcome));
            }
            Asked::Position(handle) => {
                if let Ok(position) = outcome {
                    self.descriptions.get(handle).below = position;
                }
                self.pass(handle, Call::Settle, out);
            }
        }
    }
}
