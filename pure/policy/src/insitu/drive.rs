//! A program's call on its way through a stack, from its arrival to its answer: the same loop for
//! whoever carries out what a stack wants done.

use super::{Call, Command, Event, Handle, Outcome, Slot, Stack};
use crate::machine::Machine;
use iolab_vocab::Nanos;

/// Clock, bytes and file below a stack.
pub trait Driver {
    /// The time; asked for only if a strategy looks at it.
    fn now(&mut self) -> Nanos;

    /// Moves bytes between the memory of the program's call and staging memory, at once.
    fn copy(&mut self, from: Slot, to: Slot, length: u64);

    /// Carries out a call that came out at the bottom.
    fn perform(&mut self, handle: Handle, call: Call, memory: Slot) -> Outcome;

    /// Waits until then.
    fn wait_until(&mut self, time: Nanos);

    /// Waits until the work is done that it has begun ([`Stack::begin`]). One that never begins any is never
    /// asked.
    fn work_ended(&mut self) -> Outcome {
        unreachable!("no work was begun")
    }

    /// The stack has decided; these bytes move next. Staging memory is still as it was.
    fn decided(&mut self, _stack: &Stack, _copies: &[Command]) {}

    /// The bytes are where they belong.
    fn copied(&mut self, _stack: &Stack) {}

    /// This command comes next.
    fn began(&mut self, _command: &Command) {}

    /// It has been carried out.
    fn ended(&mut self, _command: &Command) {}
}

impl Stack {
    /// Feeds one call of the program and has everything carried out that comes of it. Where nothing
    /// is held there is nothing to flush, and no strategy is asked.
    pub fn drive<D: Driver>(&mut self, handle: Handle, call: Call, driver: &mut D) -> Outcome {
        if call == Call::Flush && !self.holds() {
            return Ok(0);
        }
        let mut event = Event::Arrived { handle, call };
        let mut commands = std::mem::take(&mut self.commands);
        let outcome = loop {
            commands.clear();
            let now = if self.reads_clock() { driver.now() } else { Nanos::ZERO };
            self.step(now, event, &mut commands);
            let (last, copies) = commands.split_last().expect("a step concludes with a command");
            driver.decided(self, copies);
            for command in copies {
                driver.began(command);
                let Command::Copy { from, to, length } = *command else {
                    unreachable!("the stack has seen to it that only copies come before the end");
                };
                driver.copy(from, to, length);
                driver.ended(command);
            }
            driver.copied(self);
            driver.began(last);
            let next = match *last {
                Command::Answer(outcome) => Err(outcome),
                Command::Perform { handle, call, memory } => {
                    Ok(Event::Performed(driver.perform(handle, call, memory)))
                }
                Command::WakeAt(time) => {
                    driver.wait_until(time);
                    Ok(Event::Woke)
                }
                Command::Await => Ok(Event::Ended(driver.work_ended())),
                Command::Copy { .. } => unreachable!("a step does not conclude with a copy"),
            };
            driver.ended(last);
            match next {
                Ok(told) => event = told,
                Err(outcome) => break outcome,
            }
        };
        self.commands = commands;
        outcome
    }
}
