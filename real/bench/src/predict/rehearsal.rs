//! A case as the program of a simulated application, and the watch that times its phases.

use crate::phase::recorded;
use crate::plan::Case;
use crate::rank_times::RankTimes;
use crate::timed::{Tally, Work};
use iolab_backend::Direction;
use iolab_pattern::{Access, Pattern};
use iolab_sim::program::{Command, Communicator, File, Program, WORLD};
use iolab_vocab::{Extent, Nanos, Rank};
use std::sync::{Arc, Mutex};

/// One timed phase.
pub(super) struct Act {
    /// Passes over the pattern, one after the other.
    pub(super) works: Vec<Work>,
    /// It only reads.
    pub(super) reading: bool,
    /// What was written is brought to the devices within it.
    pub(super) sync: bool,
}

/// Everything that is to be done.
pub(super) struct Score {
    pub(super) case: Case,
    pub(super) pattern: Box<dyn Pattern>,
    pub(super) ranks: u32,
    pub(super) own_file: bool,
    /// Operations of the rank with most.
    pub(super) end: u64,
    pub(super) acts: Vec<Act>,
}

/// What one phase came to.
pub(super) struct PhaseResult {
    ranks: Vec<RankTimes>,
    /// Latencies of all ranks together.
    tally: Tally,
}

impl PhaseResult {
    /// The times of the ranks; the first one carries the latencies of all.
    pub(super) fn times(&self) -> Vec<RankTimes> {
        let mut times = self.ranks.clone();
        if let Some(first) = times.first_mut() {
            first.latencies = recorded(&self.tally);
        }
        times
    }
}

type Results = Arc<Mutex<Vec<PhaseResult>>>;

/// The parts of a phase, each a command or, for `Work`, many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    Meet,
    Work,
    Sync,
    Part,
    Close,
}

/// Where a rank is.
#[derive(Clone, Debug)]
struct Performer {
    act: usize,
    /// What it begins next.
    stage: Stage,
    under_way: Option<Stage>,
    work: usize,
    index: u64,
    /// The first half, the reading, of this operation is over.
    halfway: bool,
    now: u64,
    /// When what is under way began.
    mark: u64,
    times: RankTimes,
}

impl Performer {
    const FIRST: Performer = Performer {
        act: 0,
        stage: Stage::Open,
        under_way: None,
        work: 0,
        index: 0,
        halfway: false,
        now: 0,
        mark: 0,
        times: RankTimes::NONE,
    };

    fn begin(&mut self, stage: Stage, command: Command) -> Option<Command> {
        (self.under_way, self.mark) = (Some(stage), self.now);
        Some(command)
    }
}

pub(super) struct Rehearsal {
    score: Score,
    performers: Vec<Performer>,
    access: Access,
    results: Results,
}

impl Rehearsal {
    /// The program, and where its results appear.
    pub(super) fn new(score: Score) -> (Rehearsal, Results) {
        let empty = || vec![RankTimes::default(); score.ranks as usize];
        let result = |_: &Act| PhaseResult { ranks: empty(), tally: Tally::new() };
        let results = Arc::new(Mutex::new(score.acts.iter().map(result).collect()));
        let performers = vec![Performer::FIRST; score.ranks as usize];
        (
            Rehearsal { score, performers, access: Access::new(), results: Arc::clone(&results) },
            results,
        )
    }

    /// The rank whose data a rank reads or writes in its present phase.
    fn player(&self, rank: u32) -> Rank {
        let act = &self.score.acts[self.performers[rank as usize].act];
        self.score.case.player(Rank(rank), self.score.ranks, act.reading)
    }

    fn file(&self, rank: u32) -> File {
        if self.score.own_file { self.player(rank).0 } else { 0 }
    }

    /// The next data command of the present pass, if there is one.
    fn operation(&mut self, rank: u32, list: &mut Vec<Extent>) -> Option<Command> {
        let player = self.score.case.rank(self.player(rank));
        let own = self.score.pattern.operations(player);
        let collective = self.score.case.method.collective;
        let end = if collective { self.score.end } else { own };
        let file = self.file(rank);
        let Rehearsal { score, performers, access, .. } = self;
        let performer = &mut performers[rank as usize];
        let works = &score.acts[performer.act].works;
        while performer.index >= end {
            performer.index = 0;
            performer.work += 1;
            if performer.work >= works.len() {
                return None;
            }
        }
        if performer.index < own {
            score.pattern.place(player, performer.index, access);
            let base = score.case.header;
            let extents = access.file_extents().filter(|extent| !extent.is_empty());
            list.extend(extents.map(|extent| Extent::new(base + extent.offset, extent.length)));
        }
        let asked = if collective { Rank(0) } else { player };
        let way = works[performer.work].way_of(asked, performer.index);
        let way = way.unwrap_or(if performer.halfway { Direction::Write } else { Direction::Read });
        Some(match (way, collective) {
            (Direction::Read, false) => Command::Read(file),
            (Direction::Read, true) => Command::ReadAll(file),
            (Direction::Write, false) => Command::Write(file),
            (Direction::Write, true) => Command::WriteAll(file),
        })
    }

