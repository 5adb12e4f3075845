//! Waiting for one's turn at the resources a call touches.

use crate::order::Ticket;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Whose turn it is, by resource.
pub(crate) struct Turns {
    turns: Vec<AtomicU32>,
    stopped: AtomicBool,
}

impl Turns {
    pub(crate) fn new(resources: usize) -> Turns {
        Turns {
            turns: (0..resources).map(|_| AtomicU32::new(0)).collect(),
            stopped: AtomicBool::new(false),
        }
    }

    /// Waits until every ticket is called; `false` when the replay was stopped meanwhile.
    pub(crate) fn wait(&self, tickets: &[Ticket]) -> bool {
        tickets.iter().all(|ticket| self.wait_one(ticket)) && !self.stopped.load(Ordering::Relaxed)
    }

    fn wait_one(&self, ticket: &Ticket) -> bool {
        let turn = &self.turns[ticket.resource as usize];
        let mut tries = 0_u32;
        while turn.load(Ordering::Acquire) != ticket.turn {
            if self.stopped.load(Ordering::Relaxed) {
                return false;
            }
            // Turns mostly come within a call's time; a thread that waits long gives way.
            match tries {
                0..64 => std::hint::spin_loop(),
                64..128 => std::thread::yield_now(),
                _ => std::thread::sleep(Duration::from_micros(50)),
            }
            tries = tries.saturating_add(1);
        }
        true
    }

    /// Calls the next ticket of each resource.
    pub(crate) fn pass_on(&self, tickets: &[Ticket]) {
        for ticket in tickets {
            self.turns[ticket.resource as usize].store(ticket.turn + 1, Ordering::Release);
        }
    }

    /// Nobody waits any longer.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}
