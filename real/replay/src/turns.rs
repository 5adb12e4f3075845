//! Waiting for one's turn at the resources a call touches.
//!
//! Whoever waits long sleeps until the one before has had its turn, and is woken alone: of a program with thousands of
//! processes all but a few threads wait nearly all the time.

use crate::order::Ticket;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

/// Turns mostly come within a call's time.
const TRIES: u32 = 128;

/// Whose turn it is, by resource.
pub(crate) struct Turns {
    queues: Vec<Queue>,
    stopped: AtomicBool,
}

#[derive(Default)]
struct Queue {
    turn: AtomicU32,
    /// Whether anybody sleeps, so that nobody has to look.
    is_awaited: AtomicBool,
    sleepers: Mutex<Vec<(u32, Thread)>>,
}

impl Queue {
    fn sleepers(&self) -> MutexGuard<'_, Vec<(u32, Thread)>> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turns {
    pub(crate) fn new(resources: usize) -> Turns {
        let queues = (0..resources).map(|_| Queue::default()).collect();
        Turns { queues, stopped: AtomicBool::new(false) }
    }

    /// Waits until every ticket is called; `false` when the replay was stopped meanwhile.
    pub(crate) fn wait(&self, tickets: &[Ticket]) -> bool {
        tickets.iter().all(|ticket| self.wait_one(ticket)) && !self.is_stopped()
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    fn wait_one(&self, ticket: &Ticket) -> bool {
        let queue = &self.queues[ticket.resource as usize];
        // What passes on looks for sleepers after it has called the turn, and sleepers look for the turn after they
        // have lain down: one of the two sees the other.
        let is_called = || queue.turn.load(Ordering::SeqCst) == ticket.turn;
        for tries in 0..TRIES {
            if is_called() {
                return true;
            }
            match tries {
                0..64 => std::hint::spin_loop(),
                _ => thread::yield_now(),
            }
        }
        let mut sleepers = queue.sleepers();
        sleepers.push((ticket.turn, thread::current()));
        queue.is_awaited.store(true, Ordering::SeqCst);
        drop(sleepers);
        while !is_called() {
            if self.is_stopped() {
                return false;
            }
            thread::park();
        }
        true
    }

    /// Calls the next ticket of each resource.
    pub(crate) fn pass_on(&self, tickets: &[Ticket]) {
        for ticket in tickets {
            let (queue, next) = (&self.queues[ticket.resource as usize], ticket.turn + 1);
            queue.turn.store(next, Ordering::SeqCst);
            if queue.is_awaited.load(Ordering::SeqCst) {
                let mut sleepers = queue.sleepers();
                // Those that found their turn come while they lay down are still in the list.
                sleepers.retain(|(turn, sleeper)| {
                    if *turn == next {
                        sleeper.unpark();
                    }
                    *turn > next
                });
                queue.is_awaited.store(!sleepers.is_empty(), Ordering::SeqCst);
            }
        }
    }

    /// Nobody waits any longer.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        for queue in &self.queues {
            queue.sleepers().iter().for_each(|(_, sleeper)| sleeper.unpark());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_threads_take_their_turns_in_order_and_all_go_when_it_is_over() {
        let turns = Turns::new(1);
        let order = Mutex::new(Vec::new());
        let ticket = |turn| [Ticket { resource: 0, turn }];
        thread::scope(|scope| {
            // The last two wait for a turn that nobody calls.
            for turn in (0..50).rev().chain([60, 70]) {
                let (turns, order) = (&turns, &order);
                scope.spawn(move || {
                    let came = turns.wait(&ticket(turn));
                    assert_eq!(came, turn < 50);
                    if came {
                        order.lock().unwrap().push(turn);
                        turns.pass_on(&ticket(turn));
                    }
                    if turn == 49 {
                        turns.stop();
                    }
                });
            }
        });
        assert_eq!(*order.lock().unwrap(), (0..50).collect::<Vec<u32>>());
    }
}
