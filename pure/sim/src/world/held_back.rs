//! How long targets have held back what is meant for them, their memory being full.

use super::Target;
use iolab_vocab::Nanos;
use std::collections::BTreeMap;

/// Of each target that ever did.
#[derive(Debug, Default)]
pub(super) struct HeldBack(BTreeMap<Target, Times>);

#[derive(Clone, Copy, Debug, Default)]
struct Times {
    /// Together, of those that are over.
    over: Nanos,
    /// Since when it does.
    since: Option<Nanos>,
}

impl HeldBack {
    /// A target begins to; one that does already goes on.
    pub(super) fn begins(&mut self, target: Target, now: Nanos) {
        self.0.entry(target).or_default().since.get_or_insert(now);
    }

    /// A target holds nothing back any more.
    pub(super) fn ends(&mut self, target: Target, now: Nanos) {
        let Some(times) = self.0.get_mut(&target) else { return };
        times.over = times.until(now);
        times.since = None;
    }

    /// How long a target has until now, together.
    pub(super) fn until(&self, target: Target, now: Nanos) -> Nanos {
        self.0.get(&target).map_or(Nanos::ZERO, |times| times.until(now))
    }
}

impl Times {
    fn until(self, now: Nanos) -> Nanos {
        self.since.map_or(self.over, |since| self.over.after(now.since(since)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_one_target_add_up_and_those_of_another_do_not() {
        let (one, other) = (Target(1), Target(2));
        let mut held = HeldBack::default();
        held.begins(one, Nanos(10));
        held.begins(one, Nanos(12));
        assert_eq!(held.until(one, Nanos(15)), Nanos(5));
        held.ends(one, Nanos(20));
        held.ends(other, Nanos(21));
        held.begins(one, Nanos(30));
        assert_eq!(held.until(one, Nanos(31)), Nanos(11));
        assert_eq!(held.until(other, Nanos(31)), Nanos::ZERO);
    }
}
