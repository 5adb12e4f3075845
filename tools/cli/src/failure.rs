//! How a command fails in front of a person: what is wrong, then a way out.

use iolab_vocab::{Refusal, printable};
use std::fmt;
use std::path::Path;
use std::process::ExitCode;

/// The exit code where the program ended with 0 and files of it are not yet where they belong, or are lost.
pub(crate) const LEFT: u8 = 4;

/// `error: …` and, where there is one, `hint: …`.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hint: Option<String>,
    code: Option<u8>,
}

impl Failure {
    /// A failure without a way out of its own.
    pub(crate) fn new(message: impl fmt::Display) -> Failure {
        Failure { message: message.to_string(), hint: None, code: None }
    }

    /// What is wrong with what a file says, or with words of the command line where there is none.
    pub(crate) fn of_file(file: Option<&Path>, error: Refusal) -> Failure {
        match file {
            Some(file) => {
                Failure::new(format!("{}: {}", file.display(), error.message)).hint(error.hint)
            }
            None => error.into(),
        }
    }

    /// What is wrong, without the way out.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The way out, where there is one.
    pub(crate) fn way_out(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The same failure with a further line.
    pub(crate) fn note(mut self, note: impl fmt::Display) -> Failure {
        self.message = format!("{}\n{note}", self.message);
        self
    }

    /// The same failure with an exit code of its own.
    pub(crate) fn code(mut self, code: u8) -> Failure {
        self.code = Some(code);
        self
    }

    /// The exit code of the command.
    pub(crate) fn exit_code(&self) -> ExitCode {
        self.code.map_or(ExitCode::FAILURE, ExitCode::from)
    }

    /// The same failure with a way out.
    pub(crate) fn hint(mut self, hint: impl fmt::Display) -> Failure {
        self.hint = Some(hint.to_string());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", shown(&self.message))?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {}", shown(hint)),
            None => Ok(()),
        }
    }
}

/// A message names files and words of others; its own lines and columns stay.
fn shown(text: &str) -> String {
    let columns = |line: &str| line.split('\t').map(printable).collect::<Vec<_>>().join("\t");
    text.split('\n').map(columns).collect::<Vec<_>>().join("\n")
}

impl From<Refusal> for Failure {
    fn from(error: Refusal) -> Failure {
        Failure::new(&error.message).hint(&error.hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_name_holds_does_not_reach_the_terminal() {
        let failure = Failure::new("no\u{1b}[31mfile:\tnone\r").note("line\u{7}").hint("a\u{9b}b");
        let expected = "error: no\\u{1b}[31mfile:\tnone\\r\nline\\u{7}\nhint: a\\u{9b}b";
        assert_eq!(failure.to_string(), expected);
    }
}
