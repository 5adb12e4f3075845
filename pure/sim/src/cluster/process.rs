//! Processes and their tasks: commands in steps, nested where one is made of others.
//!
//! Every first step of a command, and every step entered after a wait, costs the processor one
//! instruction; a step that follows without waiting does not, and being completed costs nothing.
//! A process has one task of its own, and one more for each command it has begun and not awaited.

mod background;
mod check;
mod collective;
mod file;
mod group;
mod meeting;
mod notes;
pub(super) mod place;
mod point;
mod step;

pub(super) use group::Group;
pub(super) use meeting::{Meeting, Purpose};
pub(super) use point::Offer;

pub(super) use super::ids::{GroupId, OfferId, ProcessId};

use super::client::Clients;
use super::error::Refused;
use super::ids::Caller;
use super::message::Envelope;
use super::overrides::PolicyOverrides;
use super::request::RequestId;
use super::{FileState, Order, World};
use crate::program::{Command, Communicator, File, Program, Ticket, What};
use crate::queue::EventQueue;
use crate::slab::{Id, Slab};
use crate::world::{Event, NodeId, TaskId};
use iolab_policy::collective::{Access, Collective, CollectiveSelection, Costs, Sizes};
use iolab_vocab::{Extent, Nanos};
use notes::Notes;
use std::collections::VecDeque;
use std::sync::Arc;

