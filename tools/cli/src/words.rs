//! What is said of words that are no command: help, the version, or what is wrong with them.

use crate::failure::Failure;
use crate::say;
use clap::error::{ContextKind, ErrorKind};
use std::error::Error;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::process::ExitCode;

/// What is no command: help, the version, or words that cannot be understood.
pub(crate) fn told(message: &clap::Error) -> ExitCode {
    if message.kind() == ErrorKind::InvalidUtf8 {
        eprintln!("{}", not_unicode());
        return ExitCode::from(WRONG_WORDS);
    }
    if let Some(refusal) = no_number(message) {
        eprintln!("{refusal}");
        return ExitCode::from(WRONG_WORDS);
    }
    if message.use_stderr() {
        message.exit();
    }
    match say::written(message.print()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            failure.exit_code()
        }
    }
}

/// The exit code of clap for words that it does not understand.
const WRONG_WORDS: u8 = 2;

/// Which words of the command line may be meant, as clap does not say it.
fn not_unicode() -> Failure {
    let ours = std::env::args_os().take_while(|word| word != "--");
    let words: Vec<_> = ours
        .filter(|word| word.to_str().is_none())
        .map(|word| format!("`{}`", word.to_string_lossy()))
        .collect();
    Failure::new(format!("{} is no Unicode (UTF-8), and has to be here", words.join(" or ")))
        .hint("names of files that are none are taken where they are words of their own; else give a link to it")
}

/// A word where a number is wanted. What the standard library says of it is for programmers.
fn no_number(message: &clap::Error) -> Option<Failure> {
    let why = message.source()?;
    let what = match why.downcast_ref::<ParseIntError>().map(ParseIntError::kind) {
        Some(IntErrorKind::PosOverflow | IntErrorKind::NegOverflow) => "is too large a number for",
        Some(_) => "is no whole number, as it has to be for",
        None if why.is::<ParseFloatError>() => "is no number, as it has to be for",
        None => return None,
    };
    let word = message.get(ContextKind::InvalidValue)?;
    let option = message.get(ContextKind::InvalidArg)?;
    let hint = "`--help` behind the command tells of each option";
    Some(Failure::new(format!("`{word}` {what} {option}")).hint(hint))
}
