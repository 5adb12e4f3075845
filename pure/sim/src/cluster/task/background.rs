//! Commands in the background: each has a task of its own on the same process, and a ticket.

use super::{Command, Event, NONE, Outcome, Task, Ticket, Work};
use crate::cluster::{Cluster, EventQueue};

impl<Q: EventQueue<Event>> Cluster<Q> {
    /// Begins a command in the background; it takes over the task's list.
    pub(super) fn start_background(&mut self, id: u32, command: Command) -> u32 {
        let process = self.tasks.get(id).process;
        let child = self.tasks.take_slot(|| Task::of(process));
        let list = std::mem::take(&mut self.tasks.get_mut(id).list);
        let task = self.tasks.get_mut(child);
        (task.process, task.waiter) = (process, NONE);
        (task.list, task.command) = (list, Some(command));
        self.begin(child, Work::Command(command));
        child
    }

    pub(super) fn start_with_ticket(&mut self, id: u32, command: Command, ticket: Ticket) {
        let child = self.start_background(id, command);
        let process = self.tasks.get(id).process;
        self.processes[process as usize].tickets.push((ticket, child));
    }

    /// The task waits for what it began under this ticket, which the check has found.
    pub(super) fn await_ticket(&mut self, id: u32, ticket: Ticket) -> Outcome {
        let process = self.tasks.get(id).process;
        let tickets = &mut self.processes[process as usize].tickets;
        let place = tickets.iter().position(|held| held.0 == ticket);
        let (_, child) = tickets.swap_remove(place.expect("the command was checked"));
        self.await_background(id, child)
    }

    pub(super) fn await_background(&mut self, id: u32, child: u32) -> Outcome {
        if self.tasks.get(child).frames.is_empty() {
            self.tasks.remove(child);
            return Outcome::Done;
        }
        self.tasks.get_mut(child).waiter = id;
        Outcome::BlockedLast
    }

    pub(super) fn background_ended(&mut self, id: u32) {
        let waiter = self.tasks.get(id).waiter;
        if waiter != NONE {
            self.tasks.remove(id);
            self.go_on(waiter);
        }
    }
}
