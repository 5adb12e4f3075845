//! How long a phase took: from the first rank's start to the last rank's end, never shorter than
//! what any rank did.
//!
//! ```text
//! rank 0   open │ B1      │ S  T       B2 │ close
//! rank 1   open │    B1 │ S    T       B2 │ close
//!                       └─── counted ─────┘
//! ```
//!
//! Where all ranks share a clock, counted is from the first rank that leaves the first barrier (B1,
//! not counted) to the first that leaves the second (B2, counted): whoever leaves it knows that all
//! have ended. A rank that wakes late from B1 is part of the phase (S), wherever it is.
//!
//! Ranks with clocks of their own (several hosts) are compared only with themselves. No rank starts
//! before the last has entered B1, and nobody leaves B2 before all have ended. So what passes on
//! *any* rank from entering B1 to leaving B2 holds the whole phase; the shortest of these times
//! belongs to the rank that came last to B1, and contains nothing more than its barrier. It is an
//! upper bound without synchronised clocks; by how much it may be too long stands beside it.
//!
//! After Büttner (2007) and Shorter (2003), who counted on rank 0 alone: a rank 0 that leaves B1
//! late makes such a phase shorter than the others' work.

use serde::{Deserialize, Serialize};

/// What the clock of one rank showed around a phase, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamps {
    /// Entering the first barrier.
    pub entered: u64,
    /// Leaving it: the rank's start.
    pub left: u64,
    /// Its own work is done, the wait for the device included.
    pub ended: u64,
    /// Leaving the second barrier.
    pub released: u64,
}

impl Stamps {
    /// The rank's own work.
    pub fn work(&self) -> u64 {
        self.ended.saturating_sub(self.left)
    }
}

/// The time of a phase over all ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseTime {
    /// An upper bound of the time from the first rank's start to the last rank's end.
    pub ns: u64,
    /// By how much at most it is too long.
    pub slack_ns: u64,
    /// Start of each rank after the first one's; none where clocks cannot be compared.
    pub starts: Option<Vec<u64>>,
}

/// The phase of all ranks. `one_clock` when their stamps are of the same clock; stamps that
/// contradict the order of barriers are taken as of several.
pub fn phase_time(ranks: &[Stamps], one_clock: bool) -> PhaseTime {
    let work = ranks.iter().map(Stamps::work).max().unwrap_or(0);
    let first = ranks.iter().map(|rank| rank.left).min().unwrap_or(0);
    let last = ranks.iter().map(|rank| rank.ended).max().unwrap_or(0);
    if one_clock && in_order(ranks) {
        let released = ranks.iter().map(|rank| rank.released).min().unwrap_or(0);
        let ns = released.max(last) - first;
        return PhaseTime {
            ns: ns.max(1),
            slack_ns: ns - (last - first),
            starts: Some(ranks.iter().map(|rank| rank.left - first).collect()),
        };
    }
    let enclosing = ranks.iter().map(|rank| rank.released.saturating_sub(rank.entered)).min();
    // Clocks of different hosts run at rates that differ by less than 1 in 1000.
    let ns = enclosing.unwrap_or(0).max(work);
    PhaseTime { ns: ns.max(1), slack_ns: ns - work, starts: None }
}

/// Nobody leaves a barrier before all have entered it.
fn in_order(ranks: &[Stamps]) -> bool {
    let most = |of: fn(&Stamps) -> u64| ranks.iter().map(of).max().unwrap_or(0);
    let least = |of: fn(&Stamps) -> u64| ranks.iter().map(of).min().unwrap_or(0);
    most(|r| r.entered) <= least(|r| r.left)
        && most(|r| r.ended) <= least(|r| r.released)
        && ranks.iter().all(|rank| rank.left <= rank.ended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_vocab::{Random, Seed};

    fn rank(entered: u64, left: u64, ended: u64, released: u64) -> Stamps {
        Stamps { entered, left, ended, released }
    }

    #[test]
    fn a_rank_0_that_wakes_late_from_the_first_barrier_does_not_shorten_the_phase() {
        // Rank 1 works from 100 to 1100; rank 0 sleeps until 1000 and is quick.
        let ranks = [rank(90, 1000, 1050, 1110), rank(95, 100, 1100, 1105)];
        let time = phase_time(&ranks, true);
        assert_eq!((time.ns, time.slack_ns), (1005, 5));
        assert_eq!(time.starts, Some(vec![900, 0]));
        // By the clock of rank 0 alone it would have been 110.
        assert!(ranks.iter().all(|rank| rank.work() <= time.ns));
    }

    #[test]
    fn ranks_on_several_hosts_are_bounded_by_the_one_that_came_last() {
        // The same, rank 1 with a clock that is an hour ahead.
        let hour = 3_600_000_000_000;
        let ranks =
            [rank(90, 1000, 1050, 1110), rank(hour + 95, hour + 100, hour + 1100, hour + 1105)];
        for told in [true, false] {
            let time = phase_time(&ranks, told);
            assert_eq!((time.ns, time.slack_ns, time.starts), (1010, 10, None), "{told}");
        }
    }

    #[test]
    fn no_schedule_and_no_offset_of_clocks_makes_a_phase_shorter_than_it_was() {
        let mut random = Random::new(Seed(7));
        for _ in 0..2000 {
            let count = 1 + random.below(5);
            let mut draw = |limit: u64| random.below(limit);
            let entered: Vec<u64> = (0..count).map(|_| 1000 + draw(500)).collect();
            let all_in = *entered.iter().max().expect("ranks");
            let left: Vec<u64> = (0..count).map(|_| all_in + draw(800)).collect();
            let ended: Vec<u64> = left.iter().map(|left| left + draw(900)).collect();
            let all_done = *ended.iter().max().expect("ranks");
            let truth = all_done - left.iter().min().expect("ranks");
            let offsets: Vec<u64> = (0..count).map(|_| draw(1 << 40)).collect();
            let stamps = |shifted: bool, releases: &[u64]| -> Vec<Stamps> {
                (0..count as usize)
                    .map(|r| {
                        let by = if shifted { offsets[r] } else { 0 };
                        rank(entered[r] + by, left[r] + by, ended[r] + by, releases[r] + by)
                    })
                    .collect()
            };
            let releases: Vec<u64> = (0..count).map(|_| all_done + draw(300)).collect();
            for (shifted, one_clock) in [(false, true), (false, false), (true, false)] {
                let time = phase_time(&stamps(shifted, &releases), one_clock);
                assert!(time.ns >= truth.max(1), "{time:?} of {truth}");
                assert!(time.ns <= truth.max(1) + time.slack_ns, "{time:?} of {truth}");
            }
        }
    }
}
