//! Commands in the background: each has a task of its own on the same process, and a ticket.

use super::{Command, Event, Files, Outcome, Processes, Task, Ticket, Work};
use crate::queue::EventQueue;
use crate::slab::Id;
use crate::world::TaskId;
use crate::world::World;

impl<F: Files> Processes<'_, F> {
    /// Begins a command in the background; it takes over the task's list.
    pub(crate) fn start_background<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
        command: Command,
    ) -> TaskId {
        let process = self.tasks.get(id).process;
        let child = self.tasks.take_used(|| Task::of(process));
        let list = std::mem::take(&mut self.tasks.get_mut(id).list);
        let task = self.tasks.get_mut(child);
        (task.process, task.waiter) = (process, None);
        (task.list, task.command) = (list, Some(command));
        self.begin(world, child, Work::Command(command));
        child
    }

    pub(crate) fn start_with_ticket<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
        command: Command,
        ticket: Ticket,
    ) {
        let child = self.start_background(world, id, command);
        let process = self.tasks.get(id).process;
        self.processes[process.index()].tickets.push((ticket, child));
    }

    /// The task waits for what it began under this ticket, which the check has found.
    pub(crate) fn await_ticket(&mut self, id: TaskId, ticket: Ticket) -> Outcome<F::Work> {
        let process = self.tasks.get(id).process;
        let tickets = &mut self.processes[process.index()].tickets;
        let place = tickets.iter().position(|held| held.0 == ticket);
        let (_, child) = tickets.swap_remove(place.expect("the command was checked"));
        self.await_background(id, child)
    }

    pub(crate) fn await_background(&mut self, id: TaskId, child: TaskId) -> Outcome<F::Work> {
        if !self.tasks.get(child).is_at_work() {
            self.tasks.remove(child);
            return Outcome::Done;
        }
        self.tasks.get_mut(child).waiter = Some(id);
        Outcome::BlockedLast
    }

    pub(crate) fn background_ended<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
    ) {
        if let Some(waiter) = self.tasks.get(id).waiter {
            self.tasks.remove(id);
            self.go_on(world, waiter);
        }
    }
}
