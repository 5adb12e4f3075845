//! What must hold along the instructions of an application: files are open when they are used,
//! what is started is waited for, and a loop leaves things as it found them.

use super::{Application, FileRef, Instruction, Message, Operation, Transfer, Who};
use crate::program::{FileOperation, Ticket};
use iolab_vocab::Refusal;

/// What is open and under way at a place in the instructions, and for whom.
#[derive(Clone, Default, PartialEq)]
struct State {
    open: Vec<(FileRef, Who)>,
    started: Vec<(Ticket, Who)>,
}

/// Goes through the instructions once, each loop once.
pub(super) fn check(application: &Application, names: &[(FileRef, &str)]) -> Result<(), Refusal> {
    let mut state = State::default();
    let mut outside = Vec::new();
    for instruction in application.code.iter() {
        match instruction {
            Instruction::Enter(_) => {}
            Instruction::Loop { .. } => outside.push(state.clone()),
            Instruction::Again { .. } => {
                let before = outside.pop().unwrap_or_default();
                loop_leaves(&before, &state, names)?;
            }
            Instruction::Do { who, line, operation } => {
                state.pass(who, operation, names).map_err(|error| Refusal {
                    message: format!("line {line}: {}", error.message),
                    ..error
                })?;
            }
        }
    }
    if let Some((file, _)) = state.open.first() {
        let message = format!("file `{}` is never closed", name(*file, names));
        return Refusal::refuse(message, "close it at the end of the last phase that uses it");
    }
    match state.started.is_empty() {
        true => Ok(()),
        false => {
            Refusal::refuse("something is started that nothing waits for", "add `wait = NAME`")
        }
    }
}

fn loop_leaves(before: &State, after: &State, names: &[(FileRef, &str)]) -> Result<(), Refusal> {
    let differs = |(file, _): &&(FileRef, Who)| {
        before.open.iter().any(|one| one.0 == *file) != after.open.iter().any(|one| one.0 == *file)
    };
    if let Some((file, _)) = before.open.iter().chain(&after.open).find(differs) {
        let message = format!("a loop leaves file `{}` other than it found it", name(*file, names));
        return Refusal::refuse(
            message,
            "open and close a file both inside the loop or both outside",
        );
    }
    match before.started.len() == after.started.len() {
        true => Ok(()),
        false => {
            Refusal::refuse("a loop starts what it does not wait for", "wait inside the same loop")
        }
    }
}

fn name<'a>(file: FileRef, names: &[(FileRef, &'a str)]) -> &'a str {
    names.iter().find(|one| one.0 == file).map_or("?", |one| one.1)
}

/// Whether everyone of `some` is among `all`.
fn covers(all: &Who, some: &Who) -> bool {
    match (all, some) {
        (Who::All, _) => true,
        (Who::Only(_), Who::All) => false,
        (Who::Only(all), Who::Only(some)) => {
            all.iter().zip(some.iter()).all(|(all, some)| *all || !some)
        }
    }
}

impl State {
    fn pass(
        &mut self,
        who: &Who,
        operation: &Operation,
        names: &[(FileRef, &str)],
    ) -> Result<(), Refusal> {
        match operation {
            Operation::File(FileOperation::Open, file) => self.open(*file, who, names),
            Operation::File(operation, file) => {
                self.needs(*file, who, names)?;
                if *operation == FileOperation::Close {
                    self.open.retain(|one| one.0 != *file);
                }
                Ok(())
            }
            Operation::SetSize(file, _) => self.needs(*file, who, names),
            Operation::Transfer(Transfer { file, ticket, .. }) => {
                self.needs(*file, who, names)?;
                self.start(*ticket, who)
            }
            Operation::Message(Message { ticket, .. }) => self.start(*ticket, who),
            Operation::Wait(ticket) => self.wait(*ticket, who),
            _ => Ok(()),
        }
    }

    fn open(&mut self, file: FileRef, who: &Who, names: &[(FileRef, &str)]) -> Result<(), Refusal> {
        if self.open.iter().any(|one| one.0 == file) {
            let message = format!("file `{}` is open already", name(file, names));
            return Refusal::refuse(message, "close it first");
        }
        self.open.push((file, who.clone()));
        Ok(())
    }

    fn needs(&self, file: FileRef, who: &Who, names: &[(FileRef, &str)]) -> Result<(), Refusal> {
        match self.open.iter().find(|one| one.0 == file) {
            Some((_, openers)) if covers(openers, who) => Ok(()),
            Some(_) => {
                let message =
                    format!("file `{}` is not open on all ranks that come here", name(file, names));
                Refusal::refuse(message, "name by `only` those that opened it")
            }
            None => {
                let message = format!("file `{}` is not open here", name(file, names));
                Refusal::refuse(message, "give `{ open = NAME }` before it")
            }
        }
    }

    fn start(&mut self, ticket: Option<Ticket>, who: &Who) -> Result<(), Refusal> {
        let Some(ticket) = ticket else { return Ok(()) };
        if self.started.iter().any(|one| one.0 == ticket) {
            return Refusal::refuse(
                "the name it is started as is under way",
                "wait for it first, or take another name",
            );
        }
        self.started.push((ticket, who.clone()));
        Ok(())
    }

    fn wait(&mut self, ticket: Ticket, who: &Who) -> Result<(), Refusal> {
        match self.started.iter().position(|one| one.0 == ticket) {
            Some(at) if self.started[at].1 == *who => {
                self.started.remove(at);
                Ok(())
            }
            Some(_) => Refusal::refuse(
                "other ranks wait than have started it",
                "give both the same `only`",
            ),
            None => Refusal::refuse(
                "nothing is under way by that name here",
                "wait once for each start",
            ),
        }
    }
}
