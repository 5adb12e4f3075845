//! The cores of the machine, shared equally by those who have work.
//!
//! All workers advance at the same rate, so one clock of service suffices: work that is begun at
//! service s and takes w ends at service s + w, whatever comes and goes meanwhile. Cost: a heap
//! operation per begin and end.

use iolab_vocab::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Service is counted in fractions of a nanosecond, so that sharing loses nothing.
const FINE: u128 = 1 << 20;

/// Cores and the work on them.
#[derive(Debug)]
pub(super) struct Processors {
    cores: u128,
    /// Service one worker would have had since time zero.
    service: u128,
    now: Nanos,
    ends: BinaryHeap<Reverse<(u128, u32)>>,
}

impl Processors {
    pub(super) fn new(cores: u32) -> Processors {
        Processors {
            cores: u128::from(cores),
            service: 0,
            now: Nanos::ZERO,
            ends: BinaryHeap::new(),
        }
    }

    /// `worker` has work to do from `now` on.
    pub(super) fn begin(&mut self, now: Nanos, worker: u32, work: Nanos) {
        self.advance(now);
        self.ends.push(Reverse((self.service + u128::from(work.0) * FINE, worker)));
    }

    /// When the next work ends if nothing changes before.
    pub(super) fn next_end(&self) -> Option<Nanos> {
        let Reverse((end, _)) = self.ends.peek()?;
        let workers = self.ends.len() as u128;
        let left = end.saturating_sub(self.service);
        // Time per service is workers / cores where cores are short; rounded up, to be over then.
        let time = match workers > self.cores {
            true => (left * workers).div_ceil(self.cores * FINE),
            false => left.div_ceil(FINE),
        };
        Some(self.now.after(Nanos(time as u64)))
    }

    /// Takes a worker whose work is over at `now`.
    pub(super) fn pop(&mut self, now: Nanos) -> Option<u32> {
        self.advance(now);
        let Reverse((end, _)) = self.ends.peek()?;
        if *end > self.service {
            return None;
        }
        self.ends.pop().map(|Reverse((_, worker))| worker)
    }

    fn advance(&mut self, now: Nanos) {
        let elapsed = u128::from(now.since(self.now).0) * FINE;
        let workers = self.ends.len() as u128;
        self.service += if workers > self.cores { elapsed * self.cores / workers } else { elapsed };
        self.now = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends of all work begun, in order.
    fn drain(processors: &mut Processors) -> Vec<(u64, u32)> {
        let mut ends = Vec::new();
        while let Some(now) = processors.next_end() {
            while let Some(worker) = processors.pop(now) {
                ends.push((now.0, worker));
            }
        }
        ends
    }

    #[test]
    fn as_many_workers_as_cores_do_not_notice_each_other() {
        let mut processors = Processors::new(2);
        processors.begin(Nanos(0), 0, Nanos(100));
        processors.begin(Nanos(50), 1, Nanos(100));
        assert_eq!(drain(&mut processors), [(100, 0), (150, 1)]);
    }

    #[test]
    fn more_workers_than_cores_share_them_equally() {
        let mut processors = Processors::new(2);
        for worker in 0..4 {
            processors.begin(Nanos(0), worker, Nanos(100));
        }
        assert_eq!(drain(&mut processors), [(200, 0), (200, 1), (200, 2), (200, 3)]);
        // One of 30 and two of 100 on one core: 30 each until 90, then 70 each of two.
        let mut processors = Processors::new(1);
        processors.begin(Nanos(0), 0, Nanos(100));
        processors.begin(Nanos(0), 1, Nanos(30));
        processors.begin(Nanos(0), 2, Nanos(100));
        assert_eq!(drain(&mut processors), [(90, 1), (230, 0), (230, 2)]);
    }
}
