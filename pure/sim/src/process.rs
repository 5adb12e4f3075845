//! Processes and their tasks: commands in steps, nested where one is made of others.
//!
//! Every first step of a command, and every step entered after a wait, costs the processor one
//! instruction; a step that follows without waiting does not, and being completed costs nothing.
//! A process has one task of its own, and one more for each command it has begun and not awaited.

mod background;
mod check;
mod collective;
mod deadlock;
mod error;
mod files;
mod group;
mod ids;
mod meeting;
mod message;
mod notes;
mod place;
mod point;
mod step;

pub use deadlock::{Deadlock, Reason, Waiting};
pub use error::{Refused, RunError, Unreceived};

pub(crate) use collective::round;
pub(crate) use deadlock::Reasons;
pub(crate) use files::{Files, Wrong};
pub(crate) use group::Group;
pub(crate) use ids::{Caller, GroupId, OfferId, ProcessId};
pub(crate) use meeting::{Meeting, Purpose};
pub(crate) use message::{MatchContext, Message};
pub(crate) use place::Parts;
pub(crate) use point::Offer;

use crate::cluster::PolicyOverrides;
use crate::program::{Command, Communicator, File, Program, Ticket, What};
use crate::queue::EventQueue;
use crate::slab::{Id, Slab};
use crate::world::{Event, NodeId, Order, PayloadId, TaskId, World};
use iolab_pattern::Nest;
use iolab_policy::collective::{Access, Collective, CollectiveSelection, Costs, Sizes};
use iolab_vocab::{Extent, Nanos};
use message::Envelope;
use notes::Notes;
use std::collections::VecDeque;
use std::sync::Arc;

/// A process of an application.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) node: NodeId,
    pub(crate) rank: u32,
    /// Index of its application.
    pub(crate) application: u32,
    /// What it waits to receive, and the task that does.
    pub(crate) receives: VecDeque<(Envelope, TaskId)>,
    /// Messages and offers nobody has asked for yet.
    early: VecDeque<point::Early>,
    /// Commands begun and not awaited, and the task of each.
    tickets: Vec<(Ticket, TaskId)>,
}

/// A program, and where its communicators stand among all groups.
struct Application<'p> {
    program: Box<dyn Program + 'p>,
    first_group: u32,
    group_count: u32,
    /// When its last process has ended so far.
    end: Nanos,
}

/// A thread of command processing of one process.
pub(crate) struct Task<W> {
    pub(crate) process: ProcessId,
    /// What it was given to do, for diagnosis.
    pub(crate) command: Option<Command>,
    frames: Vec<Frame<W>>,
    /// What it waits for: so much has to leave or arrive.
    pub(crate) pending: u32,
    pub(crate) list: Vec<Extent>,
    /// What it has asked servers for, by the payloads of its requests.
    pub(crate) requests: Vec<PayloadId>,
    /// The collective access under way, once all ranks have met for it.
    pub(crate) access: Option<Arc<Access>>,
    /// The offer it has made, or that has come instead of the message awaited.
    pub(crate) offer: Option<OfferId>,
    /// The task of a part of this command that goes on in the background.
    part: Option<TaskId>,
    /// The task that waits for this one.
    pub(crate) waiter: Option<TaskId>,
}

impl<W> Task<W> {
    fn of(process: ProcessId) -> Task<W> {
        Task {
            process,
            command: None,
            frames: Vec::new(),
            pending: 0,
            list: Vec::new(),
            requests: Vec::new(),
            access: None,
            offer: None,
            part: None,
            waiter: None,
        }
    }

    /// Whether it has something to do.
    pub(crate) fn is_at_work(&self) -> bool {
        !self.frames.is_empty()
    }
}

/// A piece of work a task is in the middle of.
pub(crate) struct Frame<W> {
    pub(crate) work: Work<W>,
    pub(crate) step: u32,
    is_last: bool,
}

pub(crate) enum Work<W> {
    Command(Command),
    /// All processes of a group meet.
    Meet(GroupId, Purpose),
    /// Messages among the processes of a group.
    Collective(Box<dyn Collective>, GroupId, Sizes),
    /// What the client has of its own.
    Files(W),
}

/// What a step has come to.
pub(crate) enum Outcome<W> {
    /// Transfers are under way (or none were needed); then the next step.
    Wait,
    /// The same, but then the work is done.
    WaitLast,
    /// Another piece of work comes first, then the next step.
    Nested(Work<W>),
    /// Another piece of work remains; then this one is done.
    NestedLast(Work<W>),
    /// Somebody else will wake this task; then the next step.
    Blocked,
    /// The same, but then the work is done.
    BlockedLast,
    /// The work is done.
    Done,
}

