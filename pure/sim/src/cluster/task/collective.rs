//! Collective operations: the machines of `policy::collective`, one per rank and call.

use super::meeting::Purpose;
use super::point::Address;
use super::{Event, Outcome, Work};
use crate::cluster::packet::{Envelope, MatchContext};
use crate::cluster::{Cluster, EventQueue};
use crate::program::{Communicator, File};
use iolab_policy::Machine;
use iolab_policy::collective::{
    self, Action, Alltoall, Collective, CollectiveKind, FileCall, Shape, Sizes,
};
use iolab_vocab::Extent;

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

    pub(super) fn exchange_spans(&self, id: u32, group: u32) -> Outcome {
        Outcome::Nested(self.messages(id, group, CollectiveKind::Allgather, 0, SPAN_BYTES))
    }

    /// The algorithm chosen for the command takes its place.
    pub(super) fn begin_collective(
        &mut self,
        id: u32,
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
    pub(super) fn begin_alltoallv(&mut self, id: u32, communicator: Communicator) -> Outcome {
        let group = self.group_of(id, communicator);
        let machine = Alltoall::new(self.shape(id, group, 0, 0));
        let lengths = self.tasks.get(id).list.iter().map(|extent| extent.length).collect();
        let sizes = Sizes { lengths, ..Sizes::default() };
        let frame = self.top(id);
        (frame.work, frame.step) = (Work::Collective(Box::new(machine), group, sizes), 0);
        Outcome::Wait
    }

    /// The next round of the machine on top.
    pub(super) fn machine_step(&mut self, id: u32, step: u32) -> Outcome {
        let event = match step {
            0 => collective::Event::Began,
            _ => collective::Event::RoundCompleted,
        };
        let mut moves = std::mem::take(&mut self.moves);
        let frame = self.tasks.get_mut(id).frames.last_mut();
        let outcome = match &mut frame.expect("a task that works has a frame").work {
            Work::Collective(machine, group, sizes) => {
                machine.step(self.calendar.now, event, &mut moves);
                let (group, sizes) = (*group, sizes.clone());
                self.carry_out(id, &mut moves, group, MatchContext::Collective(group), &sizes)
            }
            Work::FileCollective(.., is_announced @ true) => {
                *is_announced = false;
                self.send_write_data(id);
                Outcome::Wait
            }
            Work::FileCollective(machine, file, sizes, is_announced) => {
                machine.step(self.calendar.now, event, &mut moves);
                *is_announced = moves.iter().any(|action| matches!(action, Action::WriteFile(_)));
                let (file, sizes) = (*file, sizes.clone());
                let group = self.group_of_file(id, file);
                self.carry_out(id, &mut moves, group, MatchContext::File(file), &sizes)
            }
            Work::Command(_) | Work::Meet(..) => unreachable!("these have no machine"),
        };
        self.moves = moves;
        outcome
    }

    fn carry_out(
        &mut self,
        id: u32,
        moves: &mut Vec<Action>,
        group: u32,
        context: MatchContext,
        sizes: &Sizes,
    ) -> Outcome {
        let mut outcome = Outcome::Wait;
        for action in moves.drain(..) {
            match action {
                Action::Send { to, tag, what } => {
                    let to = self.groups[group as usize].process(to);
                    let bytes = what.wire_bytes(sizes).expect("machines send what the call has");
                    self.send_point(id, Address { to, tag, context }, bytes);
                }
                Action::Receive { from, tag, .. } => {
                    let from = self.groups[group as usize].process(from);
                    self.receive_point(id, Envelope { from, tag, context });
                }
                Action::ReadFile(extents) => {
                    self.tasks.get_mut(id).list = extents;
                    self.request_reads(id, context.file());
                }
                Action::WriteFile(extents) => self.announce_writes(id, context.file(), extents),
                Action::PostWrite(extents) => {
                    self.announce_writes(id, context.file(), extents);
                    self.send_write_data(id);
                }
                Action::Finish => outcome = Outcome::WaitLast,
            }
        }
        outcome
    }

    fn announce_writes(&mut self, id: u32, file: File, extents: Vec<Extent>) {
        self.tasks.get_mut(id).list = extents;
        self.grow_file(id, file);
        self.request_writes(id, file);
    }
}
