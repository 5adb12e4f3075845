//! Runs a plan: the same code on every rank, results on rank 0.
//!
//! For every case and repetition: make what has to be there (setup), bring the caches into their
//! state, run the timed phases, verify. Ranks agree after every stage, so an error on one ends
//! the run on all, and the files are removed whatever happens.

use crate::cache::{self, CacheState};
use crate::cell::{Abilities, refusal};
use crate::content::Content;
use crate::metadata::{PHASES, Visit};
use crate::outcome::{Measurement, Outcome, Refused, summarise};
use crate::phase::{Label, Stages, agree, measurement, timed};
use crate::plan::{Case, Plan, Temporal};
use crate::source::{Source, is_contiguous};
use crate::surroundings::{Surroundings, processors, room};
use crate::timed::{Loop, Tally, Work};
use iolab_backend::{Arena, Backend, Direction, IoError, Opening};
use iolab_comm::{Comm, CommError, largest};
use iolab_host::tick::{TickClock, monotonic};
use iolab_pattern::{Access, Pattern};
use iolab_vocab::{Rank, format_bytes};
use std::fmt;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a run ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BenchError {
    /// A rank failed; all stopped.
    OnRank {
        /// Which one.
        rank: u32,
        /// What happened.
        message: String,
        /// The way out.
        hint: String,
    },
    /// The ranks could not talk any more.
    Comm(CommError),
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BenchError::OnRank { rank, message, .. } => write!(f, "rank {rank}: {message}"),
            BenchError::Comm(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BenchError {}

impl From<CommError> for BenchError {
    fn from(error: CommError) -> BenchError {
        BenchError::Comm(error)
    }
}

impl BenchError {
    /// What the user may do about it.
    pub fn hint(&self) -> &str {
        match self {
            BenchError::OnRank { hint, .. } => hint,
            BenchError::Comm(_) => "look at the rank's own messages, and at the system's log",
        }
    }
}

fn told(error: &IoError) -> (String, String) {
    (error.to_string(), error.hint().to_owned())
}

/// Runs all cases of the plan. `observe` sees every measurement on rank 0 as it is made.
///
/// # Errors
/// The first error of any rank, on every rank.
pub fn run(
    plan: &Plan,
    comm: &dyn Comm,
    abilities: Abilities,
    observe: &dyn Fn(&Measurement),
) -> Result<Outcome, BenchError> {
    ranks_agree(plan, comm)?;
    let clock = TickClock::calibrate(Duration::from_millis(5));
    let barrier_cost_ns = barrier_cost(comm)?;
    let runner = Runner { plan, comm, clock, barrier_cost_ns };
    let _cleaning = Cleaning { runner: &runner };
    let mut measurements = Vec::new();
    let mut refused = Vec::new();
    for case in &plan.cases {
        if let Some(reason) = refusal(case, plan, comm.size(), abilities) {
            refused.push(refused_case(case, reason));
            continue;
        }
        for repetition in 0..plan.repetitions {
            let phases = runner.case(case)?;
            for mut phase in phases {
                name(&mut phase, case, repetition);
                if comm.rank().0 == 0 {
                    observe(&phase);
                }
                measurements.push(phase);
            }
        }
    }
    Ok(Outcome {
        format: "iolab-bench".to_owned(),
        format_version: 1,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args().collect(),
        plan: plan.text.clone(),
        seed: plan.seed.0,
        ranks: comm.size(),
        communication: comm.kind().to_owned(),
        clock: clock.source().to_owned(),
        clock_cost_ns: clock.cost(),
        surroundings: Surroundings::of(&plan.target),
        warnings: warnings(comm),
        summaries: summarise(&measurements),
        measurements,
        refused,
    })
}

fn name(phase: &mut Measurement, case: &Case, repetition: u32) {
    phase.test.clone_from(&case.test);
    phase.spatial = case.spatial();
    phase.temporal = case.temporal.name().to_owned();
    phase.method = case.method.name.to_owned();
    phase.size = case.size;
    phase.weight = case.weight;
    phase.repetition = repetition;
}

fn refused_case(case: &Case, reason: String) -> Refused {
    Refused {
        test: case.test.clone(),
        spatial: case.spatial(),
        temporal: case.temporal.name().to_owned(),
        method: case.method.name.to_owned(),
        reason,
    }
}

fn warnings(comm: &dyn Comm) -> Vec<String> {
    let (ranks, processors) = (comm.size() as usize, processors());
    let mut warnings = Vec::new();
    if ranks > processors && comm.kind() != "MPI on several hosts" {
        warnings.push(format!(
            "{ranks} ranks share {processors} processors: times contain waiting for the processor, \
             and MPICH's collectives may take milliseconds each"
        ));
    }
    warnings
}

/// All ranks must have read the same plan with the same version.
fn ranks_agree(plan: &Plan, comm: &dyn Comm) -> Result<(), BenchError> {
    let said = format!("{}\n{}", env!("CARGO_PKG_VERSION"), plan.text);
    let heard = comm.gather(said.as_bytes())?;
    match heard.iter().position(|other| *other != heard[0]) {
        None => Ok(()),
        Some(rank) => Err(BenchError::OnRank {
            rank: rank as u32,
            message: "has another plan or version of iolab than rank 0".to_owned(),
            hint: "start all ranks with the same command and plan file".to_owned(),
        }),
    }
}

/// The median of some barriers that all ranks enter at once.
fn barrier_cost(comm: &dyn Comm) -> Result<u64, BenchError> {
    let mut costs = Vec::new();
    for _ in 0..21 {
        let start = monotonic();
        comm.barrier()?;
        costs.push(monotonic() - start);
    }
    costs.sort_unstable();
    Ok(costs[costs.len() / 2])
}

struct Runner<'a> {
    plan: &'a Plan,
    comm: &'a dyn Comm,
    clock: TickClock,
    barrier_cost_ns: u64,
}

/// Removes the files when the run ends, however it ends.
struct Cleaning<'a> {
    runner: &'a Runner<'a>,
}

