//! What calls come to.

use super::events::{Action, CallNumber, Done, Failure, Outcome};
use crate::{Code, Message, Party};

pub(super) fn answer(call: CallNumber, outcome: Outcome, out: &mut Vec<Action>) {
    out.push(Action::Answer { call, outcome });
}

pub(super) fn failed(code: Code, text: impl Into<String>) -> Failure {
    Failure { code, text: text.into() }
}

pub(super) fn failure(code: Code, text: impl Into<String>) -> Outcome {
    Err(failed(code, text))
}

pub(super) fn not_open() -> Outcome {
    failure(Code::BAD_FILE, "the file is not open")
}

/// The failure that a reply tells of; one that is no answer to the question is a failure, too.
pub(super) fn failure_of(from: Party, message: Message) -> Failure {
    match message {
        Message::Failed { code, text } if text.is_empty() => {
            failed(code, format!("{from}: {code}"))
        }
        Message::Failed { code, text } => failed(code, format!("{from}: {text}")),
        _ => failed(Code::BAD_MESSAGE, format!("{from} answered something else")),
    }
}

/// What the manager's answer comes to.
pub(super) fn outcome_of(from: Party, message: Message) -> Outcome {
    match message {
        Message::Done => Ok(Done::Nothing),
        Message::Opened(opened) => Ok(Done::Opened(opened)),
        Message::Position { units } => Ok(Done::Position(units)),
        Message::Entries { entries, more } => Ok(Done::Entries { entries, more }),
        message => Err(failure_of(from, message)),
    }
}
