//! The loop: take the next event, let its component react.

use super::event::Event;
use super::{Cluster, EventQueue, RunError, ServerTotals};
use iolab_vocab::Nanos;

impl<Q: EventQueue<Event>> Cluster<Q> {
    /// Runs until nothing is left to happen. Returns the time of the last event.
    pub fn run(&mut self) -> Result<Nanos, RunError> {
        let started: Vec<u32> = (0..self.processes.len() as u32).collect();
        started.iter().for_each(|&task| self.begin_next(task));
        while let Some((time, event)) = self.calendar.queue.pop() {
            let before = self.calendar.now;
            self.calendar.now = time;
            self.event_count += 1;
            self.handle(event, before);
        }
        if let Some(refused) = self.refused.take() {
            return Err(RunError::Refused(refused));
        }
        match self.running_count {
            0 => Ok(self.calendar.now),
            _ => Err(RunError::Stuck(self.diagnose())),
        }
    }

    /// A timer that nobody needs any more is as if it had never been: it moves no clock.
    #[inline]
    fn handle(&mut self, event: Event, before: Nanos) {
        match event {
            Event::Arrived(packet) => self.network.enter(&mut self.calendar, packet),
            Event::Carried(station) => self.carried(station),
            Event::Computed(node) => self.computed(node),
            Event::Transferred(transfer) => self.transferred(transfer),
            Event::Woke(server) => {
                if !self.woke(server) {
                    self.calendar.now = before;
                }
            }
        }
    }

    /// What each server has done so far.
    pub fn server_totals(&self) -> impl Iterator<Item = ServerTotals> + '_ {
        self.servers.iter().map(|server| server.totals)
    }

    /// Events handled so far.
    pub fn event_count(&self) -> u64 {
        self.event_count
    }
}
