//! Collective operations: the machines of `policy::collective`, one per rank and call.

use super::meeting::Purpose;
use super::point::Address;
use super::{Event, GroupId, Outcome, Processes, Work};
use crate::cluster::World;
use crate::cluster::message::{Envelope, MatchContext};
use crate::program::{Communicator, File};
use crate::queue::EventQueue;
use crate::world::TaskId;
use iolab_policy::Machine;
use iolab_policy::collective::{
    self, Action, Alltoall, Collective, CollectiveKind, FileCall, Shape, Sizes,
};
use iolab_vocab::Extent;

/// Payload of the allgather in which ranks tell each other their spans.
const SPAN_BYTES: u64 = 16;

impl Processes<'_> {
    /// The rank of the task's process in a group it belongs to.
    pub(super) fn rank_in(&self, id: TaskId, group: GroupId) -> u32 {
        let process = self.tasks.get(id).process;
        self.group(group).rank(process).expect("the command was checked")
    }

    fn shape(&self, id: TaskId, group: GroupId, root: u32, bytes: u64) -> Shape {
        let rank_count = self.group(group).rank_count();
        let (rank, eager_bytes) = (self.rank_in(id, group), self.eager_bytes);
        Shape { rank, rank_count, root, bytes, eager_bytes }
    }

    /// A command of messages, by the algorithm chosen for this run.
    pub(super) fn messages(
        &self,
        id: TaskId,
        group: GroupId,
        kind: CollectiveKind,
        root: u32,
        bytes: u64,
    ) -> Work {
        let shape = self.shape(id, group, root, bytes);
        let own = self.own.messages(kind, shape);
        match own.or_else(|| self.collectives.build(kind, shape)) {
            Some(machine) => Work::Collective(machine, group, Sizes::of(shape)),
            None => Work::Meet(group, Purpose::Barrier),
        }
    }

    /// One rank's machine of a collective access, by the algorithm chosen for this run.
    pub(super) fn file_machine(&self, call: &FileCall) -> Box<dyn Collective> {
        let own = self.own.file(call);
        own.unwrap_or_else(|| self.collectives.build_file(call.clone()))
    }

    pub(super) fn exchange_spans(&self, id: TaskId, group: GroupId) -> Outcome {
        Outcome::Nested(self.messages(id, group, CollectiveKind::Allgather, 0, SPAN_BYTES))
    }

    /// The algorithm chosen for the command takes its place.
    pub(super) fn begin_collective(
        &mut self,
        id: TaskId,
        communicator: Communicator,
        kind: CollectiveKind,
        root: u32,
        bytes: u64,
    ) -> Outcome {
        let group = self.group_of(id, communicator);
        let work = self.messages(id, group, kind, root, bytes);
        let frame = self.top(id);
        (frame.work, frame.step) = (work, 0);
        Outcome::Wait
    }

    /// The one alltoall whose lengths differ; they stand in the task's list.
    pub(super) fn begin_alltoallv(&mut self, id: TaskId, communicator: Communicator) -> Outcome {
        let group = self.group_of(id, communicator);
        let machine = Alltoall::new(self.shape(id, group, 0, 0));
        let lengths = self.tasks.get(id).list.iter().map(|extent| extent.length).collect();
        let sizes = Sizes { lengths, ..Sizes::default() };
        let frame = self.top(id);
        (frame.work, frame.step) = (Work::Collective(Box::new(machine), group, sizes), 0);
        Outcome::Wait
    }

    /// The next round of the machine on top.
    pub(super) fn machine_step<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
        step: u32,
    ) -> Outcome {
        let event = match step {
            0 => collective::Event::Began,
            _ => collective::Event::RoundCompleted,
        };
        let mut moves = std::mem::take(&mut self.moves);
        let frame = self.tasks.get_mut(id).frames.last_mut();
        let outcome = match &mut frame.expect("a task that works has a frame").work {
            Work::Collective(machine, group, sizes) => {
                machine.step(world.now(), event, &mut moves);
                let (group, sizes) = (*group, sizes.clone());
                self.carry_out(
                    world,
                    id,
                    &mut moves,
                    group,
                    MatchContext::Collective(group),
                    &sizes,
                )
            }
            Work::FileCollective(.., is_announced @ true) => {
                *is_announced = false;
                self.send_write_data(world, id);
                Outcome::Wait
            }
            Work::FileCollective(machine, file, sizes, is_announced) => {
                machine.step(world.now(), event, &mut moves);
                *is_announced = moves.iter().any(|action| matches!(action, Action::WriteFile(_)));
                let (file, sizes) = (*file, sizes.clone());
                let group = self.group_of_file(id, file);
                self.carry_out(world, id, &mut moves, group, MatchContext::File(file), &sizes)
            }
            Work::Command(_) | Work::Meet(..) => unreachable!("these have no machine"),
        };
        self.moves = moves;
        outcome
    }

    fn carry_out<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
        moves: &mut Vec<Action>,
        group: GroupId,
        context: MatchContext,
        sizes: &Sizes,
    ) -> Outcome {
        let mut outcome = Outcome::Wait;
        for action in moves.drain(..) {
            match action {
                Action::Send { to, tag, what } => {
                    let to = self.group(group).process(to);
                    let bytes = what.wire_bytes(sizes).expect("machines send what the call has");
                    self.send_point(world, id, Address { to, tag, context }, bytes);
                }
                Action::Receive { from, tag, .. } => {
                    let from = Some(self.group(group).process(from));
                    self.receive_point(id, Envelope { from, tag, context });
                }
                Action::ReadFile(extents) => {
                    self.tasks.get_mut(id).list = extents;
                    self.request_reads(world, id, context.file());
                }
                Action::WriteFile(extents) => {
                    self.announce_writes(world, id, context.file(), extents)
                }
                Action::PostWrite(extents) => {
                    self.announce_writes(world, id, context.file(), extents);
                    self.send_write_data(world, id);
                }
                Action::Finish => outcome = Outcome::WaitLast,
            }
        }
        outcome
    }

    fn announce_writes<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
        file: File,
        extents: Vec<Extent>,
    ) {
        self.clients.grow(file, &extents);
        self.tasks.get_mut(id).list = extents;
        self.request_writes(world, id, file);
    }
}
