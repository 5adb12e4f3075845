//! The thread of a party: its jobs one after the other on the processors of its node, and its alarm clock.
//!
//! Whatever a machine is told costs the processor something first: an instruction for a message or a
//! wake, as in the cluster's model, and the time of its bytes where a job moves some. A stalled thread ends
//! the job it is at and begins no other; a dead one does nothing any more.

use super::World;
use crate::queue::EventQueue;
use crate::world::{Event, NodeId, RowId, TaskId};
use iolab_vocab::Nanos;
use std::collections::{BTreeSet, VecDeque};

/// Tasks of parties are numbered behind all those of processes.
const PARTIES: u32 = 1 << 31;
/// Their alarm clocks have numbers of their own.
const CLOCK: u32 = 1 << 30;

/// What a task of the world is to a file system.
pub(super) enum Owner {
    /// It is a process's.
    Process,
    /// The job of a party's thread.
    Job(usize),
    /// The alarm clock of a party's thread.
    Clock(usize),
}

/// Whose task it is. Parties are counted through: clients, servers, the metadata manager, cache managers.
pub(super) fn owner_of(task: TaskId) -> Owner {
    let place = (task.0 & !(PARTIES | CLOCK)) as usize;
    match (task.0 & PARTIES, task.0 & CLOCK) {
        (0, _) => Owner::Process,
        (_, 0) => Owner::Job(place),
        _ => Owner::Clock(place),
    }
}

/// A thread whose jobs are `J`.
pub(super) struct Thread<J> {
    pub(super) node: NodeId,
    task: TaskId,
    instructions_per_second: f64,
    /// With their instructions, and what they are a reaction to.
    jobs: VecDeque<(f64, RowId, J)>,
    current: Option<J>,
    alarms: BTreeSet<Nanos>,
    stall_count: u32,
    is_dead: bool,
}

impl<J> Thread<J> {
    /// The thread of the party with that place, on a node of that speed.
    pub(super) fn new(place: usize, node: NodeId, instructions_per_second: f64) -> Thread<J> {
        Thread {
            node,
            task: TaskId(PARTIES | place as u32),
            instructions_per_second,
            jobs: VecDeque::new(),
            current: None,
            alarms: BTreeSet::new(),
            stall_count: 0,
            is_dead: false,
        }
    }

    /// A job that takes so long, behind all others.
    pub(super) fn add<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, seconds: f64, job: J) {
        if !self.is_dead {
            let instructions = (seconds * self.instructions_per_second).max(1.0);
            self.jobs.push_back((instructions, world.cause(), job));
            self.begin_next(world);
        }
    }

    fn begin_next<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>) {
        if self.current.is_some() || self.stall_count > 0 {
            return;
        }
        if let Some((instructions, cause, job)) = self.jobs.pop_front() {
            self.current = Some(job);
            let now_because = world.cause();
            world.because(cause);
            world.compute(self.node, self.task, instructions);
            world.because(now_because);
        }
    }

    /// The job that is done now; the next one begins.
    pub(super) fn take_done<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>) -> Option<J> {
        let done = self.current.take();
        self.begin_next(world);
        done
    }

    /// The alarm clock is set to one more time.
    pub(super) fn wake_at<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, at: Nanos) {
        if self.alarms.insert(at) {
            let clock = TaskId(self.task.0 | CLOCK);
            world.rest(self.node, clock, at.since(world.now()));
        }
    }

    /// The alarm clock rings. Tells whether there is a thread to wake.
    pub(super) fn rings(&mut self, now: Nanos) -> bool {
        let later = self.alarms.split_off(&Nanos(now.0 + 1));
        let rung = std::mem::replace(&mut self.alarms, later);
        !rung.is_empty() && !self.is_dead
    }

    /// It stalls, or one reason to stall is over.
    pub(super) fn stall<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, is_stalled: bool) {
        match is_stalled {
            true => self.stall_count += 1,
            false => {
                self.stall_count -= 1;
                self.begin_next(world);
            }
        }
    }

    /// Its node has crashed.
    pub(super) fn die(&mut self) {
        self.is_dead = true;
        self.jobs.clear();
        self.current = None;
    }

    pub(super) fn is_dead(&self) -> bool {
        self.is_dead
    }

    /// What is still to be done; a stalled thread does nothing.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &J> {
        let waiting = self.jobs.iter().filter(|_| self.stall_count == 0);
        self.current.iter().chain(waiting.map(|(_, _, job)| job))
    }
}
