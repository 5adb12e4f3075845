//! What a hop knows of each target it has packets for.
//!
//! A table with open addressing. Beyond a small size it grows with the targets that are busy at
//! once, not with all there are: before it grows, whatever is idle is forgotten. Where few targets
//! exist, each finds its own place at the first look.

use super::packet::{NONE, PacketQueue};

/// One target's share of a hop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    /// Sum of this hop's times of packets started and not yet started by the next hop.
    pub(super) ahead_nanos: u64,
    pub(super) waiting: PacketQueue,
    target: u32,
    pub(super) blocked: bool,
}

impl Flow {
    const FREE: Flow =
        Flow { ahead_nanos: 0, waiting: PacketQueue::EMPTY, target: NONE, blocked: false };

    fn is_idle(&self) -> bool {
        self.ahead_nanos == 0 && self.waiting.is_empty() && !self.blocked
    }
}

/// Up to so many places, idle flows are kept: forgetting costs more than they take.
const SMALL: usize = 32;

/// The flows of one hop.
#[derive(Debug, Default)]
pub(super) struct Flows {
    table: Vec<Flow>,
    used_count: usize,
}

impl Flows {
    /// The flow of a target, an idle one when nothing is known of it.
    #[inline]
    pub(super) fn of(&mut self, target: u32) -> &mut Flow {
        let found = self.find(target).filter(|at| self.table[*at].target == target);
        let at = found.unwrap_or_else(|| self.admit(target));
        &mut self.table[at]
    }

    /// Where the target stands, or a free place for it.
    #[inline]
    fn find(&self, target: u32) -> Option<usize> {
        let mask = self.table.len().wrapping_sub(1);
        let mut at = target as usize & mask;
        loop {
            let found = self.table.get(at)?.target;
            if found == target || found == NONE {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn admit(&mut self, target: u32) -> usize {
        if (self.used_count + 1) * 4 > self.table.len() * 3 {
            match self.table.len() < SMALL {
                true => self.rebuild((2 * self.table.len()).max(4), |_| true),
                false => self.forget_idle(),
            }
        }
        self.used_count += 1;
        let at = self.find(target).expect("a table that was just made roomy has a free place");
        self.table[at].target = target;
        at
    }

    /// Keeps what is busy, with as much room again.
    fn forget_idle(&mut self) {
        let busy_count = self.table.iter().filter(|flow| !flow.is_idle()).count();
        let places = (2 * (busy_count + 1)).next_power_of_two();
        self.rebuild(places.max(SMALL), |flow| !flow.is_idle());
    }

    fn rebuild(&mut self, places: usize, is_kept: impl Fn(&Flow) -> bool) {
        let old = std::mem::replace(&mut self.table, vec![Flow::FREE; places]);
        self.used_count = 0;
        for flow in old.iter().filter(|flow| flow.target != NONE && is_kept(flow)) {
            let at = self.find(flow.target).expect("the new table has room for all");
            self.table[at] = *flow;
            self.used_count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_vocab::{Random, Seed};
    use std::collections::BTreeMap;

    #[test]
    fn busy_flows_are_kept_and_idle_ones_cost_no_memory() {
        let mut random = Random::new(Seed(1));
        let (mut flows, mut expected) = (Flows::default(), BTreeMap::<u32, u64>::new());
        for step in 0..100_000 {
            let target = random.below(1_000_000) as u32;
            flows.of(target).ahead_nanos += 7;
            *expected.entry(target).or_default() += 7;
            if step % 10 == 0 || expected.len() > 100 {
                while let Some((target, nanos)) = expected.pop_first() {
                    let flow = flows.of(target);
                    assert_eq!(flow.ahead_nanos, nanos);
                    flow.ahead_nanos = 0;
                    if random.below(4) == 0 {
                        break;
                    }
                }
            }
        }
        for (&target, &nanos) in &expected {
            assert_eq!(flows.of(target).ahead_nanos, nanos);
        }
        assert!(flows.table.len() <= 512, "{} places", flows.table.len());
    }
}