impl Drop for Cleaning<'_> {
    fn drop(&mut self) {
        if !self.runner.plan.keep && self.runner.comm.rank().0 == 0 {
            let _ = fs::remove_file(&self.runner.plan.target);
            for rank in 0..self.runner.comm.size() {
                let _ = fs::remove_file(own_path(&self.runner.plan.target, rank));
            }
            let _ = fs::remove_dir_all(suffixed(&self.runner.plan.target, "meta"));
        }
    }
}

fn suffixed(target: &Path, suffix: &str) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

fn own_path(target: &Path, rank: u32) -> PathBuf {
    suffixed(target, &rank.to_string())
}

/// One step of a case.
#[derive(Clone, Copy)]
enum Step {
    /// Put generation 0 into the files, untimed.
    Setup,
    /// Bring the cache into the state of the plan.
    Caches,
    /// A timed phase.
    Timed { name: &'static str, work: &'static [Act], fresh: bool, generation: u32 },
}

/// What a timed phase does, before the numbers of the case are put in.
#[derive(Clone, Copy, PartialEq)]
enum Act {
    Read,
    Write,
    ReadThenWrite,
    Mixed,
}

const fn phase(name: &'static str, work: &'static [Act]) -> Step {
    Step::Timed { name, work, fresh: false, generation: 0 }
}

fn steps(temporal: Temporal) -> Vec<Step> {
    use Act::{Mixed, Read, ReadThenWrite, Write};
    use Step::{Caches, Setup, Timed};
    let write = Timed { name: "write", work: &[Write], fresh: true, generation: 0 };
    let changed = |name, work| Timed { name, work, fresh: false, generation: 1 };
    match temporal {
        Temporal::Write => vec![write],
        Temporal::Read => vec![Setup, Caches, phase("read", &[Read])],
        Temporal::ReRead => {
            vec![Setup, Caches, phase("read", &[Read]), phase("re-read", &[Read])]
        }
        Temporal::ReWrite => vec![write, changed("re-write", &[Write])],
        Temporal::ReadModifyWrite => {
            vec![Setup, Caches, changed("read-modify-write", &[ReadThenWrite])]
        }
        Temporal::ReadThenWrite => {
            vec![Setup, Caches, changed("read-then-write", &[Read, Write])]
        }
        Temporal::Mixed => vec![Setup, Caches, phase("mixed", &[Mixed])],
        Temporal::Metadata => Vec::new(),
    }
}

/// What stays the same during one repetition of a case on one rank.
struct Scene<'a> {
    case: &'a Case,
    pattern: Box<dyn Pattern>,
    /// Every rank has a file of its own.
    own_file: bool,
    backend: Box<dyn Backend>,
    source: Source,
    depth: usize,
    /// Some operation of some rank is not contiguous.
    noncontiguous: bool,
}

impl Scene<'_> {
    fn together(&self) -> bool {
        self.case.together(self.noncontiguous)
    }
}

