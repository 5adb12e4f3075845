//! Processes and their tasks: commands in steps, nested where one is made of others.
//!
//! Every first step of a command, and every step entered after a wait, costs the processor one
//! instruction; a step that follows without waiting does not, and being completed costs nothing.

use super::event::Event;
use super::packet::{Envelope, Kind, NONE};
use super::{Cluster, EventQueue, Order};
use crate::program::Command;
use crate::program::File;
use iolab_policy::collective::{self, Access, Collective, FileCall, Serves, Shape, Wanted};
use iolab_vocab::{Direction, Extent};
use std::sync::Arc;

/// Payload of the broadcast by which an open spreads the file's handle.
const HANDLE_BYTES: u64 = 32;
/// Wire size of a flush.
const FLUSH_BYTES: u64 = 20;
/// Payload of the allgather in which ranks tell each other their spans.
const SPAN_BYTES: u64 = 16;
/// Buffer of each rank in two-phase I/O.
const BUFFER_BYTES: u64 = 8 << 20;

/// A process of an application.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) node: u32,
    pub(super) rank: u32,
    pub(super) program: u32,
    /// First process of the application; ranks count from there.
    pub(super) first: u32,
    pub(super) rank_count: u32,
    receives: Vec<(Envelope, u32)>,
    early: Vec<Envelope>,
}

impl Process {
    pub(super) fn new(node: u32, rank: u32, program: u32, first: u32, rank_count: u32) -> Process {
        let (receives, early) = (Vec::new(), Vec::new());
        Process { node, rank, program, first, rank_count, receives, early }
    }
}

/// Where the processes of an application meet.
#[derive(Debug, Default)]
pub(super) struct Meeting {
    waiting: Vec<u32>,
    /// What the ranks of a collective access want, collected while they arrive.
    wanted: Vec<Option<Wanted>>,
    access: Option<Arc<Access>>,
}

/// A thread of command processing of one process.
pub(super) struct Task {
    pub(super) process: u32,
    frames: Vec<Frame>,
    pub(super) pending: u32,
    pub(super) list: Vec<Extent>,
    pub(super) requests: Vec<u32>,
}

impl Task {
    pub(super) fn of(process: u32) -> Task {
        let (frames, list, requests) = (Vec::new(), Vec::new(), Vec::new());
        Task { process, frames, pending: 0, list, requests }
    }
}

struct Frame {
    work: Work,
    step: u32,
    is_last: bool,
}

enum Work {
    Command(Command),
    Meet,
    Collective(Box<dyn Collective>),
    /// A collective access to a file; the flag tells that its write is announced to the servers.
    FileCollective(Box<dyn Collective>, File, bool),
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

impl<Q: EventQueue<Event>> Cluster<Q> {
    /// Gives the task's process its next command.
    pub(super) fn begin_next(&mut self, id: u32) {
        let task = self.tasks.get_mut(id);
        let process = &self.processes[task.process as usize];
        task.list.clear();
        let program = &mut self.programs[process.program as usize];
        program.reached(process.rank, self.calendar.now);
        if let Some(command) = program.next(process.rank, &mut task.list) {
            self.begin(id, Work::Command(command));
        } else {
            self.running_count -= 1;
        }
    }

    fn begin(&mut self, id: u32, work: Work) {
        let instructions = match work {
            Work::Command(Command::Compute { cycles }) => cycles.max(1.0),
            _ => 1.0,
        };
        self.tasks.get_mut(id).frames.push(Frame { work, step: 0, is_last: false });
        self.charge(id, instructions);
    }

    fn charge(&mut self, id: u32, instructions: f64) {
        let node_index = self.node_of(id);
        let node = &mut self.nodes[node_index as usize];
        let was_idle = node.cpu.is_idle();
        let wait = node.cpu.add(self.calendar.now, id, instructions).0;
        let event = Event::Computed(node_index);
        if !was_idle {
            self.calendar.queue.withdraw(&event);
        } else if self.order == Order::Published && self.computing == node_index {
            // The original posts the timer, takes it back and posts it again; that moves others.
            self.calendar.post(wait, node_index, event);
            self.calendar.queue.withdraw(&event);
        }
        self.calendar.post(wait, node_index, event);
    }

    pub(super) fn node_of(&self, id: u32) -> u32 {
        self.processes[self.tasks.get(id).process as usize].node
    }

    /// A node's processor has finished a job.
    pub(super) fn computed(&mut self, node: u32) {
        let (task, next) = self.nodes[node as usize].cpu.finish(self.calendar.now);
        if let Some(wait) = next {
            self.calendar.post(wait.0, node, Event::Computed(node));
        }
        self.computing = node;
        self.take_steps(task);
        self.computing = NONE;
    }

