//! Two-phase I/O with two buffers: while the file is accessed for one iteration, the data of the
//! next (when writing) or of the last one (when reading) is exchanged.
//!
//! Dickens and Thakur 1999 for the idea. What takes part is as in [`super::TwoPhase`]; it takes
//! twice the memory, and where network and devices need about as long each, half the time.

use super::{Action, Event, FileCall, TwoPhase};
use crate::machine::Machine;
use iolab_vocab::{Direction, Nanos};

/// One rank of a double-buffered two-phase access.
#[derive(Debug)]
pub struct DoubleBuffered {
    direction: Direction,
    /// Iteration to exchange (writing) or to read next.
    ahead: TwoPhase,
    /// Iteration whose buffer is to be written or handed out.
    behind: TwoPhase,
    is_begun: bool,
}

impl DoubleBuffered {
    /// The machine for one rank; one contiguous domain per rank.
    pub fn new(call: FileCall) -> DoubleBuffered {
        DoubleBuffered {
            direction: call.access.direction,
            ahead: TwoPhase::domains(call.clone()),
            behind: TwoPhase::domains(call),
            is_begun: false,
        }
    }

    fn write_round(&mut self, out: &mut Vec<Action>) {
        if self.is_begun {
            let extents = self.behind.collected();
            out.extend((!extents.is_empty()).then_some(Action::PostWrite(extents)));
            self.behind.next_iteration();
        }
        if !self.ahead.is_over() {
            self.ahead.exchange_for_write(out);
            self.ahead.next_iteration();
        }
    }

    fn read_round(&mut self, out: &mut Vec<Action>) {
        if !self.ahead.is_over() {
            self.ahead.ask_for_read(out);
            self.ahead.next_iteration();
        }
        if self.is_begun {
            self.behind.hand_out(out);
            self.behind.next_iteration();
        }
    }
}

impl Machine for DoubleBuffered {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, _now: Nanos, _event: Event, out: &mut Vec<Action>) {
        match self.direction {
            _ if self.behind.is_over() => {}
            Direction::Read => self.read_round(out),
            Direction::Write => self.write_round(out),
        }
        self.is_begun = true;
        out.extend(self.behind.is_over().then_some(Action::Finish));
    }
}
