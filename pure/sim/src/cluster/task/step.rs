//! What each step of each command does.

use super::point::Address;
use super::{Event, Outcome, Work};
use crate::cluster::packet::{Envelope, MatchContext};
use crate::cluster::{Cluster, EventQueue};
use crate::program::{ANY_SOURCE, Command, Communicator, What};

impl<Q: EventQueue<Event>> Cluster<Q> {
    /// Takes the next step of the task's top piece of work.
    pub(super) fn perform(&mut self, id: u32) -> Outcome {
        let frame = self.top(id);
        let step = frame.step;
        frame.step += 1;
        match frame.work {
            Work::Command(command) => self.command_step(id, command, step),
            Work::Meet(group, purpose) => self.meet(id, group, purpose),
            Work::Collective(..) | Work::FileCollective(..) => self.machine_step(id, step),
        }
    }

    fn command_step(&mut self, id: u32, command: Command, step: u32) -> Outcome {
        if let Some(ticket) = command.ticket {
            self.start_with_ticket(id, command.what.awaited(), ticket);
            return Outcome::Done;
        }
        match command.what {
            What::Compute { .. } => Outcome::Done,
            What::Idle { nanos } => {
                self.calendar.post(nanos.0, self.node_of(id), Event::Rested(id));
                Outcome::BlockedLast
            }
            What::File { file, operation } => self.file_step(id, file, operation, step),
            What::Wait(ticket) => self.await_ticket(id, ticket),
            What::Send { to, tag, bytes, communicator } => {
                let address = self.address(id, communicator, to, tag);
                self.send_step(id, address, bytes, step)
            }
            What::Receive { from, tag, communicator } => {
                let wanted = self.wanted(id, communicator, from, tag);
                self.receive_step(id, wanted, step)
            }
            What::SendReceive { .. } => self.send_receive_step(id, command.what, step),
            What::Collective { kind, root, bytes, communicator } => {
                self.begin_collective(id, communicator, kind, root, bytes)
            }
            What::Alltoallv { communicator } => self.begin_alltoallv(id, communicator),
        }
    }

    fn address(&self, id: u32, communicator: Communicator, to: u32, tag: u32) -> Address {
        let group = self.group_of(id, communicator);
        let to = self.groups[group as usize].process(to);
        Address { to, tag, context: MatchContext::Point(group) }
    }

    fn wanted(&self, id: u32, communicator: Communicator, from: u32, tag: u32) -> Envelope {
        let group = self.group_of(id, communicator);
        let from = match from {
            ANY_SOURCE => ANY_SOURCE,
            rank => self.groups[group as usize].process(rank),
        };
        Envelope { from, tag, context: MatchContext::Point(group) }
    }

    /// An eager send and the receive are one set. A larger send must go on whether or not the
    /// message awaited has come, so it goes to the background.
    fn send_receive_step(&mut self, id: u32, what: What, step: u32) -> Outcome {
        let What::SendReceive { to, send_tag: tag, bytes, from, receive_tag, communicator } = what
        else {
            unreachable!("only called for this command");
        };
        if bytes <= self.eager_bytes {
            if step == 0 {
                let address = self.address(id, communicator, to, tag);
                self.send_point(id, address, bytes);
            }
            let wanted = self.wanted(id, communicator, from, receive_tag);
            return self.receive_step(id, wanted, step);
        }
        if step == 0 {
            let send = What::Send { to, tag, bytes, communicator };
            let part = self.start_background(id, send.awaited());
            self.tasks.get_mut(id).part = part;
            let receive = What::Receive { from, tag: receive_tag, communicator };
            return Outcome::Nested(Work::Command(receive.awaited()));
        }
        let part = self.tasks.get(id).part;
        self.await_background(id, part)
    }
}
