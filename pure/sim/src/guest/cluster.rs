//! A recorded program on a cluster: its transfers become requests to striped servers.
//!
//! Each thread that may transfer anything is a client process of the platform; threads of which one had
//! ended before the other began share one where there are not enough. It computes what it
//! computed between its calls and makes them at the simulation's clock: strategies decide then, what
//! comes out below them goes to the servers, and what deciding and copying cost is computation. Calls
//! without data keep what they took. Threads without transfers need no client: they have only their
//! place in time, for those who wait for them.
//!
//! A thread that waits for another one (its maker, a child, the other ranks) looks again after a
//! thousandth of the time it has waited, at least after [`LOOK`]; so much later than it could it goes on.

mod lanes;

use super::Settings;
use super::kernel::{Kernel, Request};
use super::program::{Moment, Point, What};
use super::run::Run;
use super::setup::Setup;
use super::staging::Staging;
use crate::cluster::{Cluster, Event as ClusterEvent, FileState, Order, Setup as ClusterSetup};
use crate::platform::Platform;
use crate::program::{Command, File, FileOperation, Program, What as ClusterWork};
use crate::queue::Ordered;
use iolab_policy::collective::CollectiveSelection;
use iolab_trace::{Class, Event};
use iolab_vocab::{Extent, Nanos, Refusal};
use lanes::{asks_servers, lanes};
use std::collections::{BTreeMap, VecDeque};

/// Time between two looks at what another thread has come to, at least.
const LOOK: Nanos = Nanos(1_000);
/// Looks during the time that a wait has taken so far.
const LOOKS_PER_WAIT: u64 = 1_000;

/// The kernel model knows what of a file there is, so the cluster cuts nothing off.
const ANY_SIZE: FileState = FileState { bytes: u64::MAX };

/// Runs the program on the cluster part of `platform`.
pub(super) fn run(setup: &Setup, platform: &Platform) -> Result<Run, Refusal> {
    let lanes = lanes(setup, platform.client_count());
    if lanes.len() as u64 > platform.client_count() {
        return Err(Refusal {
            message: format!(
                "{} threads of the program were at work at once, but platform `{}` has {} clients",
                lanes.len(),
                platform.name,
                platform.client_count()
            ),
            hint: "give the platform more client nodes, or `clients` per node".to_owned(),
        });
    }
    let mut threads = Threads::new(setup, platform, lanes);
    threads.pass_ready();
    let stored = serve(setup, platform, &mut threads);
    if let Some(refused) = threads.refused {
        return Err(refused);
    }
    threads.staging.end(&mut threads.run);
    let mut run = threads.run.finished(setup);
    run.stored = Some(stored?);
    Ok(run)
}

fn serve(setup: &Setup, platform: &Platform, threads: &mut Threads) -> Result<Nanos, Refusal> {
    let Settings { cache, seed, .. } = setup.settings;
    let on_cluster = ClusterSetup {
        order: Order::Documented,
        cache: cache.clone(),
        // No trace has collective calls of the cluster's own kind; the deal is never asked for.
        collectives: CollectiveSelection::default(),
        files: vec![ANY_SIZE; file_count_max(setup)],
        programs: vec![Box::new(threads)],
    };
    let mut cluster: Cluster<Ordered<ClusterEvent>> =
        Cluster::build(platform, on_cluster, Ordered::new(*seed))?;
    Ok(cluster.run()?)
}

/// More files the program cannot have: each name is one, and another one each time it is free again.
fn file_count_max(setup: &Setup) -> usize {
    let frees = |event: &&Event| matches!(event.function.class(), Class::Unlink | Class::Rename);
    setup.trace.header.files.len() + setup.trace.events.iter().filter(frees).count()
}

/// The threads of a recorded program.
struct Threads<'a> {
    setup: &'a Setup<'a>,
    kernel: Kernel<'a>,
    staging: Staging<'a>,
    run: Run,
    /// By client: the threads it runs, and which of them now.
    lanes: Vec<(Vec<usize>, usize)>,
    /// By thread.
    places: Vec<Place>,
    /// Files of the cluster by inode.
    files: BTreeMap<usize, File>,
    /// Threads without a client that can go on.
    ready: Vec<usize>,
    /// Why the run ends early: threads that wait for each other.
    refused: Option<Refusal>,
}

/// Where a thread is.
#[derive(Default)]
struct Place {
    is_client: bool,
    /// Nanoseconds that an instruction of its node takes. Work too short for one is kept until it is
    /// enough.
    instruction_ns: f64,
    now: Nanos,
    /// The moment it comes to.
    at: usize,
    phase: Phase,
    work: Nanos,
    wait: Nanos,
    /// What servers do before its call is over.
    due: VecDeque<Request>,
    /// When it made each progress, from 1 on.
    reached: Vec<Nanos>,
    /// What it waits for, and since when.
    awaits: Option<(Point, Nanos)>,
    /// Threads without a client that wait for it, and for which progress.
    waiters: Vec<(u32, usize)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Something may have to be waited for.
    #[default]
    Before,
    Gap,
    Inside,
}

