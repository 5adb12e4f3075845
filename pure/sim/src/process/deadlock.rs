//! A deadlock explained: nothing is left to happen, but processes have not ended. Who waits for
//! whom, and where that goes round in a circle.

mod diagnosis;

pub(crate) use diagnosis::Reasons;

use crate::program::{ANY_SOURCE, Choice, Command};
use iolab_vocab::Nanos;
use std::fmt;

/// A run that came to a deadlock.
#[derive(Clone, Debug, PartialEq)]
pub struct Deadlock {
    /// When the last thing happened.
    pub at: Nanos,
    /// Every process that has not ended, by application and rank.
    pub waiting: Vec<Waiting>,
    /// Processes that wait for each other in a circle, as indices into `waiting`; each waits for
    /// the next one, the last for the first. Empty when there is no circle.
    pub cycle: Vec<usize>,
    /// Application and rank of every process that crashed.
    pub crashed: Vec<(u32, u32)>,
    /// Faults that last, in the words of their scenario.
    pub faults: Vec<String>,
    /// What to call the servers, where there is something better than their numbers.
    pub server_names: Vec<String>,
    /// Whether there is more than one application, so that ranks need it to be told apart.
    pub has_several_applications: bool,
}

/// A process that has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// Index of the application.
    pub application: u32,
    /// The rank in it.
    pub rank: u32,
    /// What it is in the middle of.
    pub command: Option<Command>,
    /// What it waits for.
    pub reasons: Vec<Reason>,
}

/// Something that has not happened. Ranks are those of the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A message has not come.
    Message {
        /// From that rank, or anyone.
        from: Option<u32>,
        /// With that tag, or any.
        tag: u32,
    },
    /// A rank has not sent its part of a collective operation.
    Part {
        /// Which rank.
        from: u32,
    },
    /// A message above the eager limit was offered and not received.
    Reply {
        /// By which rank.
        to: u32,
        /// Its tag.
        tag: u32,
    },
    /// Ranks have not come to a meeting.
    Meeting {
        /// What it is for.
        purpose: String,
        /// Who is missing.
        missing: Vec<u32>,
    },
    /// A server has not answered.
    Server(u32),
    /// The file system has not answered.
    FileSystem,
    /// A message has not left.
    Departure,
}

impl Reason {
    /// The ranks it is up to.
    pub fn ranks(&self) -> &[u32] {
        match self {
            Reason::Message { from: Some(rank), .. }
            | Reason::Part { from: rank }
            | Reason::Reply { to: rank, .. } => std::slice::from_ref(rank),
            Reason::Meeting { missing, .. } => missing,
            Reason::Message { from: None, .. }
            | Reason::Server(_)
            | Reason::FileSystem
            | Reason::Departure => &[],
        }
    }
}

/// Lines and ranks a reader still reads.
const TOLD_MAX: usize = 16;

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Message { from, tag } => {
                let from = Choice("rank", from.unwrap_or(ANY_SOURCE));
                write!(f, "a message of {from} ({})", Choice("tag", *tag))
            }
            Reason::Part { from } => write!(f, "rank {from} to send its part"),
            Reason::Reply { to, tag } => write!(f, "rank {to} to receive its message (tag {tag})"),
            Reason::Meeting { purpose, missing } => {
                let told: Vec<_> = missing.iter().take(TOLD_MAX).map(u32::to_string).collect();
                let rank = if missing.len() == 1 { "rank" } else { "ranks" };
                write!(f, "{rank} {}", told.join(", "))?;
                if missing.len() > TOLD_MAX {
                    write!(f, " and {} more", missing.len() - TOLD_MAX)?;
                }
                write!(f, " to come to the {purpose}")
            }
            Reason::Server(server) => write!(f, "an answer of server {server}"),
            Reason::FileSystem => write!(f, "an answer of the file system"),
            Reason::Departure => write!(f, "its own message to leave"),
        }
    }
}

impl Deadlock {
    /// A way out.
    pub fn hint(&self) -> &'static str {
        if !self.faults.is_empty() {
            return "without the faults that last, or with an end to them, the run may go on";
        }
        match self.cycle.is_empty() {
            true => {
                "let every rank do what the others wait for: the same collective commands in the \
                 same order, a receive for every send"
            }
            false => {
                "break the cycle: let one rank receive before it sends, or begin one of the two in \
                 the background"
            }
        }
    }

    fn name(&self, application: u32, rank: u32) -> String {
        match self.has_several_applications {
            true => format!("application {application}, rank {rank}"),
            false => format!("rank {rank}"),
        }
    }

    fn tell(&self, reason: &Reason) -> String {
        match reason {
            Reason::Server(server) => match self.server_names.get(*server as usize) {
                Some(name) => format!("an answer of server `{name}`"),
                None => reason.to_string(),
            },
            _ => reason.to_string(),
        }
    }

    fn tell_cycle(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.cycle.first() else { return Ok(()) };
        let around = self.cycle.iter().chain([first]).map(|&one| &self.waiting[one]);
        let names: Vec<_> = around.map(|one| self.name(one.application, one.rank)).collect();
        write!(f, "\ncycle: {}", names.join(" -> "))
    }

    fn tell_faults(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = |all: &[String]| all[..all.len().min(TOLD_MAX)].join(", ");
        if !self.crashed.is_empty() {
            let name = |&(application, rank): &(u32, u32)| self.name(application, rank);
            write!(f, "\ncrashed: {}", told(&self.crashed.iter().map(name).collect::<Vec<_>>()))?;
        }
        if !self.faults.is_empty() {
            write!(f, "\nfaults that last: {}", told(&self.faults))?;
        }
        Ok(())
    }
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.waiting.len();
        let wait = if count == 1 { "process waits" } else { "processes wait" };
        write!(f, "deadlock at {:.9} s: {count} {wait}", self.at.seconds())?;
        for one in self.waiting.iter().take(TOLD_MAX) {
            write!(f, "\n  {}", self.name(one.application, one.rank))?;
            let reasons: Vec<_> = one.reasons.iter().map(|reason| self.tell(reason)).collect();
            match reasons.is_empty() {
                true => write!(f, " does not go on")?,
                false => write!(f, " waits for {}", reasons.join(" and "))?,
            }
            if let Some(command) = one.command {
                write!(f, " [{command}]")?;
            }
        }
        if count > TOLD_MAX {
            write!(f, "\n  and {} more", count - TOLD_MAX)?;
        }
        self.tell_cycle(f)?;
        self.tell_faults(f)
    }
}
