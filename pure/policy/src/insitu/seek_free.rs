//! Seek-free: writes go out one behind the other, wherever they belong. **Destroys the file**: it ends
//! up with the right volume of data in the order of writing, and shows what a device could do at best
//! for that volume. Ancestor: the seek-removing strategy of Schmidtke 2017.
//!
//! State: the positions and the size the program believes in, so that it goes on as usual; sizes and
//! reservations it asks for are believed and not carried out. Reads find what lies at their offset.
//! A file that held bytes when it was opened passes as it is.

use super::descriptions::{Descriptions, seek_target};
use super::null::memory_of;
use super::{Action, At, Call, Event, Handle, Outcome, Strategy, Whence};
use crate::machine::Machine;
use iolab_vocab::Nanos;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct SeekFree {
    descriptions: Descriptions,
    /// What a description was first told of the file.
    file: Option<File>,
    asked: Option<Asked>,
}

#[derive(Clone, Copy, Debug)]
enum File {
    /// It held bytes before.
    Passes,
    /// The next write goes to `next`; the program believes in `size` bytes.
    Fresh { next: u64, size: u64 },
}

/// The call that is under way below.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Plain,
    Read(Handle, At),
    Write(Handle, At),
    Seek(Handle),
    /// The position below is being made what the program believes; then the settle goes down.
    Position(Handle),
}

impl SeekFree {
    fn arrived(&mut self, handle: Handle, call: Call, out: &mut Vec<Action>) {
        if let Call::Open { access, file_bytes, position } = call {
            self.descriptions.open(handle, access, position);
            let fresh = File::Fresh { next: 0, size: 0 };
            self.file.get_or_insert(if file_bytes > 0 { File::Passes } else { fresh });
        }
        let description = *self.descriptions.get(handle);
        if call == Call::Close {
            self.descriptions.close(handle);
        }
        let Some(File::Fresh { next, size }) = &mut self.file else {
            return self.pass(handle, call, Asked::Plain, out);
        };
        let at_position = At::Offset(description.position);
        match call {
            Call::Read { at, length } => {
                let from = if at == At::Position { at_position } else { at };
                let below = Call::Read { at: from, length };
                self.pass(handle, below, Asked::Read(handle, at), out);
            }
            Call::Write { at, length } => {
                let below = Call::Write { at: At::Offset(*next), length };
                self.pass(handle, below, Asked::Write(handle, at), out);
            }
            Call::Seek { offset, whence } => {
                match seek_target(description.position, *size, offset, whence) {
                    Some(target) => {
                        if let Ok(position) = target {
                            self.descriptions.get(handle).position = position;
                        }
                        out.push(Action::Answer(target));
                    }
                    None => self.pass(handle, call, Asked::Seek(handle), out),
                }
            }
            Call::Truncate { length } if description.access.write => {
                *size = length;
                out.push(Action::Answer(Ok(0)));
            }
            Call::Allocate { mode: 0, offset, length } if description.access.write => {
                *size = offset.saturating_add(length).max(*size);
                out.push(Action::Answer(Ok(0)));
            }
            Call::Settle => {
                let offset = description.position as i64;
                let seek = Call::Seek { offset, whence: Whence::Start };
                self.pass(handle, seek, Asked::Position(handle), out);
            }
            _ => self.pass(handle, call, Asked::Plain, out),
        }
    }

    fn pass(&mut self, handle: Handle, call: Call, asked: Asked, out: &mut Vec<Action>) {
        self.asked = Some(asked);
        out.push(Action::Perform { handle, call, memory: memory_of(call) });
    }

    fn performed(&mut self, outcome: Outcome, out: &mut Vec<Action>) {
        let asked = self.asked.take().expect("something was asked of the stage below");
        match (asked, outcome) {
            (Asked::Read(handle, At::Position), Ok(moved)) => {
                self.descriptions.get(handle).position += moved;
            }
            (Asked::Write(handle, at), Ok(moved)) => self.written(handle, at, moved),
            (Asked::Seek(handle), Ok(position)) => {
                self.descriptions.get(handle).position = position;
            }
            (Asked::Position(handle), _) => {
                return self.pass(handle, Call::Settle, Asked::Plain, out);
            }
            _ => {}
        }
        out.push(Action::Answer(outcome));
    }

    /// The program believes that so many bytes went where it wanted them.
    fn written(&mut self, handle: Handle, at: At, moved: u64) {
        let Some(File::Fresh { next, size }) = &mut self.file else { return };
        let description = self.descriptions.get(handle);
        *next += moved;
        let from = match at {
            _ if description.access.append => *size,
            At::Position => description.position,
            At::Offset(offset) => offset,
        };
        let end = from.saturating_add(moved);
        if at == At::Position {
            description.position = end;
        }
        *size = end.max(*size);
    }
}

impl Machine for SeekFree {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Arrived { handle, call } => self.arrived(handle, call, out),
            Event::Performed(outcome) => self.performed(outcome, out),
            Event::Woke | Event::Ended(_) => unreachable!("seek-free never asks to be woken"),
        }
    }
}

impl Strategy for SeekFree {}