    fn take_steps(&mut self, id: u32) {
        loop {
            match self.perform(id) {
                Outcome::Wait if self.tasks.get(id).pending > 0 => return,
                Outcome::Wait => {}
                Outcome::WaitLast if self.tasks.get(id).pending > 0 => {
                    return self.top(id).is_last = true;
                }
                Outcome::WaitLast | Outcome::Done => return self.finish(id),
                Outcome::Nested(work) => return self.begin(id, work),
                Outcome::NestedLast(work) => {
                    self.top(id).is_last = true;
                    return self.begin(id, work);
                }
                Outcome::Blocked => return,
                Outcome::BlockedLast => return self.top(id).is_last = true,
            }
        }
    }

    fn top(&mut self, id: u32) -> &mut Frame {
        self.tasks.get_mut(id).frames.last_mut().expect("a task that works has a frame")
    }

    /// The top piece of work is done: its parent goes on, or the next command begins.
    fn finish(&mut self, id: u32) {
        let task = self.tasks.get_mut(id);
        task.frames.pop();
        if task.frames.is_empty() { self.begin_next(id) } else { self.go_on(id) }
    }

    /// Something the task waited for has left or arrived.
    pub(super) fn settle_one(&mut self, id: u32) {
        let task = self.tasks.get_mut(id);
        task.pending -= 1;
        if task.pending == 0 {
            self.go_on(id);
        }
    }

    fn go_on(&mut self, id: u32) {
        if self.top(id).is_last { self.finish(id) } else { self.charge(id, 1.0) }
    }

    fn perform(&mut self, id: u32) -> Outcome {
        let mut moves = std::mem::take(&mut self.moves);
        let task = self.tasks.get_mut(id);
        let frame = task.frames.last_mut().expect("a task that works has a frame");
        let step = frame.step;
        frame.step += 1;
        let outcome = match &mut frame.work {
            Work::Command(command) => {
                let command = *command;
                self.command_step(id, command, step)
            }
            Work::Meet => self.meet(id),
            Work::Collective(machine) => {
                let event = match step {
                    0 => collective::Event::Began,
                    _ => collective::Event::Settled,
                };
                machine.step(event, &mut moves);
                self.carry_out(id, &moves, 0)
            }
            Work::FileCollective(_, _, is_announced @ true) => {
                *is_announced = false;
                self.send_write_data(id);
                Outcome::Wait
            }
            Work::FileCollective(machine, file, is_announced) => {
                let file = *file;
                machine.step(collective::Event::Settled, &mut moves);
                task.list.clear();
                task.list.extend_from_slice(machine.extents());
                *is_announced = moves.contains(&collective::Action::WriteFile);
                self.carry_out(id, &moves, file)
            }
        };
        moves.clear();
        self.moves = moves;
        outcome
    }

    fn carry_out(&mut self, id: u32, moves: &[collective::Action], file: File) -> Outcome {
        let mut outcome = Outcome::Wait;
        for action in moves {
            match *action {
                collective::Action::Send { to, tag, bytes } => self.send_point(id, to, tag, bytes),
                collective::Action::Receive { from, tag } => self.receive_point(id, from, tag),
                collective::Action::ReadFile => self.request_reads(id, file),
                collective::Action::WriteFile => {
                    self.grow_file(id, file);
                    self.request_writes(id, file);
                }
                collective::Action::Finish => outcome = Outcome::WaitLast,
            }
        }
        outcome
    }

    fn command_step(&mut self, id: u32, command: Command, step: u32) -> Outcome {
        match (command, step) {
            (Command::Compute { .. }, _) => Outcome::Done,
            (Command::Open(_) | Command::Close(_), 0) => Outcome::Nested(Work::Meet),
            (Command::Open(_), _) => {
                Outcome::NestedLast(self.messages(id, Serves::Broadcast, 0, HANDLE_BYTES))
            }
            (Command::Close(file), _) => self.flush_servers(id, file),
            (Command::Read(file), _) => {
                self.request_reads(id, file);
                Outcome::WaitLast
            }
            (Command::Write(file), 0) => {
                self.request_writes(id, file);
                Outcome::Wait
            }
            (Command::Write(_), 1) => {
                self.send_write_data(id);
                Outcome::Wait
            }
            (Command::Write(file), _) => {
                self.grow_file(id, file);
                Outcome::Done
            }
            (Command::ReadAll(_), 0) => self.meet_for(id, Direction::Read),
            (Command::WriteAll(_), 0) => self.meet_for(id, Direction::Write),
            (Command::ReadAll(_) | Command::WriteAll(_), 1) => {
                Outcome::Nested(self.messages(id, Serves::Allgather, 0, SPAN_BYTES))
            }
            (Command::ReadAll(file) | Command::WriteAll(file), _) => self.access_together(id, file),
            (Command::Barrier, _) => match self.messages(id, Serves::Barrier, 0, 0) {
                Work::Meet => self.meet(id),
                work => Outcome::NestedLast(work),
            },
        }
    }

    /// A command of messages, by the algorithm chosen for this run.
    fn messages(&self, id: u32, serves: Serves, root: u32, bytes: u64) -> Work {
        match self.collectives.build(serves, self.shape(id, root, bytes)) {
            Some(machine) => Work::Collective(machine),
            None => Work::Meet,
        }
    }