/// All processes of a run.
pub(crate) struct Processes<'p, F: Files> {
    order: Order,
    pub(crate) processes: Vec<Process>,
    pub(crate) tasks: Slab<TaskId, Task<F::Work>>,
    applications: Vec<Application<'p>>,
    /// Communicators of all applications.
    pub(crate) groups: Vec<Group>,
    pub(crate) offers: Slab<OfferId, Offer>,
    pub(crate) clients: F,
    collectives: CollectiveSelection,
    own: Box<dyn PolicyOverrides>,
    eager_bytes: u64,
    /// What collective accesses may know of the platform.
    pub(crate) costs: Option<Costs>,
    /// Processes that have not ended.
    running_count: u32,
    /// Processes that stopped before their end.
    pub(crate) crashed: Vec<ProcessId>,
    /// The command that ended the run.
    refused: Option<Refused>,
    /// Commands under way, if they are noted.
    notes: Option<Notes>,
    pub(crate) moves: Vec<iolab_policy::collective::Action>,
}

impl<F: Files> Processes<'_, F> {
    /// Gives every process its first command.
    pub(crate) fn start<Q: EventQueue<Event>>(&mut self, world: &mut World<Q, F::Content>) {
        for process in 0..self.processes.len() {
            self.begin_next(world, ProcessId::of(process).task());
        }
    }

    /// Gives the task's process its next command.
    fn begin_next<Q: EventQueue<Event>>(&mut self, world: &mut World<Q, F::Content>, id: TaskId) {
        if self.refused.is_some() {
            return;
        }
        let now = world.now();
        let task = self.tasks.get_mut(id);
        let process = &self.processes[task.process.index()];
        task.list.clear();
        let application = &mut self.applications[process.application as usize];
        application.program.reached(process.rank, now);
        if let (Some(notes), Some(recorder)) = (&mut self.notes, world.recorder()) {
            notes.command_ended(recorder, task.process, now);
        }
        if let Some(command) = application.program.next(process.rank, &mut task.list) {
            // Whoever goes on at the same moment does so for the same cause.
            let cause = world.cause();
            self.begin_checked(world, id, command);
            world.because(cause);
        } else {
            self.running_count -= 1;
            application.end = now;
        }
    }

    fn begin<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
        work: Work<F::Work>,
    ) {
        let instructions = match work {
            Work::Command(Command { what: What::Compute { instructions }, .. }) => {
                instructions.max(1.0)
            }
            _ => 1.0,
        };
        self.tasks.get_mut(id).frames.push(Frame { work, step: 0, is_last: false });
        world.compute(self.node_of(id), id, instructions);
    }

    /// A task has rested, unless its process has crashed meanwhile.
    pub(crate) fn rested<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
    ) -> bool {
        let is_alive = self.tasks.get(id).is_at_work();
        if is_alive {
            self.go_on(world, id);
        }
        is_alive
    }

    /// The processor has done what the task's next step costs.
    pub(crate) fn take_steps<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
    ) {
        loop {
            match self.perform(world, id) {
                Outcome::Wait if self.tasks.get(id).pending > 0 => return,
                Outcome::Wait => {}
                Outcome::WaitLast if self.tasks.get(id).pending > 0 => {
                    return self.top(id).is_last = true;
                }
                Outcome::WaitLast | Outcome::Done => return self.finish(world, id),
                Outcome::Nested(work) => return self.begin(world, id, work),
                Outcome::NestedLast(work) => {
                    self.top(id).is_last = true;
                    return self.begin(world, id, work);
                }
                Outcome::Blocked => return,
                Outcome::BlockedLast => return self.top(id).is_last = true,
            }
        }
    }

    pub(crate) fn top(&mut self, id: TaskId) -> &mut Frame<F::Work> {
        self.tasks.get_mut(id).frames.last_mut().expect("a task that works has a frame")
    }

    /// The top piece of work is done: its parent goes on, or the next command begins.
    fn finish<Q: EventQueue<Event>>(&mut self, world: &mut World<Q, F::Content>, id: TaskId) {
        let task = self.tasks.get_mut(id);
        task.frames.pop();
        if task.is_at_work() {
            self.go_on(world, id);
        } else if id == task.process.task() {
            self.begin_next(world, id);
        } else {
            self.background_ended(world, id);
        }
    }

    /// Something the task waited for has left or arrived.
    #[inline]
    pub(crate) fn settle_one<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
    ) {
        let task = self.tasks.get_mut(id);
        task.pending -= 1;
        if task.pending == 0 {
            self.go_on(world, id);
        }
    }

    fn go_on<Q: EventQueue<Event>>(&mut self, world: &mut World<Q, F::Content>, id: TaskId) {
        match self.top(id).is_last {
            true => self.finish(world, id),
            false => world.compute(self.node_of(id), id, 1.0),
        }
    }

    pub(crate) fn node_of(&self, id: TaskId) -> NodeId {
        self.process_of(id).node
    }

    fn process_of(&self, id: TaskId) -> &Process {
        &self.processes[self.tasks.get(id).process.index()]
    }

    pub(crate) fn caller(&self, id: TaskId) -> Caller {
        Caller { process: self.tasks.get(id).process, task: id }
    }

    /// Number of a group, from an application's communicator.
    fn group_of(&self, id: TaskId, communicator: Communicator) -> GroupId {
        let application = self.process_of(id).application;
        GroupId(self.applications[application as usize].first_group + communicator)
    }

    /// The communicator that opens, closes and collectively accesses a file with this task.
    fn communicator_of(&self, id: TaskId, file: File) -> Communicator {
        let process = self.process_of(id);
        let program = &self.applications[process.application as usize].program;
        program.communicator_of(process.rank, file)
    }

    /// Number of its group.
    pub(crate) fn group_of_file(&self, id: TaskId, file: File) -> GroupId {
        self.group_of(id, self.communicator_of(id, file))
    }

    pub(crate) fn rank_of(&self, process: ProcessId) -> u32 {
        self.processes[process.index()].rank
    }

    pub(crate) fn group(&self, group: GroupId) -> &Group {
        &self.groups[group.index()]
    }

    /// All processes of a node stop where they are: their tasks wait for more than ever comes, and
    /// nobody finds them anywhere.
    pub(crate) fn crash(&mut self, node: NodeId) {
        let dead = |task: &Task<F::Work>| self.processes[task.process.index()].node == node;
        let at_work = self.tasks.live().filter(|(_, task)| dead(task) && task.is_at_work());
        let tasks: Vec<TaskId> = at_work.map(|(id, _)| id).collect();
        tasks.into_iter().for_each(|id| self.stop_task(id));
    }

    fn stop_task(&mut self, id: TaskId) {
        let task = self.tasks.get_mut(id);
        task.frames.clear();
        task.pending = u32::MAX;
        let process = task.process;
        if id == process.task() {
            self.running_count -= 1;
        }
        if !self.crashed.contains(&process) {
            self.crashed.push(process);
        }
        self.processes[process.index()].receives.clear();
        self.groups.iter_mut().for_each(|group| group.leave(process, id));
    }

    /// What the access of a task touches, if its program has that as a nest.
    pub(crate) fn view_of_program(&self, id: TaskId) -> Option<(Nest, u64, u64)> {
        let number = self.tasks.get(id).process;
        let process = &self.processes[number.index()];
        let is_in_background = id != number.task();
        let program = &self.applications[process.application as usize].program;
        (!is_in_background).then(|| program.view(process.rank)).flatten()
    }

    /// Tells program and recorder how much of a read the file has.
    pub(crate) fn tell_got(&mut self, id: TaskId, bytes: u64) {
        let number = self.tasks.get(id).process;
        let process = &self.processes[number.index()];
        self.applications[process.application as usize].program.got(process.rank, bytes);
        let is_in_background = id != number.task();
        if let Some(notes) = self.notes.as_mut().filter(|_| !is_in_background) {
            notes.got(number, bytes);
        }
    }

    /// The command that ended the run, if one did.
    pub(crate) fn take_refused(&mut self) -> Option<Refused> {
        self.refused.take()
    }

    /// Whether a command has ended the run.
    pub(crate) fn has_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// Whether any task has something left to do.
    pub(crate) fn are_waiting(&self) -> bool {
        self.tasks.live().any(|(_, task)| task.is_at_work())
    }

    pub(crate) fn running_count(&self) -> u32 {
        self.running_count
    }

    /// Each application's program, and when its last process has ended.
    pub(crate) fn applications(&self) -> impl Iterator<Item = (&(dyn Program + '_), Nanos)> {
        let applications = self.applications.iter();
        applications.map(|application| (application.program.as_ref(), application.end))
    }

    /// Of all groups, the ranks of their applications.
    pub(crate) fn communicators(&self) -> Vec<Vec<u32>> {
        let members = |group: &Group| {
            let ranks = 0..group.rank_count();
            ranks.map(|rank| self.processes[group.process(rank).index()].rank).collect()
        };
        self.groups.iter().map(members).collect()
    }
}
