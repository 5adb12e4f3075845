//! The loop: take the next event, let its component react.

use super::error::Part;
use super::event::Event;
use super::{Cluster, END_OF_TIME, EventQueue, HopTotals, LinkKind, RunError, ServerTotals};
use crate::program::Program;
use iolab_vocab::Nanos;

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time.
    pub now: Nanos,
    /// Events handled.
    pub event_count: u64,
    /// Processes that have not ended.
    pub running_count: u32,
}

impl<Q: EventQueue<Event>> Cluster<Q> {
    /// Runs until nothing is left to happen. Returns the time of the last event.
    pub fn run(&mut self) -> Result<Nanos, RunError> {
        self.start();
        self.advance(u64::MAX);
        self.verdict()
    }

    /// Gives every process its first command.
    pub fn start(&mut self) {
        let started: Vec<u32> = (0..self.processes.len() as u32).collect();
        started.iter().for_each(|&task| self.begin_next(task));
    }

    /// Handles up to so many events. Tells whether there was that much to do.
    pub fn advance(&mut self, event_count: u64) -> bool {
        for _ in 0..event_count {
            let Some((time, event)) = self.calendar.queue.pop() else { return false };
            if time == END_OF_TIME {
                return false;
            }
            let before = self.calendar.now;
            self.calendar.now = time;
            self.event_count += 1;
            self.event_hash = event.append_to(self.event_hash, time);
            self.handle(event, before);
        }
        true
    }

    /// After the last event: its time, or why processes have not ended.
    pub fn verdict(&mut self) -> Result<Nanos, RunError> {
        if let Some(refused) = self.refused.take() {
            return Err(RunError::Refused(refused));
        }
        if let Some(event) = self.calendar.late {
            return Err(RunError::Late(self.part_of(event)));
        }
        if self.tasks.all().any(|(_, task)| !task.frames.is_empty()) {
            return Err(RunError::Deadlock(Box::new(self.diagnose())));
        }
        match self.unreceived() {
            Some(unreceived) => Err(RunError::Unreceived(unreceived)),
            None => Ok(self.calendar.now),
        }
    }

    /// A timer that nobody needs any more is as if it had never been: it moves no clock.
    #[inline]
    fn handle(&mut self, event: Event, before: Nanos) {
        match event {
            Event::Arrived(packet) => self.network.enter(&mut self.calendar, packet),
            Event::Carried(hop) => self.carried(hop),
            Event::Computed(node) => {
                if !self.computed(node) {
                    self.calendar.now = before;
                }
            }
            Event::Rested(task) => {
                if !self.rested(task) {
                    self.calendar.now = before;
                }
            }
            Event::Transferred(transfer) => self.transferred(transfer),
            Event::Woke(server) => {
                self.servers[server as usize].reads.wake_count -= 1;
                if !self.woke(server) {
                    self.calendar.now = before;
                }
            }
            Event::FaultBegan(fault) => {
                self.fault_began(fault);
                self.calendar.now = before;
            }
            Event::FaultEnded(fault) => {
                self.fault_ended(fault);
                self.calendar.now = before;
            }
        }
    }

    /// The part whose event that is.
    fn part_of(&self, event: Event) -> Part {
        match event {
            Event::Carried(hop) => Part::Link(hop),
            Event::Arrived(packet) => Part::Link(self.network.packets.get(packet).previous),
            Event::Computed(node) => Part::Node(node),
            Event::Transferred(transfer) => Part::Server(self.transfers.get(transfer).server),
            Event::Woke(server) => Part::Server(server),
            Event::Rested(task) => {
                Part::Node(self.processes[self.tasks.get(task).process as usize].node)
            }
            Event::FaultBegan(fault) | Event::FaultEnded(fault) => Part::Fault(fault),
        }
    }

    /// The server that a target is; clients come first, whether a process runs on them or not.
    pub(super) fn server_at(&self, target: u32) -> u32 {
        target - (self.target_node.len() - self.servers.len()) as u32
    }

    /// What each server has done so far.
    pub fn server_totals(&self) -> impl Iterator<Item = ServerTotals> + '_ {
        self.servers.iter().map(|server| server.totals)
    }

    /// What each link and switch has carried so far: the switches, then per node its NIC out, its
    /// NIC in, the switch port towards it and its inside, then each cable both ways.
    pub fn link_totals(&self) -> impl Iterator<Item = (LinkKind, HopTotals)> + '_ {
        self.network.hops.iter().map(|hop| (hop.role.kind(), hop.totals))
    }

    /// Each application's program, and when its last process has ended.
    pub fn applications(&self) -> impl Iterator<Item = (&dyn Program, Nanos)> + '_ {
        let ends = self.applications.iter().map(|application| application.end);
        self.programs.iter().map(Box::as_ref).zip(ends)
    }

    /// How far the run is.
    pub fn progress(&self) -> Progress {
        let &Cluster { event_count, running_count, .. } = self;
        Progress { now: self.calendar.now, event_count, running_count }
    }

    /// How long each file is by now.
    pub fn file_bytes(&self) -> impl Iterator<Item = u64> + '_ {
        self.files.iter().map(|file| file.bytes)
    }

    /// A hash over all events so far, with their times: equal runs have equal hashes.
    pub fn event_hash(&self) -> u64 {
        self.event_hash
    }

    /// Events handled so far.
    pub fn event_count(&self) -> u64 {
        self.event_count
    }
}