/// What comes of a step of a thread.
enum Step {
    Go,
    /// It can go on when this is reached.
    Await(Point),
    End,
}

impl Place {
    /// When it would be where it is, had it done all its work; never before where it was.
    fn time(&self) -> Nanos {
        let last = self.reached.last().copied().unwrap_or_default();
        self.now.after(self.work).after(self.wait).max(last)
    }

    /// What it does by itself before it goes on, as a command; the rest is too short for one.
    fn own_command(&mut self) -> Option<Command> {
        let instructions = self.work.get() as f64 / self.instruction_ns;
        if instructions >= 1.0 {
            self.work = Nanos::ZERO;
            return Some(ClusterWork::Compute { instructions }.awaited());
        }
        let nanos = std::mem::take(&mut self.wait);
        (nanos > Nanos::ZERO).then(|| ClusterWork::Idle { nanos }.awaited())
    }
}

impl<'a> Threads<'a> {
    fn new(setup: &'a Setup<'a>, platform: &Platform, lanes: Vec<Vec<usize>>) -> Threads<'a> {
        let header = &setup.trace.header;
        let (files, processes) = (header.files.len(), header.processes.len());
        let mut places: Vec<Place> = Vec::new();
        places.resize_with(setup.program.sequences.len(), Place::default);
        for (lane, speed) in lanes.iter().zip(platform.client_speeds()) {
            lane.iter().for_each(|&thread| places[thread].instruction_ns = 1e9 / speed);
        }
        lanes.iter().flatten().for_each(|&thread| places[thread].is_client = true);
        let ready = (0..places.len()).filter(|&thread| !places[thread].is_client).collect();
        Threads {
            setup,
            kernel: Kernel::remote(setup.storage, files, processes),
            staging: Staging::new(setup, processes),
            run: Run::empty(setup),
            lanes: lanes.into_iter().map(|lane| (lane, 0)).collect(),
            places,
            files: BTreeMap::new(),
            ready,
            refused: None,
        }
    }

    /// The thread that a client runs now.
    fn thread_of(&self, rank: u32) -> Option<usize> {
        let (lane, at) = &self.lanes[rank as usize];
        lane.get(*at).copied()
    }

    /// The next thread of the client begins where this one has ended.
    fn end_thread(&mut self, rank: u32, thread: usize) {
        let (now, time) = (self.places[thread].now, self.places[thread].time());
        self.lanes[rank as usize].1 += 1;
        if let Some(next) = self.thread_of(rank) {
            self.places[next].now = now;
            self.places[next].wait = time.since(now);
        }
    }

    fn moment(&self, thread: usize) -> Option<Moment> {
        let moments = &self.setup.program.sequences[thread].moments;
        moments.get(self.places[thread].at).copied()
    }

    /// When a point was reached, if it was.
    fn time_of(&self, point: Point) -> Option<Nanos> {
        let reached = &self.places[point.sequence as usize].reached;
        reached.get((point.progress as usize).checked_sub(1)?).copied()
    }

    /// Goes on where a thread has nothing left to do first.
    fn step(&mut self, thread: usize) -> Step {
        let Some(moment) = self.moment(thread) else { return Step::End };
        match self.places[thread].phase {
            Phase::Before => {
                if let Some(point) = moment.after {
                    let Some(time) = self.time_of(point) else { return Step::Await(point) };
                    let place = &mut self.places[thread];
                    place.awaits = None;
                    place.wait = place.wait.after(time.since(place.time()));
                }
                let place = &mut self.places[thread];
                place.work = place.work.after(moment.work);
                place.phase = Phase::Gap;
            }
            Phase::Gap => {
                self.reach(thread);
                self.begin(thread, moment.what);
                self.places[thread].phase = Phase::Inside;
            }
            Phase::Inside => {
                self.end(thread, moment.what);
                self.reach(thread);
                let place = &mut self.places[thread];
                place.at += 1;
                place.phase = Phase::Before;
            }
        }
        Step::Go
    }

    fn begin(&mut self, thread: usize, what: What) {
        let now = self.places[thread].time();
        match what {
            What::Call(row) => {
                self.run.events[row].start = now;
                self.call(thread, row);
            }
            What::Begin(row) => self.run.events[row].start = now,
            What::Start | What::End(_) | What::Exit => {}
        }
    }

    fn end(&mut self, thread: usize, what: What) {
        let now = self.places[thread].time();
        if let What::Call(row) | What::End(row) = what {
            self.run.events[row].end = now;
            self.run.hash(now, row);
        }
        if what == What::Exit {
            self.staging.ended(self.setup.program.sequences[thread].process);
        }
    }

    /// Lets the strategies decide, if there are any, and keeps what is left for the servers.
    fn call(&mut self, thread: usize, row: usize) {
        let Threads { kernel, staging, run, .. } = self;
        let place = &mut self.places[thread];
        let cost = staging.carry_out(place.time(), row, kernel, run);
        place.work = place.work.after(cost.work);
        place.wait = place.wait.after(cost.wait);
        place.due.extend(kernel.take_requests());
        debug_assert!(place.is_client || place.due.is_empty(), "row {row} needs a client");
    }

    /// Notes progress, and lets those without a client go on who waited for it.
    fn reach(&mut self, thread: usize) {
        let place = &mut self.places[thread];
        let now = place.time();
        place.reached.push(now);
        self.run.seen(self.setup.program.sequences[thread].process, now);
        let place = &mut self.places[thread];
        let progress = place.reached.len() as u32;
        let over = place.waiters.extract_if(.., |(wanted, _)| *wanted <= progress);
        self.ready.extend(over.map(|(_, waiter)| waiter));
    }

    fn pass_ready(&mut self) {
        while let Some(thread) = self.ready.pop() {
            self.pass(thread);
        }
    }

    /// A thread without a client goes as far as it can.
    fn pass(&mut self, thread: usize) {
        loop {
            let place = &mut self.places[thread];
            place.now = place.time();
            (place.work, place.wait) = (Nanos::ZERO, Nanos::ZERO);
            match self.step(thread) {
                Step::Go => {}
                Step::Await(point) => {
                    let waiters = &mut self.places[point.sequence as usize].waiters;
                    waiters.push((point.progress, thread));
                    return self.await_point(thread, point);
                }
                Step::End => return,
            }
        }
    }

    /// The thread waits; if those it waits for wait for it, nobody ever goes on.
    fn await_point(&mut self, thread: usize, point: Point) {
        let place = &mut self.places[thread];
        if place.awaits.is_some() {
            return;
        }
        place.awaits = Some((point, place.now));
        let mut awaited = point;
        loop {
            if awaited.sequence as usize == thread {
                self.refused = Some(self.setup.never_comes(thread, point.sequence as usize));
                return;
            }
            match self.places[awaited.sequence as usize].awaits {
                Some((next, _)) if self.time_of(next).is_none() => awaited = next,
                _ => return,
            }
        }
    }

    /// What a client is told to do while it waits.
    fn look_again(&mut self, thread: usize, point: Point) -> Command {
        self.await_point(thread, point);
        let place = &self.places[thread];
        let since = place.awaits.map_or(place.now, |(_, since)| since);
        let waited = place.now.since(since).get();
        ClusterWork::Idle { nanos: Nanos(waited / LOOKS_PER_WAIT).max(LOOK) }.awaited()
    }

    /// What comes before the thread goes on, if anything does: its own work before calls that others
    /// may feel, and then what the servers do.
    fn command(&mut self, thread: usize, list: &mut Vec<Extent>) -> Option<Command> {
        let is_felt = match (self.places[thread].phase, self.moment(thread)?) {
            (Phase::Before, moment) => moment.after.is_some(),
            (Phase::Gap, Moment { what: What::Call(row), .. }) => {
                !self.setup.apply.is_empty() || asks_servers(self.setup, row)
            }
            (Phase::Gap, _) => false,
            (Phase::Inside, _) => !self.places[thread].due.is_empty(),
        };
        let place = &mut self.places[thread];
        if is_felt && let Some(command) = place.own_command() {
            return Some(command);
        }
        let request = place.due.pop_front()?;
        let next = self.files.len() as File;
        let file = *self.files.entry(request.inode()).or_insert(next);
        Some(match request {
            Request::Transfer { direction, extent, .. } => {
                list.push(extent);
                FileOperation::access(direction, false).of(file)
            }
            Request::Sync { .. } => FileOperation::Sync.of(file),
        })
    }
}

impl Program for Threads<'_> {
    fn next(&mut self, rank: u32, list: &mut Vec<Extent>) -> Option<Command> {
        while let Some(thread) = self.thread_of(rank).filter(|_| self.refused.is_none()) {
            if let Some(command) = self.command(thread, list) {
                return Some(command);
            }
            match self.step(thread) {
                Step::Go => self.pass_ready(),
                Step::Await(point) => return Some(self.look_again(thread, point)),
                Step::End => self.end_thread(rank, thread),
            }
        }
        None
    }

    fn reached(&mut self, rank: u32, now: Nanos) {
        if let Some(thread) = self.thread_of(rank) {
            self.places[thread].now = now;
        }
    }

    fn rank_count(&self) -> u32 {
        self.lanes.len() as u32
    }
}
