//! A standstill explained: nothing is left to happen, but processes have not ended. Who waits for
//! whom, and where that goes round in a circle.

use super::event::Event;
use super::packet::{Kind, Lane, NONE};
use super::task::{Process, Purpose, Task};
use super::{Cluster, EventQueue};
use crate::program::{ANY_SOURCE, Choice, Command};
use iolab_vocab::{Direction, Nanos};
use std::fmt;

/// A run that came to a standstill.
#[derive(Clone, Debug, PartialEq)]
pub struct Stuck {
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
            Reason::Message { from: None, .. } | Reason::Server(_) | Reason::Departure => &[],
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
            Reason::Departure => write!(f, "its own message to leave"),
        }
    }
}

impl Stuck {
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

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.waiting.len();
        let wait = if count == 1 { "process waits" } else { "processes wait" };
        write!(f, "standstill at {:.9} s: {count} {wait}", self.at.seconds())?;
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

impl<Q: EventQueue<Event>> Cluster<Q> {
    /// Explains why processes have not ended although nothing is left to happen.
    pub(super) fn diagnose(&self) -> Stuck {
        let waiting: Vec<Waiting> =
            (0..self.processes.len() as u32).filter_map(|process| self.waiting(process)).collect();
        let cycle = find_cycle(&waiting);
        let has_several_applications = self.applications.len() > 1;
        let place = |process: &u32| {
            let process = &self.processes[*process as usize];
            (process.program, process.rank)
        };
        let crashed = self.ills.crashed.iter().map(place).collect();
        let (at, faults) = (self.calendar.now, self.ills.lasting());
        let server_names = Vec::new();
        Stuck { at, waiting, cycle, crashed, faults, server_names, has_several_applications }
    }

    /// A process's own task has its number; if that has ended, something else may not have.
    fn waiting(&self, process: u32) -> Option<Waiting> {
        let is_at_work = |task: &Task| task.process == process && !task.frames.is_empty();
        let (id, task) = match self.tasks.get(process) {
            own if is_at_work(own) => (process, own),
            _ => self.tasks.all().find(|(_, task)| is_at_work(task))?,
        };
        let mut reasons = Vec::new();
        self.explain(id, &mut reasons);
        let &Process { program, rank, .. } = &self.processes[process as usize];
        Some(Waiting { application: program, rank, command: task.command, reasons })
    }

    /// What the task waits for, itself or by waiting for another one of its process.
    fn explain(&self, id: u32, reasons: &mut Vec<Reason>) {
        self.explain_messages(id, reasons);
        self.explain_meetings(id, reasons);
        self.explain_servers(id, reasons);
        let departs = |message: &&super::packet::Message| message.sender == id;
        if reasons.is_empty() && self.messages.live().any(|message| departs(&message)) {
            reasons.push(Reason::Departure);
        }
        for (other, task) in self.tasks.all() {
            if task.waiter == id && !task.frames.is_empty() {
                self.explain(other, reasons);
            }
        }
    }

    fn rank_of(&self, process: u32) -> u32 {
        self.processes[process as usize].rank
    }

    fn explain_messages(&self, id: u32, reasons: &mut Vec<Reason>) {
        let task = self.tasks.get(id);
        for (wanted, _) in
            self.processes[task.process as usize].receives.iter().filter(|held| held.1 == id)
        {
            let from = Some(wanted.from).filter(|from| *from != ANY_SOURCE);
            let from = from.map(|process| self.rank_of(process));
            reasons.push(match (wanted.lane, from) {
                (Lane::Collective(_) | Lane::File(_), Some(from)) => Reason::Part { from },
                (_, from) => Reason::Message { from, tag: wanted.tag },
            });
        }
        let is_offering = |offer: &&super::task::Offer| {
            offer.sender == id && offer.receiver == NONE && task.offer != NONE
        };
        for offer in self.offers.live().filter(is_offering) {
            reasons.push(Reason::Reply { to: self.rank_of(offer.to), tag: offer.tag });
        }
        for offer in self.offers.live().filter(|offer| offer.receiver == id) {
            let from = Some(self.rank_of(self.tasks.get(offer.sender).process));
            reasons.push(Reason::Message { from, tag: offer.tag });
        }
    }

    fn explain_meetings(&self, id: u32, reasons: &mut Vec<Reason>) {
        for group in &self.groups {
            for meeting in group.meetings.iter().filter(|one| one.waiting.contains(&id)) {
                let missing = meeting.present.iter().zip(0..).filter(|(is_here, _)| !**is_here);
                let missing = missing.map(|(_, rank)| self.rank_of(group.process(rank)));
                let purpose = match meeting.purpose {
                    Purpose::Barrier => "barrier".to_owned(),
                    Purpose::Open(file) => format!("opening of file {file}"),
                    Purpose::Close(file) => format!("closing of file {file}"),
                    Purpose::Access(file, Direction::Read) => format!("reading of file {file}"),
                    Purpose::Access(file, Direction::Write) => format!("writing of file {file}"),
                };
                reasons.push(Reason::Meeting { purpose, missing: missing.collect() });
            }
        }
    }

    /// The server whose messages enter the network at this station.
    fn server_that_enters(&self, entry: u32) -> Option<u32> {
        let enters = |server: &super::server::Server| {
            let node = &self.nodes[server.node as usize];
            node.departure == entry || node.internal == entry
        };
        self.servers.iter().position(enters).map(|index| index as u32)
    }

    fn explain_servers(&self, id: u32, reasons: &mut Vec<Reason>) {
        let mut servers: Vec<u32> = Vec::new();
        let requests = self.requests.live().filter(|request| request.task == id);
        servers.extend(requests.map(|request| request.server));
        for (server, index) in self.servers.iter().zip(0..) {
            servers.extend(server.syncs.contains(&id).then_some(index));
        }
        let lost = self.messages.live().filter_map(|message| match message.kind {
            Kind::Sync { task, .. } if task == id => Some(self.server_at(message.target)),
            Kind::ReadData { task, .. } | Kind::WriteDone { task } | Kind::SyncDone { task }
                if task == id =>
            {
                self.server_that_enters(message.entry)
            }
            _ => None,
        });
        servers.extend(lost);
        servers.sort_unstable();
        servers.dedup();
        reasons.extend(servers.into_iter().map(Reason::Server));
    }
}

/// A circle of processes that wait for each other, the first one found in order of ranks.
fn find_cycle(waiting: &[Waiting]) -> Vec<usize> {
    let place = |application: u32, rank: u32| {
        waiting.binary_search_by_key(&(application, rank), |one| (one.application, one.rank)).ok()
    };
    let awaited = |at: usize| {
        let ranks = waiting[at].reasons.iter().flat_map(Reason::ranks);
        ranks.filter_map(move |rank| place(waiting[at].application, *rank))
    };
    let mut is_known = vec![false; waiting.len()];
    for start in 0..waiting.len() {
        // The way from `start`, each with those it waits for that have not been looked at.
        let mut path = vec![(start, awaited(start))];
        while let Some((_, others)) = path.last_mut() {
            let Some(next) = others.next() else {
                path.pop();
                continue;
            };
            if let Some(begin) = path.iter().position(|one| one.0 == next) {
                return path[begin..].iter().map(|one| one.0).collect();
            }
            if !std::mem::replace(&mut is_known[next], true) {
                path.push((next, awaited(next)));
            }
        }
    }
    Vec::new()
}
