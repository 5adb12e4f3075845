//! How a deadlock is looked into: one pass over everything that is not finished, each thing told
//! to the task that waits for it.

use super::{Deadlock, Reason, Waiting};
use crate::process::{Files, MatchContext, Meeting, Process, ProcessId, Processes, Purpose};
use crate::queue::EventQueue;
use crate::slab::Id;
use crate::world::{Event, TaskId, World};
use iolab_vocab::Direction;
use std::collections::BTreeMap;

/// By task, what it waits for.
pub(crate) type Reasons = BTreeMap<TaskId, Vec<Reason>>;

impl<F: Files> Processes<'_, F> {
    /// Explains why processes have not ended although nothing is left to happen; `tell_of_servers` adds
    /// who waits for which.
    pub(crate) fn diagnose<Q: EventQueue<Event>>(
        &self,
        world: &World<Q, F::Content>,
        tell_of_servers: impl FnOnce(&mut Reasons),
    ) -> Deadlock {
        let waiting = self.all_waiting(self.reasons(world, tell_of_servers));
        let place = |process: &ProcessId| {
            let process = &self.processes[process.index()];
            (process.application, process.rank)
        };
        Deadlock {
            at: world.now(),
            cycle: find_cycle(&waiting),
            waiting,
            crashed: self.crashed.iter().map(place).collect(),
            faults: world.lasting_faults(),
            server_names: Vec::new(),
            has_several_applications: self.applications().count() > 1,
        }
    }

    fn reasons<Q: EventQueue<Event>>(
        &self,
        world: &World<Q, F::Content>,
        tell_of_servers: impl FnOnce(&mut Reasons),
    ) -> Reasons {
        let mut reasons = Reasons::new();
        self.tell_of_messages(&mut reasons);
        self.tell_of_meetings(&mut reasons);
        tell_of_servers(&mut reasons);
        for task in world.messages().filter_map(|message| message.sender) {
            let told = reasons.entry(task).or_default();
            if told.is_empty() {
                told.push(Reason::Departure);
            }
        }
        self.tell_of_parts(&mut reasons);
        reasons
    }

    fn all_waiting(&self, mut reasons: Reasons) -> Vec<Waiting> {
        let mut waiting = BTreeMap::new();
        // A process's own task comes first; if that has ended, something else may not have.
        for (id, task) in self.tasks.live().filter(|(_, task)| task.is_at_work()) {
            waiting.entry(task.process).or_insert_with(|| {
                let &Process { application, rank, .. } = &self.processes[task.process.index()];
                let reasons = reasons.remove(&id).unwrap_or_default();
                Waiting { application, rank, command: task.command, reasons }
            });
        }
        waiting.into_values().collect()
    }

    /// Who waits for another task of its process waits for what that one waits for.
    fn tell_of_parts(&self, reasons: &mut Reasons) {
        for (id, task) in self.tasks.live().filter(|(_, task)| task.is_at_work()) {
            if let Some(waiter) = task.waiter {
                let told = reasons.get(&id).cloned().unwrap_or_default();
                reasons.entry(waiter).or_default().extend(told);
            }
        }
    }

    fn tell_of_messages(&self, reasons: &mut Reasons) {
        for (wanted, id) in self.processes.iter().flat_map(|process| &process.receives) {
            let from = wanted.from.map(|process| self.rank_of(process));
            reasons.entry(*id).or_default().push(match (wanted.context, from) {
                (MatchContext::Collective(_) | MatchContext::File(_), Some(from)) => {
                    Reason::Part { from }
                }
                (_, from) => Reason::Message { from, tag: wanted.tag },
            });
        }
        for (_, offer) in self.offers.live() {
            if let Some(receiver) = offer.receiver {
                let from = Some(self.rank_of(offer.from));
                let reason = Reason::Message { from, tag: offer.tag };
                reasons.entry(receiver).or_default().push(reason);
            } else if self.tasks.get(offer.sender).offer.is_some() {
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
