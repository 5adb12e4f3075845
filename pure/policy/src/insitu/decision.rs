//! A stack's command as a row of a trace, so that what strategies decided can be looked at in the
//! timeline and compared between a live run, a replay and a simulation.
//!
//! | command | function | fd | offset | length | argument | result |
//! |---|---|---|---|---|---|---|
//! | copy | `copy` | – | byte of the source | bytes | source slot + 16 × target slot | byte of the target |
//! | perform | `perform` | handle | offset, −1 at the position; distance of a seek | bytes, new size | call + 16 × memory slot + 256 × whence | byte of the memory |
//! | answer | `answer` | – | – | – | – | the answer, `-errno` for a failure |
//! | wake at, await | `wait` | – | – | – | – | – |
//!
//! Slots: 0 nowhere, 1 the program's memory, 2 + n the staging memory of stage n. Calls: 1 open,
//! 2 read, 3 write, 4 seek, 5 sync, 6 data sync, 7 truncate, 8 allocate, 9 flush, 10 settle,
//! 11 close, 12 advise. When a wait ends is the driver's business, so it is not part of the decision.

use super::{At, Call, Command, Slot};
use iolab_trace::{Event, Function, Header};

/// The rank and thread that a decision of a stack of `process` is told of: those of the call, unless another process
/// made it, which is nothing that a thread of the stack's own did.
pub fn decided_by(event: &Event, process: u32, header: &Header) -> (i32, u32) {
    if process == event.process {
        return (event.rank, event.thread);
    }
    let entry = header.processes.get(process as usize);
    (entry.map_or(-1, |entry| entry.rank), 0)
}

/// The row of a command; file, process, thread and times are the driver's to fill in.
pub fn decision(command: &Command) -> Event {
    match *command {
        Command::Copy { from, to, length } => Event {
            offset: byte(from),
            length: length as i64,
            argument: slot(from) + 16 * slot(to),
            result: byte(to),
            ..Event::of(Function::COPY)
        },
        Command::Perform { handle, call, memory } => {
            let (offset, length) = numbers(call);
            Event {
                fd: handle.0 as i32,
                offset,
                length,
                argument: kind(call) + 16 * slot(memory) + 256 * whence(call),
                result: byte(memory),
                ..Event::of(Function::PERFORM)
            }
        }
        Command::Answer(outcome) => Event {
            result: outcome.map_or_else(|errno| -i64::from(errno.0), |value| value as i64),
            ..Event::of(Function::ANSWER)
        },
        Command::WakeAt(_) | Command::Await => Event::of(Function::WAIT),
    }
}

fn slot(slot: Slot) -> i64 {
    match slot {
        Slot::Nowhere => 0,
        Slot::Program(_) => 1,
        Slot::Staging { stage, .. } => 2 + i64::from(stage),
    }
}

fn byte(slot: Slot) -> i64 {
    match slot {
        Slot::Nowhere => 0,
        Slot::Program(offset) | Slot::Staging { offset, .. } => offset as i64,
    }
}

fn kind(call: Call) -> i64 {
    match call {
        Call::Open { .. } => 1,
        Call::Read { .. } => 2,
        Call::Write { .. } => 3,
        Call::Seek { .. } => 4,
        Call::Sync { data_only: false } => 5,
        Call::Sync { data_only: true } => 6,
        Call::Truncate { .. } => 7,
        Call::Allocate { .. } => 8,
        Call::Flush => 9,
        Call::Settle => 10,
        Call::Close => 11,
        Call::Advise { .. } => 12,
    }
}

fn whence(call: Call) -> i64 {
    match call {
        Call::Seek { whence, .. } => i64::from(whence.number()),
        _ => 0,
    }
}

