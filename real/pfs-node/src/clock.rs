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

/// A turn of a server counts that much at most while it awaits something.
const TURN_MAX: u64 = 2_000_000_000;
/// How long a server waits at most that awaits something, so that its turns are shorter than [`TURN_MAX`].
const PAUSE_MAX: u64 = 1_000_000_000;

/// The time of a server: its host's, without that in which the server was suspended, as with the job it is of or the
/// virtual machine it runs in. Nobody could tell it anything meanwhile, so none of its patience is used up: who has cut a
/// file, lost a connection or is to come to a collective has as long as ever.
///
/// Promises: it does not go back; of a suspension it counts two seconds at most. Costs: a server that awaits something takes
/// a turn each second.
#[derive(Debug, Default)]
pub(crate) struct OwnTime {
    absent: u64,
    turn: Nanos,
}

impl OwnTime {
    /// From now on.
    pub(crate) fn begin() -> OwnTime {
        OwnTime { absent: 0, turn: now() }
    }

    /// When this turn began.
    pub(crate) fn now(&self) -> Nanos {
        self.turn
    }

    /// A turn begins at this time of the host; `awaits` says whether anything was to happen at some time.
    fn turns(&mut self, host: Nanos, awaits: bool) {
        let now = host.0.saturating_sub(self.absent).max(self.turn.0);
        let surplus = if awaits { (now - self.turn.0).saturating_sub(TURN_MAX) } else { 0 };
        self.absent += surplus;
        self.turn = Nanos(now - surplus);
    }

    /// Lets `wait` wait, at most until one of these times, and begins the next turn.
    pub(crate) fn pass<T>(
        &mut self,
        until: &[Option<Nanos>],
        wait: impl FnOnce(Option<&Timespec>) -> T,
    ) -> T {
        let soon = Nanos(now().0.saturating_sub(self.absent));
        let awaits = until.iter().any(Option::is_some);
        let at_most = awaits.then_some(Nanos(soon.0 + PAUSE_MAX));
        let first = until.iter().copied().chain([at_most]).flatten().min();
        let waited = wait(self::until(soon, &[first]).as_ref());
        self.turns(now(), awaits);
        waited
    }
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
    fn time_in_which_a_server_was_suspended_is_none_of_its_own() {
        let at = |seconds: u64| Nanos(seconds * 1_000_000_000);
        let mut time = OwnTime { absent: 0, turn: at(100) };
        time.turns(at(101), true);
        assert_eq!(time.now(), at(101));
        // Suspended for an hour, twice.
        time.turns(at(3_702), true);
        assert_eq!(time.now(), at(103));
        time.turns(at(3_703), true);
        assert_eq!(time.now(), at(104));
        time.turns(at(7_304), true);
        assert_eq!(time.now(), at(106));
        // Nobody counts how long nothing was to happen.
        time.turns(at(8_304), false);
        assert_eq!(time.now(), at(1_106));
        // A clock that goes back is none.
        time.turns(at(8_000), true);
        assert_eq!(time.now(), at(1_106));
    }

    #[test]
    fn a_server_that_awaits_something_is_not_away_for_longer_than_it_counts() {
        let mut time = OwnTime::begin();
        let far = Some(Nanos(time.now().0 + 3_600_000_000_000));
        let asked = time.pass(&[None, far], |pause| pause.copied());
        assert!(asked.is_some_and(|pause| (pause.tv_sec, pause.tv_nsec) <= (1, 0)), "{asked:?}");
        assert!(time.pass(&[None], |pause| pause.is_none()), "nothing is to happen");
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
