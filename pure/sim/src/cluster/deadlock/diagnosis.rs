//! How a deadlock is looked into: one pass over everything that is not finished, each thing told
//! to the task that waits for it.

use super::{Deadlock, Reason, Waiting};
use crate::cluster::event::Event;
use crate::cluster::packet::{Kind, MatchContext, NONE};
use crate::cluster::server::Server;
use crate::cluster::task::{Meeting, Process, Purpose};
use crate::cluster::{Cluster, EventQueue};
use crate::program::ANY_SOURCE;
use iolab_vocab::Direction;
use std::collections::{BTreeMap, BTreeSet};

/// By task, what it waits for.
type Reasons = BTreeMap<u32, Vec<Reason>>;

impl<Q: EventQueue<Event>> Cluster<Q> {
    /// Explains why processes have not ended although nothing is left to happen.
    pub(in crate::cluster) fn diagnose(&self) -> Deadlock {
        let waiting = self.all_waiting();
        let place = |process: &u32| {
            let process = &self.processes[*process as usize];
            (process.program, process.rank)
        };
        Deadlock {
            at: self.calendar.now,
            cycle: find_cycle(&waiting),
            waiting,
            crashed: self.active_faults.crashed.iter().map(place).collect(),
            faults: self.active_faults.lasting(),
            server_names: Vec::new(),
            has_several_applications: self.applications.len() > 1,
        }
    }

    fn all_waiting(&self) -> Vec<Waiting> {
        let mut reasons = self.reasons();
        let mut waiting = BTreeMap::new();
        // A process's own task comes first; if that has ended, something else may not have.
        for (id, task) in self.tasks.all().filter(|(_, task)| !task.frames.is_empty()) {
            waiting.entry(task.process).or_insert_with(|| {
                let &Process { program, rank, .. } = &self.processes[task.process as usize];
                let reasons = reasons.remove(&id).unwrap_or_default();
                Waiting { application: program, rank, command: task.command, reasons }
            });
        }
        waiting.into_values().collect()
    }

    fn reasons(&self) -> Reasons {
        let mut reasons = Reasons::new();
        self.tell_of_messages(&mut reasons);
        self.tell_of_meetings(&mut reasons);
        self.tell_of_servers(&mut reasons);
        for message in self.messages.live().filter(|message| message.sender != NONE) {
            let told = reasons.entry(message.sender).or_default();
            if told.is_empty() {
                told.push(Reason::Departure);
            }
        }
        // Who waits for another task of its process waits for what that one waits for.
        for (id, task) in self.tasks.all() {
            if task.waiter != NONE && !task.frames.is_empty() {
                let told = reasons.get(&id).cloned().unwrap_or_default();
                reasons.entry(task.waiter).or_default().extend(told);
            }
        }
        reasons
    }

    fn rank_of(&self, process: u32) -> u32 {
        self.processes[process as usize].rank
    }

    fn tell_of_messages(&self, reasons: &mut Reasons) {
        for (wanted, id) in self.processes.iter().flat_map(|process| &process.receives) {
            let from = Some(wanted.from).filter(|from| *from != ANY_SOURCE);
            let from = from.map(|process| self.rank_of(process));
            reasons.entry(*id).or_default().push(match (wanted.context, from) {
                (MatchContext::Collective(_) | MatchContext::File(_), Some(from)) => {
                    Reason::Part { from }
                }
                (_, from) => Reason::Message { from, tag: wanted.tag },
            });
        }
        for offer in self.offers.live() {
            let sender = self.tasks.get(offer.sender);
            if offer.receiver != NONE {
                let from = Some(self.rank_of(sender.process));
                let reason = Reason::Message { from, tag: offer.tag };
                reasons.entry(offer.receiver).or_default().push(reason);
            } else if sender.offer != NONE {
                let reason = Reason::Reply { to: self.rank_of(offer.to), tag: offer.tag };
                reasons.entry(offer.sender).or_default().push(reason);
            }
        }
    }

    fn tell_of_meetings(&self, reasons: &mut Reasons) {
        for group in &self.groups {
            for meeting in &group.meetings {
                let missing = meeting.present.iter().zip(0..).filter(|(is_here, _)| !**is_here);
                let missing = missing.map(|(_, rank)| self.rank_of(group.process(rank)));
                let reason =
                    Reason::Meeting { purpose: purpose(meeting), missing: missing.collect() };
                for id in &meeting.waiting {
                    reasons.entry(*id).or_default().push(reason.clone());
                }
            }
        }
    }

    fn tell_of_servers(&self, reasons: &mut Reasons) {
        let mut unanswered = BTreeSet::new();
        unanswered.extend(self.requests.live().map(|request| (request.task, request.server)));
        for (server, index) in self.servers.iter().zip(0..) {
            unanswered.extend(server.syncs.iter().map(|task| (*task, index)));
        }
        for message in self.messages.live() {
            let (task, server) = match message.kind {
                Kind::Sync { task, .. } | Kind::Resize { task } => {
                    (task, Some(self.server_at(message.target)))
                }
                Kind::ReadData { task, .. } | Kind::WriteDone { task } | Kind::Done { task } => {
                    (task, self.server_that_enters(message.entry))
                }
                _ => continue,
            };
            unanswered.extend(server.map(|server| (task, server)));
        }
        for (task, server) in unanswered {
            reasons.entry(task).or_default().push(Reason::Server(server));
        }
    }

    /// The server whose messages enter the network at this hop.
    fn server_that_enters(&self, entry: u32) -> Option<u32> {
        let enters = |server: &Server| {
            let node = &self.nodes[server.node as usize];
            node.departure == entry || node.internal == entry
        };
        self.servers.iter().position(enters).map(|index| index as u32)
    }
}

fn purpose(meeting: &Meeting) -> String {
    match meeting.purpose {
        Purpose::Barrier => "barrier".to_owned(),
        Purpose::Open(file) => format!("opening of file {file}"),
        Purpose::Close(file) => format!("closing of file {file}"),
        Purpose::SetSize(file) => format!("another size of file {file}"),
        Purpose::Access(file, Direction::Read) => format!("reading of file {file}"),
        Purpose::Access(file, Direction::Write) => format!("writing of file {file}"),
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
