//! What each step of each command does.

use super::message::{Envelope, MatchContext};
use super::point::Address;
use super::{Event, Files, Outcome, Processes, Work};
use crate::program::{ANY_SOURCE, Command, Communicator, What};
use crate::queue::EventQueue;
use crate::world::TaskId;
use crate::world::World;

impl<F: Files> Processes<'_, F> {
    /// Takes the next step of the task's top piece of work.
    pub(crate) fn perform<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
    ) -> Outcome<F::Work> {
        let frame = self.top(id);
        let step = frame.step;
        frame.step += 1;
        match frame.work {
            Work::Command(command) => self.command_step(world, id, command, step),
            Work::Meet(group, purpose) => self.meet(world, id, group, purpose),
            Work::Collective(..) => self.machine_step(world, id, step),
            Work::Files(_) => F::work_step(self, world, id, step),
        }
    }

    fn command_step<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
        command: Command,
        step: u32,
    ) -> Outcome<F::Work> {
        if let Some(ticket) = command.ticket {
            self.start_with_ticket(world, id, command.what.awaited(), ticket);
            return Outcome::Done;
        }
        match command.what {
            What::Compute { .. } => Outcome::Done,
            What::Idle { nanos } => {
                world.rest(self.node_of(id), id, nanos);
                Outcome::BlockedLast
            }
            What::File { file, operation } => F::step(self, world, id, file, operation, step),
            What::Wait(ticket) => self.await_ticket(id, ticket),
            What::Send { to, tag, bytes, communicator } => {
                let address = self.address(id, communicator, to, tag);
                self.send_step(world, id, address, bytes, step)
            }
            What::Receive { from, tag, communicator } => {
                let wanted = self.wanted(id, communicator, from, tag);
                self.receive_step(world, id, wanted, step)
            }
            What::SendReceive { .. } => self.send_receive_step(world, id, command.what, step),
            What::Collective { kind, root, bytes, communicator } => {
                self.begin_collective(id, communicator, kind, root, bytes)
            }
            What::Alltoallv { communicator } => self.begin_alltoallv(id, communicator),
        }
    }

    fn address(&self, id: TaskId, communicator: Communicator, to: u32, tag: u32) -> Address {
        let group = self.group_of(id, communicator);
        let to = self.group(group).process(to);
        Address { to, tag, context: MatchContext::Point(group) }
    }

    fn wanted(&self, id: TaskId, communicator: Communicator, from: u32, tag: u32) -> Envelope {
        let group = self.group_of(id, communicator);
        let from = match from {
            ANY_SOURCE => None,
            rank => Some(self.group(group).process(rank)),
        };
        Envelope { from, tag, context: MatchContext::Point(group) }
    }

    /// An eager send and the receive are one set. A larger send must go on whether or not the
    /// message awaited has come, so it goes to the background.
    fn send_receive_step<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
        what: What,
        step: u32,
    ) -> Outcome<F::Work> {
        let What::SendReceive { to, send_tag: tag, bytes, from, receive_tag, communicator } = what
        else {
            unreachable!("only called for this command");
        };
        if bytes <= self.eager_bytes {
            if step == 0 {
                let address = self.address(id, communicator, to, tag);
                self.send_point(world, id, address, bytes);
            }
            let wanted = self.wanted(id, communicator, from, receive_tag);
            return self.receive_step(world, id, wanted, step);
        }
        if step == 0 {
            let send = What::Send { to, tag, bytes, communicator };
            let part = self.start_background(world, id, send.awaited());
            self.tasks.get_mut(id).part = Some(part);
            let receive = What::Receive { from, tag: receive_tag, communicator };
            return Outcome::Nested(Work::Command(receive.awaited()));
        }
        let part = self.tasks.get_mut(id).part.take().expect("it was begun in the step before");
        self.await_background(id, part)
    }
}
