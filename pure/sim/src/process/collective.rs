//! Collective operations: the machines of `policy::collective`, one per rank and call.

use super::meeting::Purpose;
use super::message::{Envelope, MatchContext};
use super::point::Address;
use super::{Event, Files, GroupId, Outcome, Processes, Work};
use crate::program::Communicator;
use crate::queue::EventQueue;
use crate::world::TaskId;
use crate::world::World;
use iolab_policy::Machine;
use iolab_policy::collective::{
    self, Action, Alltoall, Collective, CollectiveKind, FileCall, Shape, Sizes,
};

/// Payload of the allgather in which ranks tell each other their spans.
const SPAN_BYTES: u64 = 16;

impl<F: Files> Processes<'_, F> {
    /// The rank of the task's process in a group it belongs to.
    pub(crate) fn rank_in(&self, id: TaskId, group: GroupId) -> u32 {
        let process = self.tasks.get(id).process;
        self.group(group).rank(process).expect("the command was checked")
    }

    fn shape(&self, id: TaskId, group: GroupId, root: u32, bytes: u64) -> Shape {
        let rank_count = self.group(group).rank_count();
        let (rank, eager_bytes) = (self.rank_in(id, group), self.eager_bytes);
        Shape { rank, rank_count, root, bytes, eager_bytes }
    }

    /// A command of messages, by the algorithm chosen for this run.
    pub(crate) fn messages(
        &self,
        id: TaskId,
        group: GroupId,
        kind: CollectiveKind,
        root: u32,
        bytes: u64,
    ) -> Work<F::Work> {
        let shape = self.shape(id, group, root, bytes);
        let own = self.own.messages(kind, shape);
        match own.or_else(|| self.collectives.build(kind, shape)) {
            Some(machine) => Work::Collective(machine, group, Sizes::of(shape)),
            None => Work::Meet(group, Purpose::Barrier),
        }
    }

    /// One rank's machine of a collective access, by the algorithm chosen for this run.
    pub(crate) fn file_machine(&self, call: &FileCall) -> Box<dyn Collective> {
        let own = self.own.file(call);
        own.unwrap_or_else(|| self.collectives.build_file(call.clone()))
    }

    pub(crate) fn exchange_spans(&self, id: TaskId, group: GroupId) -> Outcome<F::Work> {
        Outcome::Nested(self.messages(id, group, CollectiveKind::Allgather, 0, SPAN_BYTES))
    }

    /// The algorithm chosen for the command takes its place.
    pub(crate) fn begin_collective(
        &mut self,
        id: TaskId,
        communicator: Communicator,
        kind: CollectiveKind,
        root: u32,
        bytes: u64,
    ) -> Outcome<F::Work> {
        let group = self.group_of(id, communicator);
        let work = self.messages(id, group, kind, root, bytes);
        let frame = self.top(id);
        (frame.work, frame.step) = (work, 0);
        Outcome::Wait
    }

    /// The one alltoall whose lengths differ; they stand in the task's list.
    pub(crate) fn begin_alltoallv(
        &mut self,
        id: TaskId,
        communicator: Communicator,
    ) -> Outcome<F::Work> {
        let group = self.group_of(id, communicator);
        let machine = Alltoall::new(self.shape(id, group, 0, 0));
        let lengths = self.tasks.get(id).list.iter().map(|extent| extent.length).collect();
        let sizes = Sizes { lengths, ..Sizes::default() };
        let frame = self.top(id);
        (frame.work, frame.step) = (Work::Collective(Box::new(machine), group, sizes), 0);
        Outcome::Wait
    }

    /// The next round of the machine on top.
    pub(crate) fn machine_step<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
        step: u32,
    ) -> Outcome<F::Work> {
        let mut moves = std::mem::take(&mut self.moves);
        let Work::Collective(machine, group, sizes) = &mut self.top(id).work else {
            unreachable!("only this work has a machine of messages");
        };
        machine.step(world.now(), round(step), &mut moves);
        let (group, sizes) = (*group, sizes.clone());
        let context = MatchContext::Collective(group);
        let mut outcome = Outcome::Wait;
        for action in moves.drain(..) {
            match action {
                Action::Finish => outcome = Outcome::WaitLast,
                action => self.carry_out(world, id, group, context, &sizes, action),
            }
        }
        self.moves = moves;
        outcome
    }

    /// Carries out what a machine wants of messages.
    pub(crate) fn carry_out<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
        group: GroupId,
        context: MatchContext,
        sizes: &Sizes,
        action: Action,
    ) {
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
            other => unreachable!("{other:?} is about no message"),
        }
    }
}

/// What begins a round of a machine.
pub(crate) fn round(step: u32) -> collective::Event {
    match step {
        0 => collective::Event::Began,
        _ => collective::Event::RoundCompleted,
    }
}