/// A process of an application.
#[derive(Debug)]
pub(super) struct Process {
    node: NodeId,
    pub(super) rank: u32,
    /// Index of its application.
    pub(super) application: u32,
    /// What it waits to receive, and the task that does.
    pub(super) receives: VecDeque<(Envelope, TaskId)>,
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
pub(super) struct Task {
    pub(super) process: ProcessId,
    /// What it was given to do, for diagnosis.
    pub(super) command: Option<Command>,
    frames: Vec<Frame>,
    /// What it waits for: so much has to leave or arrive.
    pending: u32,
    list: Vec<Extent>,
    requests: Vec<RequestId>,
    /// The collective access under way, once all ranks have met for it.
    access: Option<Arc<Access>>,
    /// The offer it has made, or that has come instead of the message awaited.
    pub(super) offer: Option<OfferId>,
    /// The task of a part of this command that goes on in the background.
    part: Option<TaskId>,
    /// The task that waits for this one.
    pub(super) waiter: Option<TaskId>,
}

impl Task {
    fn of(process: ProcessId) -> Task {
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
    pub(super) fn is_at_work(&self) -> bool {
        !self.frames.is_empty()
    }
}

/// A piece of work a task is in the middle of.
struct Frame {
    work: Work,
    step: u32,
    is_last: bool,
}

enum Work {
    Command(Command),
    /// All processes of a group meet.
    Meet(GroupId, Purpose),
    /// Messages among the processes of a group.
    Collective(Box<dyn Collective>, GroupId, Sizes),
    /// A collective access to a file; the flag tells that its write is announced to the servers.
    FileCollective(Box<dyn Collective>, File, Sizes, bool),
}

/// What a step has come to.
enum Outcome {
    /// Transfers are under way (or none were needed); then the next step.
    Wait,
    /// The same, but then the work is done.
    WaitLast,
    /// Another piece of work comes first, then the next step.
    Nested(Work),
    /// Another piece of work remains; then this one is done.
    NestedLast(Work),
    /// Somebody else will wake this task; then the next step.
    Blocked,
    /// The same, but then the work is done.
    BlockedLast,
    /// The work is done.
    Done,
}

/// All processes of a run.
pub(super) struct Processes<'p> {
    order: Order,
    pub(super) processes: Vec<Process>,
    pub(super) tasks: Slab<TaskId, Task>,
    applications: Vec<Application<'p>>,
    /// Communicators of all applications.
    pub(super) groups: Vec<Group>,
    pub(super) offers: Slab<OfferId, Offer>,
    clients: Clients,
    collectives: CollectiveSelection,
    own: Box<dyn PolicyOverrides>,
    eager_bytes: u64,
    /// What collective accesses may know of the platform.
    costs: Option<Costs>,
    /// Processes that have not ended.
    running_count: u32,
    /// Processes that stopped before their end.
    pub(super) crashed: Vec<ProcessId>,
    /// The command that ended the run.
    refused: Option<Refused>,
    /// Commands under way, if they are noted.
    notes: Option<Notes>,
    moves: Vec<iolab_policy::collective::Action>,
}

impl Processes<'_> {
    /// Gives every process its first command.
    pub(super) fn start<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>) {
        for process in 0..self.processes.len() {
            self.begin_next(world, ProcessId::of(process).task());
        }
    }

    /// Gives the task's process its next command.
    fn begin_next<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, id: TaskId) {
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
            self.begin_checked(world, id, command);
        } else {
            self.running_count -= 1;
            application.end = now;
        }
    }

    fn begin<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, id: TaskId, work: Work) {
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
    pub(super) fn rested<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
    ) -> bool {
        let is_alive = self.tasks.get(id).is_at_work();
        if is_alive {
            self.go_on(world, id);
        }
        is_alive
    }

    /// The processor has done what the task's next step costs.
    pub(super) fn take_steps<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, id: TaskId) {
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

    fn top(&mut self, id: TaskId) -> &mut Frame {
        self.tasks.get_mut(id).frames.last_mut().expect("a task that works has a frame")
    }

    /// The top piece of work is done: its parent goes on, or the next command begins.
    fn finish<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, id: TaskId) {
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
    pub(super) fn settle_one<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, id: TaskId) {
        let task = self.tasks.get_mut(id);
        task.pending -= 1;
        if task.pending == 0 {
            self.go_on(world, id);
        }
    }

    fn go_on<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, id: TaskId) {
        match self.top(id).is_last {
            true => self.finish(world, id),
            false => world.compute(self.node_of(id), id, 1.0),
        }
    }

    pub(super) fn node_of(&self, id: TaskId) -> NodeId {
        self.process_of(id).node
    }

    fn process_of(&self, id: TaskId) -> &Process {
        &self.processes[self.tasks.get(id).process.index()]
    }

    fn caller(&self, id: TaskId) -> Caller {
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
    fn group_of_file(&self, id: TaskId, file: File) -> GroupId {
        self.group_of(id, self.communicator_of(id, file))
    }

    pub(super) fn rank_of(&self, process: ProcessId) -> u32 {
        self.processes[process.index()].rank
    }

    fn group(&self, group: GroupId) -> &Group {
        &self.groups[group.index()]
    }

    /// All processes of a node stop where they are: their tasks wait for more than ever comes, and
    /// nobody finds them anywhere.
    pub(super) fn crash(&mut self, node: NodeId) {
        let dead = |task: &Task| self.processes[task.process.index()].node == node;
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

    /// The command that ended the run, if one did.
    pub(super) fn take_refused(&mut self) -> Option<Refused> {
        self.refused.take()
    }

    /// Whether any task has something left to do.
    pub(super) fn are_waiting(&self) -> bool {
        self.tasks.live().any(|(_, task)| task.is_at_work())
    }

    pub(super) fn running_count(&self) -> u32 {
        self.running_count
    }

    pub(super) fn files(&self) -> &[FileState] {
        &self.clients.files
    }

    /// Each application's program, and when its last process has ended.
    pub(super) fn applications(&self) -> impl Iterator<Item = (&(dyn Program + '_), Nanos)> {
        let applications = self.applications.iter();
        applications.map(|application| (application.program.as_ref(), application.end))
    }

    /// Of all groups, the ranks of their applications.
    pub(super) fn communicators(&self) -> Vec<Vec<u32>> {
        let members = |group: &Group| {
            let ranks = 0..group.rank_count();
            ranks.map(|rank| self.processes[group.process(rank).index()].rank).collect()
        };
        self.groups.iter().map(members).collect()
    }
}