fn numbers(call: Call) -> (i64, i64) {
    let place = |at| match at {
        At::Position => -1,
        At::Offset(offset) => offset as i64,
    };
    match call {
        Call::Read { at, length } | Call::Write { at, length } => (place(at), length as i64),
        Call::Seek { offset, .. } => (offset, -1),
        Call::Truncate { length } => (-1, length as i64),
        Call::Allocate { offset, length, .. } | Call::Advise { offset, length } => {
            (offset as i64, length as i64)
        }
        Call::Open { file_bytes, .. } => (-1, file_bytes as i64),
        _ => (-1, -1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Access, Errno, Handle, Whence};
    use super::*;
    use iolab_vocab::Nanos;
    use std::collections::BTreeSet;

    /// Descriptor, offset, length, argument, result.
    fn row(command: Command) -> (i32, i64, i64, i64, i64) {
        let event = decision(&command);
        (event.fd, event.offset, event.length, event.argument, event.result)
    }

    /// By the table in the head of this file.
    #[test]
    fn a_row_says_what_the_table_says() {
        let program = Slot::Program(5);
        let staging = Slot::Staging { stage: 1, offset: 70 };
        let copy = Command::Copy { from: program, to: staging, length: 8 };
        assert_eq!(row(copy), (-1, 5, 8, 1 + 16 * 3, 70));
        let copy = Command::Copy { from: staging, to: program, length: 9 };
        assert_eq!(row(copy), (-1, 70, 9, 3 + 16, 5));

        let below = |call, memory| row(Command::Perform { handle: Handle(4), call, memory });
        let at = At::Offset(30);
        assert_eq!(below(Call::Read { at, length: 8 }, program), (4, 30, 8, 2 + 16, 5));
        let write = Call::Write { at: At::Position, length: 8 };
        assert_eq!(below(write, staging), (4, -1, 8, 3 + 16 * 3, 70));
        for (whence, number) in [(Whence::Start, 0), (Whence::Current, 1), (Whence::End, 2)] {
            let seek = Call::Seek { offset: -6, whence };
            assert_eq!(below(seek, Slot::Nowhere), (4, -6, -1, 4 + 256 * number, 0));
        }
        let open = Call::Open { access: Access::default(), file_bytes: 40, position: 0 };
        assert_eq!(below(open, Slot::Nowhere), (4, -1, 40, 1, 0));
        assert_eq!(below(Call::Truncate { length: 3 }, Slot::Nowhere), (4, -1, 3, 7, 0));
        let allocate = Call::Allocate { mode: 0, offset: 6, length: 3 };
        assert_eq!(below(allocate, Slot::Nowhere), (4, 6, 3, 8, 0));
        let advise = Call::Advise { offset: 6, length: 3 };
        assert_eq!(below(advise, Slot::Nowhere), (4, 6, 3, 12, 0));
        for (call, number) in [
            (Call::Sync { data_only: false }, 5),
            (Call::Sync { data_only: true }, 6),
            (Call::Flush, 9),
            (Call::Settle, 10),
            (Call::Close, 11),
        ] {
            assert_eq!(below(call, Slot::Nowhere), (4, -1, -1, number, 0));
        }

        assert_eq!(row(Command::Answer(Ok(5))).4, 5);
        assert_eq!(row(Command::Answer(Err(Errno(5)))).4, -5);
        assert_eq!(decision(&Command::WakeAt(Nanos(9))), Event::of(Function::WAIT));
    }

    #[test]
    fn different_commands_make_different_rows() {
        let staging = Slot::Staging { stage: 0, offset: 0 };
        let perform = |call, memory| Command::Perform { handle: Handle(0), call, memory };
        let write = |at| Call::Write { at, length: 8 };
        let commands = [
            Command::Copy { from: Slot::Program(0), to: staging, length: 8 },
            Command::Copy { from: staging, to: Slot::Program(0), length: 8 },
            perform(write(At::Position), staging),
            perform(write(At::Offset(0)), staging),
            perform(write(At::Offset(0)), Slot::Program(0)),
            perform(Call::Read { at: At::Offset(0), length: 8 }, Slot::Program(0)),
            perform(Call::Seek { offset: 0, whence: Whence::End }, Slot::Nowhere),
            perform(Call::Seek { offset: 0, whence: Whence::Start }, Slot::Nowhere),
            perform(Call::Flush, Slot::Nowhere),
            perform(Call::Settle, Slot::Nowhere),
            perform(Call::Close, Slot::Nowhere),
            Command::Answer(Ok(5)),
            Command::Answer(Err(Errno(5))),
        ];
        let rows: BTreeSet<String> =
            commands.iter().map(|command| format!("{:?}", decision(command))).collect();
        assert_eq!(rows.len(), commands.len());
    }
}
