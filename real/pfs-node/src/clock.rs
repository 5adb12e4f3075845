//! The clock of drivers, and when their machines want to be woken.

use iolab_vocab::Nanos;
use rustix::event::Timespec;
use rustix::time::ClockId;
use std::collections::BTreeSet;

/// Wishes closer together than this are one.
const GRAIN: u64 = 1_000_000;
/// Who comes more than a second too late has not been running (a suspended job, a virtual machine that stood
/// still), nor perhaps have those whose answers are waited for. They get another second.
const LATE_GRAINS: u64 = 1000;

/// Monotonic time of this host.
pub(crate) fn now() -> Nanos {
    let time = rustix::time::clock_gettime(ClockId::Monotonic);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// When somebody wants to be woken.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    grains: BTreeSet<u64>,
    is_put_off: bool,
}

impl Wakes {
    /// At that time or soon after.
    pub(crate) fn at(&mut self, time: Nanos) {
        self.grains.insert(time.0.div_ceil(GRAIN));
    }

    /// Whether it is time; those times are over then. When it is far too late, what came meanwhile is
    /// heard first.
    pub(crate) fn due(&mut self, now: Nanos) -> bool {
        let grain = now.0 / GRAIN;
        let later = self.grains.split_off(&(grain + 1));
        let over = std::mem::replace(&mut self.grains, later);
        let Some(first) = over.first() else { return false };
        self.is_put_off = grain - first > LATE_GRAINS && !self.is_put_off;
        if self.is_put_off {
            self.grains.insert(grain + LATE_GRAINS);
        }
        !self.is_put_off
    }

    /// The next time, if there is one.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.grains.first().map(|grains| Nanos(grains * GRAIN))
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

    #[test]
    fn who_was_not_running_hears_first_what_came_meanwhile_and_is_woken_then() {
        let second = 1_000_000_000;
        let mut wakes = Wakes::default();
        wakes.at(Nanos(9 * second));
        assert!(!wakes.due(Nanos(17 * second)));
        assert_eq!(wakes.next(), Some(Nanos(18 * second)));
        assert!(!wakes.due(Nanos(18 * second - 1)));
        // Whatever happens, it is not put off twice.
        assert!(wakes.due(Nanos(30 * second)));
        assert_eq!(wakes.next(), None);
        wakes.at(Nanos(39 * second));
        assert!(wakes.due(Nanos(40 * second)));
    }
}