    fn shape(&self, id: u32, root: u32, bytes: u64) -> Shape {
        let process = &self.processes[self.tasks.get(id).process as usize];
        let &Process { rank, rank_count, .. } = process;
        Shape { rank, rank_count, root, bytes, eager_bytes: self.eager_bytes }
    }

    /// All ranks of a collective access meet; the last one continues at once.
    fn meet_for(&mut self, id: u32, direction: Direction) -> Outcome {
        let task = self.tasks.get_mut(id);
        let process = &self.processes[task.process as usize];
        let (rank, rank_count) = (process.rank as usize, process.rank_count as usize);
        let meeting = &mut self.meetings[process.program as usize];
        meeting.wanted.resize(rank_count, None);
        meeting.wanted[rank] = Some(Wanted::new(std::mem::take(&mut task.list)));
        if meeting.waiting.len() + 1 < rank_count {
            meeting.waiting.push(id);
            return Outcome::Blocked;
        }
        let wanted = meeting.wanted.drain(..).flatten().collect();
        meeting.access = Some(Arc::new(Access { direction, wanted }));
        let mut waiting = std::mem::take(&mut meeting.waiting);
        let program = process.program as usize;
        waiting.drain(..).for_each(|other| self.go_on(other));
        self.meetings[program].waiting = waiting;
        Outcome::Wait
    }

    fn access_together(&mut self, id: u32, file: File) -> Outcome {
        let process = &self.processes[self.tasks.get(id).process as usize];
        let access = self.meetings[process.program as usize].access.clone();
        let access = access.expect("the ranks have met");
        let rank = process.rank;
        if !access.is_interleaved() {
            let wanted = &access.wanted[rank as usize];
            self.tasks.get_mut(id).list.extend(wanted.within(wanted.span()));
            return Outcome::NestedLast(Work::Command(match access.direction {
                Direction::Read => Command::Read(file),
                Direction::Write => Command::Write(file),
            }));
        }
        let call = FileCall { access, rank, buffer_bytes: BUFFER_BYTES };
        let machine = self.collectives.build_file(call);
        self.top(id).work = Work::FileCollective(machine, file, false);
        Outcome::Wait
    }

    fn flush_servers(&mut self, id: u32, file: u32) -> Outcome {
        let process = &self.processes[self.tasks.get(id).process as usize];
        if process.rank != 0 {
            return Outcome::Done;
        }
        let node = process.node;
        for server in 0..self.servers.len() {
            let target = self.servers[server].target;
            self.tasks.get_mut(id).pending += 1;
            self.send(node, target, id, FLUSH_BYTES, Kind::Flush { file });
        }
        Outcome::WaitLast
    }

    fn meet(&mut self, id: u32) -> Outcome {
        let process = &self.processes[self.tasks.get(id).process as usize];
        let (application, rank_count) = (process.program as usize, process.rank_count as usize);
        let meeting = &mut self.meetings[application];
        if meeting.waiting.len() + 1 < rank_count {
            meeting.waiting.push(id);
            return Outcome::BlockedLast;
        }
        let mut waiting = std::mem::take(&mut meeting.waiting);
        if self.order == Order::Published {
            waiting = self.in_hash_order(&waiting);
        }
        waiting.drain(..).for_each(|other| self.go_on(other));
        self.meetings[application].waiting = waiting;
        Outcome::Done
    }

    fn in_hash_order(&self, tasks: &[u32]) -> Vec<u32> {
        let numbers: Vec<_> = tasks.iter().map(|id| self.tasks.get(*id).process).collect();
        super::build::hash_order(&numbers).into_iter().map(|index| tasks[index]).collect()
    }

    /// Sends to a rank of the same application; the task waits until it has left.
    fn send_point(&mut self, id: u32, to: u32, tag: u32, bytes: u64) {
        let process = &self.processes[self.tasks.get(id).process as usize];
        let envelope = Envelope { from: process.rank, tag, communicator: 0 };
        let (node, target) = (process.node, process.first + to);
        self.tasks.get_mut(id).pending += 1;
        self.send(node, target, id, bytes, Kind::Point { envelope });
    }

    /// Awaits a message of a rank of the same application, unless it is here already.
    fn receive_point(&mut self, id: u32, from: u32, tag: u32) {
        let task = self.tasks.get_mut(id);
        let process = &mut self.processes[task.process as usize];
        let envelope = Envelope { from, tag, communicator: 0 };
        match process.early.iter().position(|early| *early == envelope) {
            Some(index) => {
                process.early.remove(index);
            }
            None => {
                task.pending += 1;
                process.receives.push((envelope, id));
            }
        }
    }

    /// A message has arrived at a process.
    pub(super) fn point_arrived(&mut self, process: u32, envelope: Envelope) {
        let process = &mut self.processes[process as usize];
        match process.receives.iter().position(|receive| receive.0 == envelope) {
            Some(index) => {
                let (_, task) = process.receives.remove(index);
                self.settle_one(task);
            }
            None => process.early.push(envelope),
        }
    }
}