impl Runner<'_> {
    fn case(&self, case: &Case) -> Result<Vec<Measurement>, BenchError> {
        if case.temporal == Temporal::Metadata {
            return self.metadata(case);
        }
        let built = self.scene(case);
        agree(self.comm, built.as_ref().map(|_| ()).map_err(Clone::clone))?;
        let Ok(mut scene) = built else { return Ok(Vec::new()) };
        scene.noncontiguous = largest(self.comm, scene.noncontiguous.into())? > 0;
        let mut cache = String::new();
        let mut measurements = Vec::new();
        for step in steps(case.temporal) {
            match step {
                Step::Setup if case.method.keeps_data => self.setup(&scene)?,
                Step::Caches if case.method.keeps_data => cache = self.caches(&scene)?,
                Step::Setup | Step::Caches => {}
                Step::Timed { name, work, fresh, generation } => {
                    let writes = work.iter().any(|act| *act != Act::Read);
                    let allocation = match (writes, fresh) {
                        (true, true) => "allocate",
                        (true, false) => "overwrite",
                        _ => "",
                    };
                    let label = Label {
                        phase: name.to_owned(),
                        cache: if work[0] == Act::Write { String::new() } else { cache.clone() },
                        allocation: allocation.to_owned(),
                    };
                    measurements.push(self.phase(&mut scene, work, fresh, generation, &label)?);
                    // What a second reading finds is what the first left.
                    cache = format!("after {name}");
                }
            }
        }
        Ok(measurements)
    }

    fn scene<'a>(&self, case: &'a Case) -> Result<Scene<'a>, (String, String)> {
        let pattern = case
            .pattern(self.comm.size(), self.plan.seed)
            .map_err(|error| (error.message, error.hint))?;
        let writes = !matches!(case.temporal, Temporal::Read | Temporal::ReRead);
        let own_file = case.file_per_rank || (writes && pattern.writes_own_file());
        let exact = self.plan.verify && case.method.keeps_data;
        let depth = case.depth.max(1);
        let rank = self.pattern_rank(case, false);
        let source = Source::plan(pattern.as_ref(), rank, writes, exact, depth)
            .map_err(|why| (why, "make the pattern smaller, or leave --verify".to_owned()))?;
        let files = if own_file { u64::from(self.comm.size()) } else { 1 };
        let wanted = (pattern.file_bytes().saturating_add(case.header)).saturating_mul(files);
        match room(&self.plan.target) {
            Some(room) if room < wanted && case.method.keeps_data => {
                let (wanted, room) = (format_bytes(wanted), format_bytes(room));
                let target = self.plan.target.display();
                return Err((
                    format!("{} needs {wanted}, but {target} has room for {room}", case.spatial()),
                    "choose a target with more room, or a smaller pattern".to_owned(),
                ));
            }
            _ => {}
        }
        let arena = Arena::new(source.bytes);
        let backend = (case.method.make)(arena, depth).map_err(|error| told(&error))?;
        let noncontiguous = !is_contiguous(pattern.as_ref(), rank);
        Ok(Scene { case, pattern, own_file, backend, source, depth, noncontiguous })
    }

    /// The rank of the pattern that this rank plays; a neighbour's when reading reordered.
    fn pattern_rank(&self, case: &Case, reading: bool) -> Rank {
        case.rank(self.played(case, reading))
    }

    fn played(&self, case: &Case, reading: bool) -> Rank {
        match case.reorder && reading {
            true => Rank((self.comm.rank().0 + 1) % self.comm.size()),
            false => self.comm.rank(),
        }
    }

    fn path(&self, scene: &Scene, rank: Rank) -> PathBuf {
        match scene.own_file {
            true => own_path(&self.plan.target, rank.0),
            false => self.plan.target.clone(),
        }
    }

    fn content(&self, scene: &Scene, rank: Rank, generation: u32) -> Content {
        let file = if scene.own_file { rank.0 + 1 } else { 0 };
        Content::new(self.plan.seed, file, generation)
    }

    /// Writes generation 0, every rank its share, with plain large writes.
    fn setup(&self, scene: &Scene) -> Result<(), BenchError> {
        let rank = self.comm.rank();
        let made = self.write_share(scene, rank).map_err(|error| {
            let path = self.path(scene, rank);
            let message = format!("cannot prepare {}: {error}", path.display());
            (message, "choose a target that you may write to, with enough room".to_owned())
        });
        agree(self.comm, made)
    }

    fn write_share(&self, scene: &Scene, rank: Rank) -> std::io::Result<()> {
        const CHUNK: u64 = 1 << 20;
        let bytes = scene.pattern.file_bytes();
        let (mut offset, end) = match scene.own_file {
            true => (0, bytes),
            false => share(bytes, u64::from(rank.0), u64::from(self.comm.size())),
        };
        let path = self.path(scene, rank);
        let file = OpenOptions::new().create(true).write(true).truncate(false).open(path)?;
        let content = self.content(scene, rank, 0);
        let mut chunk = vec![0; CHUNK as usize];
        while offset < end {
            let length = CHUNK.min(end - offset);
            content.fill(offset, &mut chunk[..length as usize]);
            file.write_all_at(&chunk[..length as usize], scene.case.header + offset)?;
            offset += length;
        }
        file.sync_data()
    }

    fn caches(&self, scene: &Scene) -> Result<String, BenchError> {
        let mut found = String::new();
        self.comm.barrier()?;
        if scene.own_file || self.comm.rank().0 == 0 {
            found = cache::prepare(&self.path(scene, self.comm.rank()), self.plan.cache);
        }
        self.comm.barrier()?;
        Ok(found)
    }

    fn phase(
        &self,
        scene: &mut Scene,
        acts: &[Act],
        fresh: bool,
        generation: u32,
        label: &Label,
    ) -> Result<Measurement, BenchError> {
        let reading = acts == [Act::Read];
        let player = self.played(scene.case, reading);
        let rank = self.pattern_rank(scene.case, reading);
        let content = self.content(scene, player, generation);
        let pattern = scene.pattern.as_ref();
        scene.source.fill(pattern, rank, content, scene.backend.arena());
        let end = largest(self.comm, pattern.operations(rank))?;
        let opening = self.opening(scene, player, rank, !reading, fresh);
        std::thread::sleep(Duration::from_secs_f64(self.plan.settle));
        let mut reached = 0;
        let stages = Phase {
            runner: self,
            opening,
            works: acts.iter().map(|act| self.work(scene.case, *act)).collect(),
            pattern: scene.pattern.as_ref(),
            rank,
            source: scene.source,
            depth: scene.depth,
            end: if scene.together() { end } else { pattern.operations(rank) },
            collective: scene.together(),
            backend: scene.backend.as_mut(),
            sync: self.plan.sync && !reading,
            reached: &mut reached,
        };
        let times = timed(self.comm, stages)?;
        let mut result = measurement(&times, label, self.barrier_cost_ns, true);
        if self.plan.verify && scene.case.method.keeps_data {
            self.verify(scene, player, rank, content, reached, &mut result)?;
        }
        Ok(result)
    }

    fn work(&self, case: &Case, act: Act) -> Work {
        match act {
            Act::Read => Work::One(Direction::Read),
            Act::Write => Work::One(Direction::Write),
            Act::ReadThenWrite => Work::ReadThenWrite,
            Act::Mixed => {
                let read_share = (case.read_share * 4_294_967_295.0) as u32;
                Work::Mixed { read_share, seed: self.plan.seed.0 }
            }
        }
    }

    fn opening(
        &self,
        scene: &Scene,
        player: Rank,
        rank: Rank,
        write: bool,
        fresh: bool,
    ) -> Opening {
        Opening {
            path: self.path(scene, player),
            write,
            truncate: fresh,
            direct: self.plan.cache == CacheState::Direct,
            base: scene.case.header,
            hints: scene.case.hints.clone(),
            shared: !scene.own_file,
            view: scene.case.view.then(|| scene.pattern.whole(rank)).flatten(),
            noncontiguous: scene.noncontiguous,
        }
    }

    /// Reads everything back with the same method and compares. Not timed.
    fn verify(
        &self,
        scene: &mut Scene,
        player: Rank,
        rank: Rank,
        content: Content,
        reached: u64,
        result: &mut Measurement,
    ) -> Result<(), BenchError> {
        let opening = self.opening(scene, player, rank, false, false);
        let opened = scene.backend.open(&opening, self.comm);
        agree(self.comm, opened.map_err(|error| told(&error)))?;
        let checked = self.read_back(scene, rank, content, reached);
        let closed = scene.backend.close().map_err(|error| told(&error));
        let outcome = serde_json::to_vec(&checked).unwrap_or_default();
        let mut verified = 0;
        for (rank, text) in self.comm.gather(&outcome)?.iter().enumerate() {
            match serde_json::from_slice::<Result<u64, String>>(text) {
                Ok(Ok(bytes)) => verified += bytes,
                Ok(Err(why)) => _ = result.invalid.get_or_insert(format!("rank {rank}: {why}")),
                Err(error) => _ = result.invalid.get_or_insert(error.to_string()),
            }
        }
        agree(self.comm, closed)?;
        result.verified = Some(verified);
        Ok(())
    }

    fn read_back(
        &self,
        scene: &mut Scene,
        rank: Rank,
        content: Content,
        reached: u64,
    ) -> Result<u64, String> {
        let own = scene.pattern.operations(rank).min(reached);
        let mut access = Access::new();
        let (mut verified, mut first) = (0, Ok(()));
        for index in 0..reached {
            match index < own {
                true => scene.pattern.place(rank, index, &mut access),
                false => access.clear(),
            }
            let at = scene.source.slot_at(0);
            let read = scene.backend.run(Direction::Read, &access, at);
            let checked = read.map_err(|error| error.to_string()).and_then(|moved| {
                let memory = &scene.backend.arena()[at..];
                let same = content.check_access(&access, memory);
                same.map(|()| moved.bytes).map_err(|mismatch| mismatch.to_string())
            });
            match checked {
                Ok(bytes) => verified += bytes,
                Err(why) => first = first.and(Err(why)),
            }
            if first.is_err() && !scene.together() {
                break;
            }
        }
        first.map(|()| verified)
    }

    fn metadata(&self, case: &Case) -> Result<Vec<Measurement>, BenchError> {
        let root = suffixed(&self.plan.target, "meta");
        let rank = self.comm.rank().0;
        let directory =
            if case.file_per_rank { root.join(format!("rank-{rank}")) } else { root.clone() };
        let mut measurements = Vec::new();
        for (name, operation) in PHASES {
            std::thread::sleep(Duration::from_secs_f64(self.plan.settle));
            let visit = Visit {
                directory: directory.clone(),
                rank,
                files: case.files,
                clock: self.clock,
                operation,
                null: !case.method.keeps_data,
            };
            let times = timed(self.comm, visit)?;
            let label = Label { phase: name.to_owned(), ..Label::default() };
            measurements.push(measurement(&times, &label, self.barrier_cost_ns, true));
        }
        self.comm.barrier()?;
        if rank == 0 {
            let _ = fs::remove_dir_all(&root);
        }
        Ok(measurements)
    }
}

