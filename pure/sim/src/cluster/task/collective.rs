//! Collective operations: the machines of `policy::collective`, one per rank and call.

use super::meeting::Purpose;
use super::point::Address;
use super::{Event, Outcome, Work};
use crate::cluster::packet::{Envelope, Lane};
use crate::cluster::{Cluster, EventQueue};
use crate::program::Communicator;
use iolab_policy::collective::{self, Action, Alltoallv, Serves, Shape};

/// Payload of the allgather in which ranks tell each other their spans.
const SPAN_BYTES: u64 = 16;

impl<Q: EventQueue<Event>> Cluster<Q> {
    /// The rank of the task's process in a group it belongs to.
    pub(super) fn rank_in(&self, id: u32, group: u32) -> u32 {
        let process = self.tasks.get(id).process;
        self.groups[group as usize].rank(process).expect("the command was checked")
    }

    fn shape(&self, id: u32, group: u32, root: u32, bytes: u64) -> Shape {
        let rank_count = self.groups[group as usize].rank_count();
        let (rank, eager_bytes) = (self.rank_in(id, group), self.eager_bytes);
        Shape { rank, rank_count, root, bytes, eager_bytes }
    }

    /// A command of messages, by the algorithm chosen for this run.
    pub(super) fn messages(
        &self,
        id: u32,
        group: u32,
        serves: Serves,
        root: u32,
        bytes: u64,
    ) -> Work {
        let shape = self.shape(id, group, root, bytes);
        let own = self.own.messages(serves, shape);
        match own.or_else(|| self.collectives.build(serves, shape)) {
            Some(machine) => Work::Collective(machine, group),
            None => Work::Meet(group, Purpose::Barrier),
        }
    }

    pub(super) fn exchange_spans(&self, id: u32, group: u32) -> Outcome {
        Outcome::Nested(self.messages(id, group, Serves::Allgather, 0, SPAN_BYTES))
    }

    /// The algorithm chosen for the command takes its place.
    pub(super) fn begin_collective(
        &mut self,
        id: u32,
        communicator: Communicator,
        serves: Serves,
        root: u32,
        bytes: u64,
    ) -> Outcome {
        let group = self.group_of(id, communicator);
        let work = self.messages(id, group, serves, root, bytes);
        let frame = self.top(id);
        (frame.work, frame.step) = (work, 0);
        Outcome::Wait
    }

    /// The one alltoall whose lengths differ; they stand in the task's list.
    pub(super) fn begin_alltoallv(&mut self, id: u32, communicator: Communicator) -> Outcome {
        let group = self.group_of(id, communicator);
        let lengths = self.tasks.get(id).list.iter().map(|extent| extent.length).collect();
        let machine = Alltoallv::new(self.shape(id, group, 0, 0), lengths);
        let frame = self.top(id);
        (frame.work, frame.step) = (Work::Collective(Box::new(machine), group), 0);
        Outcome::Wait
    }

    /// The next round of the machine on top.
    pub(super) fn machine_step(&mut self, id: u32, step: u32) -> Outcome {
        let mut moves = std::mem::take(&mut self.moves);
        let task = self.tasks.get_mut(id);
        let frame = task.frames.last_mut().expect("a task that works has a frame");
        let outcome = match &mut frame.work {
            Work::Collective(machine, group) => {
                let event = match step {
                    0 => collective::Event::Began,
                    _ => collective::Event::Settled,
                };
                machine.step(event, &mut moves);
                let group = *group;
                self.carry_out(id, &moves, group, Lane::Collective(group))
            }
            Work::FileCollective(_, _, is_announced @ true) => {
                *is_announced = false;
                self.send_write_data(id);
                Outcome::Wait
            }
            Work::FileCollective(machine, file, is_announced) => {
                machine.step(collective::Event::Settled, &mut moves);
                task.list.clear();
                task.list.extend_from_slice(machine.extents());
                *is_announced = moves.contains(&Action::WriteFile);
                let file = *file;
                let group = self.group_of_file(id, file);
                self.carry_out(id, &moves, group, Lane::File(file))
            }
            Work::Command(_) | Work::Meet(..) => unreachable!("these have no machine"),
        };
        moves.clear();
        self.moves = moves;
        outcome
    }

    fn carry_out(&mut self, id: u32, moves: &[Action], group: u32, lane: Lane) -> Outcome {
        let mut outcome = Outcome::Wait;
        for action in moves {
            match *action {
                Action::Send { to, tag, bytes } => {
                    let to = self.groups[group as usize].process(to);
                    self.send_point(id, Address { to, tag, lane }, bytes);
                }
                Action::Receive { from, tag } => {
                    let from = self.groups[group as usize].process(from);
                    self.receive_point(id, Envelope { from, tag, lane });
                }
                Action::ReadFile => self.request_reads(id, lane.file()),
                Action::WriteFile => {
                    self.grow_file(id, lane.file());
                    self.request_writes(id, lane.file());
                }
                Action::PostWrite => {
                    self.grow_file(id, lane.file());
                    self.request_writes(id, lane.file());
                    self.send_write_data(id);
                }
                Action::Finish => outcome = Outcome::WaitLast,
            }
        }
        outcome
    }
}
