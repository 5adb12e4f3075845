//! Where a description is in the reads of a recorded run, and what comes next there.
//!
//! A read belongs to a run when it begins in it. It is looked for where the last one was, and a little ahead
//! of it (a read that is left out); then everywhere, but after failures in a row only at each second, fourth,
//! eighth … read: who goes his own ways does not pay for the plan.
//!
//! A read that belongs to some run may do so by chance. So nothing is asked for before two have followed each
//! other as in the plan; and before twice as many as the last time after a departure that left behind what had been
//! asked for, until the plan has been followed for long.

use super::Lane;
use iolab_vocab::Extent;
use std::collections::VecDeque;

/// Runs that may be left out at once.
const LEFT_OUT: usize = 16;
/// Pieces asked for after one read: each is a call of its own.
const PIECES_MAX: usize = 64;
/// Runs ahead that are asked for at most: what is left of them is summed up at each read.
const RUNS_MAX: usize = 128;
/// Pages asked for last, which small runs beside each other share.
const RECENT: usize = 8;
const PAGE_BYTES: u64 = 4096;
/// Reads in order before anything is asked for, at first.
const PATIENCE: u32 = 2;
const PATIENCE_MAX: u32 = 1 << 16;
/// So many in order are following for long.
const LONG: u32 = 64;

/// See the module.
#[derive(Clone, Debug)]
pub(in super::super) struct Follower {
    lanes: Vec<Lane>,
    /// The lane and run the last read began in, and where it ended.
    place: Option<Place>,
    /// How far has been asked for: a run, and the first byte of it that has not been.
    asked: (usize, u64),
    misses: u32,
    /// Reads in order so far, and how many there must be.
    hits: u32,
    patience: u32,
    recent: VecDeque<Extent>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    lane: usize,
    run: usize,
    end: u64,
}

impl Follower {
    /// Follows one of these.
    pub(in super::super) fn new(lanes: Vec<Lane>) -> Follower {
        Follower {
            lanes,
            place: None,
            asked: (0, 0),
            misses: 0,
            hits: 0,
            patience: PATIENCE,
            recent: VecDeque::new(),
        }
    }

    /// Whether a read is one of the recorded run's; what is to be fetched because of it is added to `ahead`.
    pub(in super::super) fn read(
        &mut self,
        extent: Extent,
        file_bytes: u64,
        most: u64,
        ahead: &mut VecDeque<Extent>,
    ) -> bool {
        let near = self.find_near(extent.offset);
        if near.is_none() {
            self.depart();
        }
        let Some((lane, run)) = near.or_else(|| self.find(extent.offset)) else {
            self.misses = self.misses.saturating_add(1);
            return false;
        };
        if self.place.is_none_or(|place| place.lane != lane) || self.asked.0 < run {
            self.asked = (run, extent.end());
        }
        if self.asked.0 == run {
            self.asked.1 = self.asked.1.max(extent.end());
        }
        self.misses = 0;
        let place = Place { lane, run, end: extent.end() };
        self.place = Some(place);
        self.hits = self.hits.saturating_add(1);
        if self.hits >= LONG {
            self.patience = PATIENCE;
        }
        if self.hits >= self.patience {
            self.ask(place, file_bytes, most, ahead);
        }
        true
    }

    /// The reads are not those of the plan, or not where they were.
    fn depart(&mut self) {
        if let Some(place) = self.place.take() {
            let is_ahead = self.asked.0 > place.run || self.asked.1 > place.end;
            if self.hits >= self.patience && is_ahead {
                self.patience = self.patience.saturating_mul(2).min(PATIENCE_MAX);
            }
        }
        self.hits = 0;
    }

    /// The lane and run that a read from there belongs to, close to the last one.
    fn find_near(&self, offset: u64) -> Option<(usize, usize)> {
        let Place { lane, run, end } = self.place?;
        let runs = &self.lanes[lane];
        // Behind the end of a run the next one may begin at the same place again.
        let from = run + usize::from(end >= runs[run].end() && offset != end);
        let near = runs.get(from..runs.len().min(run + LEFT_OUT))?;
        Some((lane, from + near.iter().position(|run| begins(run, offset))?))
    }

    /// The lane and run that a read from there belongs to, wherever that is.
    fn find(&self, offset: u64) -> Option<(usize, usize)> {
        let begins = |run: &Extent| begins(run, offset);
        if self.misses > 0 && !self.misses.is_power_of_two() {
            return None;
        }
        let first = |lane: &Lane| lane.first().is_some_and(begins);
        if let Some(lane) = self.lanes.iter().position(first) {
            return Some((lane, 0));
        }
        let found = |(lane, runs): (usize, &Lane)| Some((lane, runs.iter().position(begins)?));
        self.lanes.iter().enumerate().find_map(found)
    }

    /// Asks for what comes next once less than half of `most` is left of what was asked for.
    fn ask(&mut self, place: Place, file_bytes: u64, most: u64, ahead: &mut VecDeque<Extent>) {
        let runs = &self.lanes[place.lane];
        let left = |run: usize, from: u64| runs[run].end().saturating_sub(from);
        let (mut run, mut from) = self.asked;
        if run - place.run > RUNS_MAX / 2 {
            return;
        }
        let mut bytes = match run == place.run {
            true => from - place.end.min(from),
            false => {
                let between = runs[place.run + 1..run].iter().map(|run| run.length);
                let between = between.fold(left(place.run, place.end), u64::saturating_add);
                between.saturating_add(from.saturating_sub(runs[run].offset))
            }
        };
        if bytes > most / 2 {
            return;
        }
        let mut pieces = 0;
        while bytes < most && pieces < PIECES_MAX && run - place.run < RUNS_MAX {
            let length = left(run, from).min(most - bytes);
            if length == 0 {
                if run + 1 >= runs.len() {
                    break;
                }
                run += 1;
                from = runs[run].offset;
                continue;
            }
            let end = (from + length).min(file_bytes);
            if end > from && is_new(&mut self.recent, from, end) {
                ahead.push_back(Extent::new(from, end - from));
                pieces += 1;
            }
            bytes += length;
            from += length;
        }
        self.asked = (run, from);
    }
}

