//! Processes and their tasks: commands in steps, nested where one is made of others.
//!
//! Every first step of a command, and every step entered after a wait, costs the processor one
//! instruction; a step that follows without waiting does not, and being completed costs nothing.
//! A process has one task of its own, and one more for each command it has begun and not awaited.

mod background;
mod check;
mod collective;
mod file;
mod meeting;
mod point;
mod step;

pub(super) use meeting::{Meeting, Purpose};
pub(super) use point::Offer;

use super::event::Event;
use super::packet::{Envelope, NONE};
use super::{Cluster, EventQueue, Order};
use crate::program::{Command, File, Ticket, What};
use iolab_policy::collective::{Access, Collective, Sizes};
use iolab_vocab::Extent;
use std::collections::VecDeque;
use std::sync::Arc;

/// A process of an application.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) node: u32,
    pub(super) rank: u32,
    pub(super) program: u32,
    /// What it waits to receive, and the task that does.
    pub(super) receives: VecDeque<(Envelope, u32)>,
    /// Messages and offers nobody has asked for yet.
    early: VecDeque<point::Early>,
    /// Commands begun and not awaited, and the task of each.
    tickets: Vec<(Ticket, u32)>,
}

impl Process {
    pub(super) fn new(node: u32, rank: u32, program: u32) -> Process {
        let (receives, early, tickets) = (VecDeque::new(), VecDeque::new(), Vec::new());
        Process { node, rank, program, receives, early, tickets }
    }
}

/// A thread of command processing of one process.
pub(super) struct Task {
    pub(super) process: u32,
    /// What it was given to do, for diagnosis.
    pub(super) command: Option<Command>,
    pub(super) frames: Vec<Frame>,
    pub(super) pending: u32,
    pub(super) list: Vec<Extent>,
    pub(super) requests: Vec<u32>,
    /// The collective access under way, once all ranks have met for it.
    access: Option<Arc<Access>>,
    /// The offer that has come instead of the message awaited.
    pub(super) offer: u32,
    /// The task of a part of this command that goes on in the background.
    part: u32,
    /// The task that waits for this one.
    pub(super) waiter: u32,
}

impl Task {
    pub(super) fn of(process: u32) -> Task {
        let (frames, list, requests) = (Vec::new(), Vec::new(), Vec::new());
        let (offer, part, waiter) = (NONE, NONE, NONE);
        let (command, access) = (None, None);
        Task { process, command, frames, pending: 0, list, requests, access, offer, part, waiter }
    }
}

/// A piece of work a task is in the middle of.
pub(super) struct Frame {
    pub(super) work: Work,
    step: u32,
    is_last: bool,
}

pub(super) enum Work {
    Command(Command),
    /// All processes of a group meet.
    Meet(u32, Purpose),
    /// Messages among the processes of a group.
    Collective(Box<dyn Collective>, u32, Sizes),
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

impl<Q: EventQueue<Event>> Cluster<Q> {
    /// Gives the task's process its next command.
    pub(super) fn begin_next(&mut self, id: u32) {
        if self.refused.is_some() {
            return;
        }
        let task = self.tasks.get_mut(id);
        let process = &self.processes[task.process as usize];
        task.list.clear();
        let program = &mut self.programs[process.program as usize];
        program.reached(process.rank, self.calendar.now);
        if let Some(recorder) = &mut self.recorder {
            recorder.command_ended(task.process, self.calendar.now);
        }
        if let Some(command) = program.next(process.rank, &mut task.list) {
            self.begin_checked(id, command);
        } else {
            self.running_count -= 1;
            self.applications[process.program as usize].end = self.calendar.now;
        }
    }

    fn begin(&mut self, id: u32, work: Work) {
        let instructions = match work {
            Work::Command(Command { what: What::Compute { instructions }, .. }) => {
                instructions.max(1.0)
            }
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
        if was_idle {
            self.calendar.set_timer(wait, node_index, event);
        }
        // The original posts the timer, takes it back and posts it again; that moves others.
        let posts_twice = self.order == Order::Published && self.computing == node_index;
        if !was_idle || posts_twice {
            self.calendar.move_timer(wait, node_index, event);
        }
    }

    pub(super) fn node_of(&self, id: u32) -> u32 {
        self.processes[self.tasks.get(id).process as usize].node
    }

    /// A node's processor has finished a job, unless its processes have crashed meanwhile.
    pub(super) fn computed(&mut self, node: u32) -> bool {
        let Some((task, next)) = self.nodes[node as usize].cpu.finish(self.calendar.now) else {
            return false;
        };
        if let Some(wait) = next {
            self.calendar.set_timer(wait.0, node, Event::Computed(node));
        }
        self.computing = node;
        self.take_steps(task);
        self.computing = NONE;
        true
    }

    /// A task has rested, unless its process has crashed meanwhile.
    pub(super) fn rested(&mut self, id: u32) -> bool {
        let is_alive = !self.tasks.get(id).frames.is_empty();
        if is_alive {
            self.go_on(id);
        }
        is_alive
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
        if !task.frames.is_empty() {
            self.go_on(id);
        } else if (id as usize) < self.processes.len() {
            self.begin_next(id);
        } else {
            self.background_ended(id);
        }
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

    /// Number of a group, from an application's communicator.
    pub(super) fn group_of(&self, id: u32, communicator: u32) -> u32 {
        let process = &self.processes[self.tasks.get(id).process as usize];
        self.applications[process.program as usize].first_group + communicator
    }
}
