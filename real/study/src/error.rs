//! Why a study ends: what is wrong, and a way out where there is one.

use iolab_vocab::Refusal;
use std::fmt;

/// Why a study, or a step of it, ended. It reads as the command tells it.
///
/// ```
/// use iolab_study::StudyError;
/// let error = StudyError::new("/mnt cannot be set aside").hint("give a directory below it");
/// let told = "error: /mnt cannot be set aside\nhint: give a directory below it";
/// assert_eq!(error.to_string(), told);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudyError {
    /// What is wrong, naming the offender.
    pub message: String,
    /// The way out, if there is one.
    pub hint: Option<String>,
}

impl StudyError {
    /// An error without a way out of its own.
    pub fn new(message: impl fmt::Display) -> StudyError {
        StudyError { message: message.to_string(), hint: None }
    }

    /// The same error with a way out.
    pub fn hint(self, hint: impl fmt::Display) -> StudyError {
        StudyError { hint: Some(hint.to_string()), ..self }
    }
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for StudyError {}

impl From<Refusal> for StudyError {
    fn from(Refusal { message, hint }: Refusal) -> StudyError {
        StudyError { message, hint: Some(hint) }
    }
}