/// Whether a read from there begins in a run.
fn begins(run: &Extent, offset: u64) -> bool {
    run.offset <= offset && offset < run.end()
}

/// Whether these pages were not asked for just now; they are, then.
fn is_new(recent: &mut VecDeque<Extent>, from: u64, end: u64) -> bool {
    let from = from / PAGE_BYTES * PAGE_BYTES;
    let end = end.div_ceil(PAGE_BYTES).saturating_mul(PAGE_BYTES);
    if recent.iter().any(|known| known.offset <= from && end <= known.end()) {
        return false;
    }
    if recent.len() == RECENT {
        recent.pop_front();
    }
    recent.push_back(Extent::new(from, end - from));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE_BYTES: u64 = 1 << 30;
    const MIB: u64 = 1 << 20;

    fn follower(lanes: &[&[(u64, u64)]]) -> Follower {
        let lane = |runs: &&[(u64, u64)]| runs.iter().map(|&(at, n)| Extent::new(at, n)).collect();
        Follower::new(lanes.iter().map(lane).collect())
    }

    /// What is asked for after a read; nothing when it is none of the plan's.
    fn after(follower: &mut Follower, at: u64, length: u64) -> Option<Vec<(u64, u64)>> {
        let mut ahead = VecDeque::new();
        let is_known = follower.read(Extent::new(at, length), FILE_BYTES, MIB, &mut ahead);
        is_known.then(|| ahead.iter().map(|extent| (extent.offset, extent.length)).collect())
    }

    #[test]
    fn the_runs_that_come_next_are_asked_for_once_and_no_others() {
        let scattered: Vec<(u64, u64)> = (0..500).map(|i| (i * 7919 % 500 * MIB, 5000)).collect();
        let mut follower = follower(&[&scattered]);
        let mut asked = Vec::new();
        for &(at, length) in &scattered {
            asked.extend(after(&mut follower, at, length).unwrap());
        }
        assert_eq!(asked, scattered[2..]);
    }

    #[test]
    fn a_long_run_is_asked_for_a_window_at_a_time_whatever_it_is_read_by() {
        let mut follower = follower(&[&[(0, 10 * MIB)]]);
        let (mut at, mut asked) = (0, 8192);
        while at < 10 * MIB {
            for (from, length) in after(&mut follower, at, 4096).unwrap() {
                assert_eq!(from, asked);
                asked += length;
                assert!(asked <= at + 4096 + MIB);
            }
            at += 4096;
        }
        assert_eq!(asked, 10 * MIB);
    }

    #[test]
    fn who_leaves_out_reads_is_followed_and_who_departs_is_found_again() {
        let runs: Vec<(u64, u64)> = (0..100).map(|i| (i * MIB * 2, 4096)).collect();
        let mut follower = follower(&[&runs]);
        assert_eq!(after(&mut follower, 0, 4096), Some(vec![]), "it may be by chance");
        let asked = after(&mut follower, 10 * MIB, 4096).unwrap();
        assert_eq!(asked[0], (12 * MIB, 4096), "four are left out");
        assert_eq!(after(&mut follower, 3 * MIB, 4096), None);
        for at in [176, 178, 180] {
            assert_eq!(after(&mut follower, at * MIB, 4096), Some(vec![]), "it has departed once");
        }
        let found = after(&mut follower, 182 * MIB, 4096).unwrap();
        assert_eq!(found[0], (184 * MIB, 4096));
        assert_eq!(found.len(), 8);
    }

    #[test]
    fn who_reads_the_same_places_in_an_order_of_his_own_is_asked_nothing_for() {
        let runs: Vec<(u64, u64)> = (0..400).map(|i| (i * 7919 % 400 * MIB, 4096)).collect();
        let mut follower = follower(&[&runs]);
        let place = |i: u64| i * 104_729 % 400 * MIB;
        let asked = |i| after(&mut follower, place(i), 4096).unwrap_or_default().len();
        let asked: usize = (0..400).map(asked).sum();
        assert_eq!(asked, 0);
    }

    #[test]
    fn each_process_finds_its_own_lane_and_a_shorter_file_has_nothing_behind_its_end() {
        let mut follower = follower(&[&[(0, 10), (MIB, 10)], &[(8 * MIB, 10), (4 * MIB, 10)]]);
        assert_eq!(after(&mut follower, 8 * MIB, 5), Some(vec![]));
        assert_eq!(after(&mut follower, 8 * MIB + 5, 5), Some(vec![(4 * MIB, 10)]));
        let mut ahead = VecDeque::new();
        let mut follower = self::follower(&[&[(0, 10), (MIB, 10), (5000, 10)]]);
        for offset in [0, 5] {
            assert!(follower.read(Extent::new(offset, 5), 6000, MIB, &mut ahead));
        }
        assert_eq!(ahead, [Extent::new(5000, 10)]);
    }

    #[test]
    fn small_runs_of_one_page_are_asked_for_as_one() {
        let runs: Vec<(u64, u64)> = (0..64).map(|i| (MIB + i * 50, 20)).collect();
        let mut follower = follower(&[&[&[(0, 10)], &runs[..]].concat()]);
        assert_eq!(after(&mut follower, 0, 5), Some(vec![]));
        assert_eq!(after(&mut follower, 5, 5), Some(vec![(MIB, 20)]));
    }
}
