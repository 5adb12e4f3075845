//! What a user wrote and cannot be: the one error of all that is parsed and checked.

use std::fmt;

/// Why something that was asked for is refused, and a way out.
///
/// ```
/// use iolab_vocab::Refusal;
/// let refusal = Refusal::new("3 ranks share 2 files", "make ranks a multiple of files");
/// assert_eq!(refusal.to_string(), "3 ranks share 2 files\nhint: make ranks a multiple of files");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong, naming the offender and its place.
    pub message: String,
    /// The way out.
    pub hint: String,
}

impl Refusal {
    /// A refusal with its way out.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Refusal {
        Refusal { message: message.into(), hint: hint.into() }
    }

    /// The same as the outcome of whatever was asked for.
    pub fn refuse<T>(message: impl Into<String>, hint: impl Into<String>) -> Result<T, Refusal> {
        Err(Refusal::new(message, hint))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nhint: {}", self.message, self.hint)
    }
}

impl std::error::Error for Refusal {}
