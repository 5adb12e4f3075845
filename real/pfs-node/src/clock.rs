//! The clock of drivers, and when their machines want to be woken.

use iolab_vocab::Nanos;
use rustix::event::Timespec;
use rustix::time::ClockId;
use std::collections::BTreeSet;

/// Wishes closer together than this are one.
const GRAIN: u64 = 1_000_000;

/// Monotonic time of this host.
pub(crate) fn now() -> Nanos {
    let time = rustix::time::clock_gettime(ClockId::Monotonic);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// When somebody wants to be woken.
#[derive(Debug, Default)]
pub(crate) struct Wakes(BTreeSet<u64>);

impl Wakes {
    /// At that time or soon after.
    pub(crate) fn at(&mut self, time: Nanos) {
        self.0.insert(time.0.div_ceil(GRAIN));
    }

    /// Whether it is time; those times are over then.
    pub(crate) fn due(&mut self, now: Nanos) -> bool {
        let later = self.0.split_off(&(now.0 / GRAIN + 1));
        !std::mem::replace(&mut self.0, later).is_empty()
    }

    /// The next time, if there is one.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.0.first().map(|grains| Nanos(grains * GRAIN))
    }
}

/// How long it is until the earliest of these times; for ever if there is none.
pub(crate) fn until(now: Nanos, times: &[Option<Nanos>]) -> Option<Timespec> {
    let first = times.iter().flatten().min()?;
    let left = first.0.saturating_sub(now.0);
    Some(Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as _ })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wakes_come_at_their_time_and_not_before() {
        let mut wakes = Wakes::default();
        wakes.at(Nanos(5_000_001));
        wakes.at(Nanos(9_000_000));
        assert_eq!(wakes.next(), Some(Nanos(6_000_000)));
        assert!(!wakes.due(Nanos(5_999_999)));
        assert!(wakes.due(Nanos(6_000_000)));
        assert!(!wakes.due(Nanos(6_000_000)));
        assert!(wakes.due(Nanos(20_000_000)));
        assert_eq!((wakes.next(), until(Nanos(3), &[wakes.next(), None]).is_none()), (None, true));
        let pause = until(Nanos(1), &[Some(Nanos(2_000_000_003)), None]).unwrap();
        assert_eq!((pause.tv_sec, pause.tv_nsec), (2, 2));
    }
}
