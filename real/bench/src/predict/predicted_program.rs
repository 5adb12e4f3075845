//! A case as the program of a simulated application, and the watch that times its phases.

use crate::phase::recorded;
use crate::plan::Case;
use crate::timed::Tally;
use crate::work::Work;
use iolab_backend::Direction;
use iolab_pattern::{Access, Pattern};
use iolab_report::bench::RankTimes;
use iolab_sim::program::{Command, Communicator, File, FileOperation, Program, WORLD, What};
use iolab_vocab::{Extent, Nanos, Rank};
use std::sync::{Arc, Mutex};

/// One timed phase.
pub(super) struct Phase {
    /// Passes over the pattern, one after the other.
    pub(super) works: Vec<Work>,
    /// It only reads.
    pub(super) reading: bool,
    /// What was written is brought to the devices within it.
    pub(super) sync: bool,
}

/// Everything that is to be done.
pub(super) struct PhasePlan {
    pub(super) case: Case,
    pub(super) pattern: Box<dyn Pattern>,
    pub(super) ranks: u32,
    pub(super) own_file: bool,
    /// Operations of the rank with most.
    pub(super) end: u64,
    pub(super) acts: Vec<Phase>,
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
struct RankState {
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

impl RankState {
    const FIRST: RankState = RankState {
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

pub(super) struct PredictedProgram {
    phase_plan: PhasePlan,
    rank_states: Vec<RankState>,
    access: Access,
    results: Results,
}

impl PredictedProgram {
    /// The program, and where its results appear.
    pub(super) fn new(phase_plan: PhasePlan) -> (PredictedProgram, Results) {
        let empty = || vec![RankTimes::default(); phase_plan.ranks as usize];
        let result = |_: &Phase| PhaseResult { ranks: empty(), tally: Tally::new() };
        let results = Arc::new(Mutex::new(phase_plan.acts.iter().map(result).collect()));
        let rank_states = vec![RankState::FIRST; phase_plan.ranks as usize];
        (
            PredictedProgram {
                phase_plan,
                rank_states,
                access: Access::new(),
                results: Arc::clone(&results),
            },
            results,
        )
    }

    /// The rank whose data a rank reads or writes in its present phase.
    fn player(&self, rank: u32) -> Rank {
        let act = &self.phase_plan.acts[self.rank_states[rank as usize].act];
        self.phase_plan.case.player(Rank(rank), self.phase_plan.ranks, act.reading)
    }

    fn file(&self, rank: u32) -> File {
        if self.phase_plan.own_file { self.player(rank).0 } else { 0 }
    }

    /// The next data command of the present pass, if there is one.
    fn operation(&mut self, rank: u32, list: &mut Vec<Extent>) -> Option<Command> {
        let player = self.phase_plan.case.rank(self.player(rank));
        let own = self.phase_plan.pattern.operations(player);
        let collective = self.phase_plan.case.method.collective;
        let end = if collective { self.phase_plan.end } else { own };
        let file = self.file(rank);
        let PredictedProgram { phase_plan, rank_states, access, .. } = self;
        let rank_state = &mut rank_states[rank as usize];
        let works = &phase_plan.acts[rank_state.act].works;
        while rank_state.index >= end {
            rank_state.index = 0;
            rank_state.work += 1;
            if rank_state.work >= works.len() {
                return None;
            }
        }
        if rank_state.index < own {
            phase_plan.pattern.place(player, rank_state.index, access);
            let base = phase_plan.case.header;
            let extents = access.file_extents().filter(|extent| !extent.is_empty());
            list.extend(extents.map(|extent| Extent::new(base + extent.offset, extent.length)));
        }
        let asked = if collective { Rank(0) } else { player };
        let way = works[rank_state.work].way_of(asked, rank_state.index);
        let way =
            way.unwrap_or(if rank_state.halfway { Direction::Write } else { Direction::Read });
        Some(FileOperation::access(way, collective).of(file))
    }

    /// The data command that was under way is over.
    fn operation_done(&mut self, rank: u32) {
        let player = self.phase_plan.case.rank(self.player(rank));
        let rank_state = &mut self.rank_states[rank as usize];
        let works = &self.phase_plan.acts[rank_state.act].works;
        let both = works[rank_state.work] == Work::ReadThenWrite;
        if both && !rank_state.halfway {
            rank_state.halfway = true;
            return;
        }
        rank_state.halfway = false;
        if rank_state.index < self.phase_plan.pattern.operations(player) {
            self.phase_plan.pattern.place(player, rank_state.index, &mut self.access);
            rank_state.times.bytes += self.access.bytes() * if both { 2 } else { 1 };
            rank_state.times.operations += 1;
            let latency = rank_state.now - rank_state.mark;
            if let Ok(mut results) = self.results.lock() {
                results[rank_state.act].tally.histogram.saturating_record(latency);
            }
        }
        rank_state.index += 1;
    }

    /// What was under way is over: its time is noted, and what comes next.
    fn settle(&mut self, rank: u32) {
        let rank_state = &mut self.rank_states[rank as usize];
        let elapsed = rank_state.now - rank_state.mark;
        let times = &mut rank_state.times;
        match rank_state.under_way.take() {
            None => {}
            Some(Stage::Open) => (times.open_ns, rank_state.stage) = (elapsed, Stage::Meet),
            Some(Stage::Meet) => {
                (times.barrier_ns, times.left_barrier) = (elapsed, rank_state.now);
                rank_state.stage = Stage::Work;
            }
            Some(Stage::Work) => self.operation_done(rank),
            Some(Stage::Sync) => (times.sync_ns, rank_state.stage) = (elapsed, Stage::Part),
            Some(Stage::Part) => {
                times.phase_ns = rank_state.now - times.left_barrier;
                rank_state.stage = Stage::Close;
            }
            Some(Stage::Close) => {
                times.close_ns = elapsed;
                self.put_down(rank);
            }
        }
    }

    /// The phase is over: its times are put down, the next one begins.
    fn put_down(&mut self, rank: u32) {
        let rank_state = &mut self.rank_states[rank as usize];
        if let Ok(mut results) = self.results.lock() {
            results[rank_state.act].ranks[rank as usize] = std::mem::take(&mut rank_state.times);
        }
        let (act, now) = (rank_state.act + 1, rank_state.now);
        *rank_state = RankState { act, now, ..RankState::FIRST };
    }

    /// The last operation of the phase is over.
    fn work_done(&mut self, rank: u32) -> Stage {
        let rank_state = &mut self.rank_states[rank as usize];
        rank_state.times.done_ns = rank_state.now - rank_state.times.left_barrier;
        if self.phase_plan.acts[rank_state.act].sync { Stage::Sync } else { Stage::Part }
    }
}

impl Program for PredictedProgram {
    fn next(&mut self, rank: u32, list: &mut Vec<Extent>) -> Option<Command> {
        self.settle(rank);
        if self.rank_states[rank as usize].act == self.phase_plan.acts.len() {
            return None;
        }
        let mut stage = self.rank_states[rank as usize].stage;
        if stage == Stage::Work {
            if let Some(command) = self.operation(rank, list) {
                return self.rank_states[rank as usize].begin(stage, command);
            }
            stage = self.work_done(rank);
        }
        let file = self.file(rank);
        let command = match stage {
            Stage::Open => FileOperation::Open.of(file),
            Stage::Sync => FileOperation::Sync.of(file),
            Stage::Close => FileOperation::Close.of(file),
            Stage::Meet | Stage::Part | Stage::Work => What::barrier(WORLD).awaited(),
        };
        self.rank_states[rank as usize].begin(stage, command)
    }

    fn reached(&mut self, rank: u32, now: Nanos) {
        self.rank_states[rank as usize].now = now.0;
    }

    fn rank_count(&self) -> u32 {
        self.phase_plan.ranks
    }

    /// A file of its own is a rank's own business.
    fn communicators(&self) -> Vec<Vec<u32>> {
        let alone = if self.phase_plan.own_file { self.phase_plan.ranks } else { 0 };
        (0..alone).map(|rank| vec![rank]).collect()
    }

    fn communicator_of(&self, rank: u32, _file: File) -> Communicator {
        if self.phase_plan.own_file { 1 + rank } else { WORLD }
    }
}