    /// The data command that was under way is over.
    fn operation_done(&mut self, rank: u32) {
        let player = self.score.case.rank(self.player(rank));
        let performer = &mut self.performers[rank as usize];
        let works = &self.score.acts[performer.act].works;
        let both = works[performer.work] == Work::ReadThenWrite;
        if both && !performer.halfway {
            performer.halfway = true;
            return;
        }
        performer.halfway = false;
        if performer.index < self.score.pattern.operations(player) {
            self.score.pattern.place(player, performer.index, &mut self.access);
            performer.times.bytes += self.access.bytes() * if both { 2 } else { 1 };
            performer.times.operations += 1;
            let latency = performer.now - performer.mark;
            if let Ok(mut results) = self.results.lock() {
                results[performer.act].tally.histogram.saturating_record(latency);
            }
        }
        performer.index += 1;
    }

    /// What was under way is over: its time is noted, and what comes next.
    fn settle(&mut self, rank: u32) {
        let performer = &mut self.performers[rank as usize];
        let elapsed = performer.now - performer.mark;
        let times = &mut performer.times;
        match performer.under_way.take() {
            None => {}
            Some(Stage::Open) => (times.open_ns, performer.stage) = (elapsed, Stage::Meet),
            Some(Stage::Meet) => {
                (times.barrier_ns, times.left_barrier) = (elapsed, performer.now);
                performer.stage = Stage::Work;
            }
            Some(Stage::Work) => self.operation_done(rank),
            Some(Stage::Sync) => (times.sync_ns, performer.stage) = (elapsed, Stage::Part),
            Some(Stage::Part) => {
                times.phase_ns = performer.now - times.left_barrier;
                performer.stage = Stage::Close;
            }
            Some(Stage::Close) => {
                times.close_ns = elapsed;
                self.put_down(rank);
            }
        }
    }

    /// The phase is over: its times are put down, the next one begins.
    fn put_down(&mut self, rank: u32) {
        let performer = &mut self.performers[rank as usize];
        if let Ok(mut results) = self.results.lock() {
            results[performer.act].ranks[rank as usize] = std::mem::take(&mut performer.times);
        }
        let (act, now) = (performer.act + 1, performer.now);
        *performer = Performer { act, now, ..Performer::FIRST };
    }

    /// The last operation of the phase is over.
    fn work_done(&mut self, rank: u32) -> Stage {
        let performer = &mut self.performers[rank as usize];
        performer.times.done_ns = performer.now - performer.times.left_barrier;
        if self.score.acts[performer.act].sync { Stage::Sync } else { Stage::Part }
    }
}

impl Program for Rehearsal {
    fn next(&mut self, rank: u32, list: &mut Vec<Extent>) -> Option<Command> {
        self.settle(rank);
        if self.performers[rank as usize].act == self.score.acts.len() {
            return None;
        }
        let mut stage = self.performers[rank as usize].stage;
        if stage == Stage::Work {
            if let Some(command) = self.operation(rank, list) {
                return self.performers[rank as usize].begin(stage, command);
            }
            stage = self.work_done(rank);
        }
        let file = self.file(rank);
        let command = match stage {
            Stage::Open => Command::Open(file),
            Stage::Sync => Command::Sync(file),
            Stage::Close => Command::Close(file),
            Stage::Meet | Stage::Part | Stage::Work => Command::Barrier { communicator: WORLD },
        };
        self.performers[rank as usize].begin(stage, command)
    }

    fn reached(&mut self, rank: u32, now: Nanos) {
        self.performers[rank as usize].now = now.0;
    }

    fn rank_count(&self) -> u32 {
        self.score.ranks
    }

    /// A file of its own is a rank's own business.
    fn communicators(&self) -> Vec<Vec<u32>> {
        let alone = if self.score.own_file { self.score.ranks } else { 0 };
        (0..alone).map(|rank| vec![rank]).collect()
    }

    fn communicator_of(&self, rank: u32, _file: File) -> Communicator {
        if self.score.own_file { 1 + rank } else { WORLD }
    }
}
