//! What can go wrong with programs while they run: a command that cannot be, or a standstill.

use super::stuck::Stuck;
use crate::platform::PlatformError;
use crate::program::Command;
use std::fmt;

/// A command that makes no sense where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// Index of the application.
    pub application: u32,
    /// Whose command it is, within the application.
    pub rank: u32,
    /// The command.
    pub command: Command,
    /// What is wrong with it, naming the offender.
    pub message: String,
    /// A way out.
    pub hint: String,
}

/// Why a run did not come to its end.
#[derive(Clone, Debug, PartialEq)]
pub enum RunError {
    /// The platform cannot be, or cannot carry the programs.
    Platform(PlatformError),
    /// A program gave a command that cannot be.
    Refused(Refused),
    /// Nothing is left to happen, but processes wait.
    Stuck(Stuck),
}

impl RunError {
    /// What happened, naming the offender.
    pub fn message(&self) -> String {
        match self {
            RunError::Platform(error) => error.message.clone(),
            RunError::Refused(refused) => {
                let Refused { application, rank, command, message, .. } = refused;
                format!("application {application}, rank {rank}: {command}: {message}")
            }
            RunError::Stuck(stuck) => stuck.to_string(),
        }
    }

    /// A way out.
    pub fn hint(&self) -> &str {
        match self {
            RunError::Platform(error) => &error.hint,
            RunError::Refused(refused) => &refused.hint,
            RunError::Stuck(stuck) => stuck.hint(),
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nhint: {}", self.message(), self.hint())
    }
}

impl std::error::Error for RunError {}

impl From<PlatformError> for RunError {
    fn from(error: PlatformError) -> RunError {
        RunError::Platform(error)
    }
}