/// The part of `bytes` that is the `index`-th of `count`, on whole MiB where there are enough.
fn share(bytes: u64, index: u64, count: u64) -> (u64, u64) {
    let each = bytes.div_ceil(count).next_multiple_of(1 << 20);
    ((each * index).min(bytes), (each * (index + 1)).min(bytes))
}

/// A data phase on one rank.
struct Phase<'a> {
    runner: &'a Runner<'a>,
    opening: Opening,
    works: Vec<Work>,
    pattern: &'a dyn Pattern,
    rank: Rank,
    source: Source,
    depth: usize,
    end: u64,
    collective: bool,
    backend: &'a mut dyn Backend,
    sync: bool,
    /// Tells afterwards how far it came.
    reached: &'a mut u64,
}

impl Phase<'_> {
    fn run_all(&mut self) -> Tally {
        let plan = self.runner.plan;
        let limit = Duration::from_secs_f64(plan.time_limit);
        let limited = plan.time_limit > 0.0;
        let mut tally = Tally::new();
        for &work in &self.works {
            let body = Loop {
                pattern: self.pattern,
                rank: self.rank,
                work,
                source: self.source,
                clock: self.runner.clock,
                latencies: plan.latencies || limited,
                collective: self.collective,
                depth: self.depth,
            };
            tally.next = 0;
            if !limited {
                body.run(self.backend, self.end, u64::MAX, &mut tally);
                continue;
            }
            let deadline = self.runner.clock.stamp() + self.runner.clock.ticks(limit);
            body.run(self.backend, self.end, deadline, &mut tally);
            // Wear-out: everyone does as many as the one who did most.
            match largest(self.runner.comm, tally.next) {
                Ok(most) if tally.error.is_none() => {
                    body.run(self.backend, most.min(self.end), u64::MAX, &mut tally);
                }
                _ => {}
            }
        }
        *self.reached = tally.next;
        tally
    }
}

impl Stages for Phase<'_> {
    fn open(&mut self) -> Result<(), (String, String)> {
        self.backend.open(&self.opening, self.runner.comm).map_err(|error| told(&error))
    }

    fn work(&mut self) -> Tally {
        self.run_all()
    }

    fn sync(&mut self) -> Result<(), (String, String)> {
        match self.sync {
            true => self.backend.sync().map_err(|error| told(&error)),
            false => Ok(()),
        }
    }

    fn close(&mut self) -> Result<(), (String, String)> {
        self.backend.close().map_err(|error| told(&error))
    }
}
