//! What can go wrong with programs while they run: a command that cannot be, or a deadlock.

use super::deadlock::Deadlock;
use crate::program::Command;
use crate::world::Part;
use iolab_vocab::Refusal;
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

/// A message that nobody asked for before its receiver ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreceived {
    /// Index of the application.
    pub application: u32,
    /// Who was to receive it, within the application.
    pub rank: u32,
    /// Who sent it.
    pub from: u32,
    /// Its tag.
    pub tag: u32,
    /// All messages of the run that nobody received.
    pub count: u64,
}

/// Why a run did not come to its end.
#[derive(Clone, Debug, PartialEq)]
pub enum RunError {
    /// The platform cannot be, or cannot carry the programs.
    Platform(Refusal),
    /// A program gave a command that cannot be.
    Refused(Refused),
    /// Nothing is left to happen, but processes wait.
    Deadlock(Box<Deadlock>),
    /// All processes have ended, but messages were sent to nobody.
    Unreceived(Unreceived),
    /// A part would be busy until after the end of simulated time.
    Late(Part),
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
            RunError::Deadlock(deadlock) => deadlock.to_string(),
            RunError::Late(part) => {
                format!("simulated time ends after 584 years, and {part} is not done by then")
            }
            RunError::Unreceived(Unreceived { application, rank, from, tag, count }) => format!(
                "application {application}, rank {rank}: ended without receiving a message of \
                 rank {from} (tag {tag}); {count} in all were not received"
            ),
        }
    }

    /// A way out.
    pub fn hint(&self) -> &str {
        match self {
            RunError::Platform(error) => &error.hint,
            RunError::Refused(refused) => &refused.hint,
            RunError::Deadlock(deadlock) => deadlock.hint(),
            RunError::Late(_) => {
                "check its rates and times in the platform, and the sizes asked of it"
            }
            RunError::Unreceived(_) => "give every send a receive of the same tag and communicator",
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nhint: {}", self.message(), self.hint())
    }
}

impl std::error::Error for RunError {}

impl From<Refusal> for RunError {
    fn from(error: Refusal) -> RunError {
        RunError::Platform(error)
    }
}

impl From<RunError> for Refusal {
    fn from(error: RunError) -> Refusal {
        Refusal { message: error.message(), hint: error.hint().to_owned() }
    }
}
