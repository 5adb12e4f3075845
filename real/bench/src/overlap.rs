//! What does non-blocking I/O gain? The overlap benchmark, after Büttner (2007).
//!
//! Two phases with the same operations and the same computation: N starts the I/O, computes, waits;
//! B does the I/O, then computes. The computation is calibrated, while I/O runs beside it, to a
//! chosen multiple of the time of one I/O. Ideal at equality is a ratio N/B of 0.5; 1 is no gain;
//! above 1 is a loss. In theory max(c, io) / (c + io).

use crate::content::Content;
use crate::failure::BenchError;
use crate::kernel::Kernel;
use crate::phase::agree;
use crate::source::{Source, is_contiguous};
use crate::statistics::{Interval, interval_of_median};
use iolab_backend::{Arena, Backend, Direction, IoError, Method, Opening, Paced, Threaded};
use iolab_comm::{Comm, largest};
use iolab_host::tick::monotonic;
use iolab_pattern::{Access, Pattern};
use iolab_vocab::{Rank, Seed};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A quality above this marks a run that must not be averaged.
pub const QUALITY_LIMIT: f64 = 0.11;

/// Operations of a phase before the other has its turn.
const TURN: u64 = 5;

/// How an operation is made non-blocking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A helper thread around the blocking call.
    Thread,
    /// What the method itself offers.
    Native,
}

/// What to measure.
#[derive(Clone)]
pub struct OverlapPlan {
    /// The file.
    pub target: PathBuf,
    /// The pattern, for that many ranks.
    pub spatial: String,
    /// Read or write.
    pub direction: Direction,
    /// The access method.
    pub method: &'static Method,
    /// How it is made non-blocking.
    pub way: Way,
    /// Around the page cache.
    pub direct: bool,
    /// Bytes per second that the device is slowed to.
    pub throttle: Option<f64>,
    /// Wanted compute time over I/O time; several for a sweep. 0 is I/O alone.
    pub ratios: Vec<f64>,
    /// Operations per phase.
    pub count: u64,
    /// Operations before, untimed, to fill caches and servers.
    pub fill: u64,
    /// Repetitions of each ratio.
    pub repetitions: u32,
    /// Calibration tries at least and at most.
    pub tries: (u32, u32),
    /// Calibration ends when every rank is this near.
    pub margin: f64,
    /// Ask the library for progress while computing.
    pub poll: bool,
    /// No I/O at all: the computation alone, for the sanity check.
    pub compute_only: bool,
    /// Seed of pattern and data.
    pub seed: Seed,
}

/// Both phases of one repetition on one rank. Nanoseconds; per operation unless said.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct RankResult {
    nonblocking_phase: u64,
    blocking_phase: u64,
    compute_n: f64,
    compute_b: f64,
    io_n: Option<f64>,
    io_b: f64,
    start: f64,
    wait: f64,
    bytes: u64,
    tries: u32,
    error: Option<(String, String)>,
}

impl RankResult {
    /// Makes sums over operations into means.
    fn divide(&mut self, count: f64) {
        let sums = [
            &mut self.compute_n,
            &mut self.compute_b,
            &mut self.io_b,
            &mut self.start,
            &mut self.wait,
        ];
        sums.into_iter().for_each(|sum| *sum /= count);
        self.io_n = self.io_n.map(|sum| sum / count);
    }
}

/// A value over ranks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Spread {
    pub mean: f64,
    pub min: f64,
    pub max: f64,
}

/// One repetition at one ratio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverlapPoint {
    /// Compute over I/O as wanted.
    pub wanted: f64,
    /// Compute over I/O as it was, both alone.
    pub compute_over_io: f64,
    /// Which repetition.
    pub repetition: u32,
    /// Time of the non-blocking phase over that of the blocking one.
    pub ratio: f64,
    /// What it would be in theory at this `compute_over_io`.
    pub theory: f64,
    /// |io − compute| / io against what was wanted.
    pub quality: f64,
    /// Whether the quality allows it to be averaged.
    pub usable: bool,
    /// Nanoseconds of the phases, on rank 0.
    pub nonblocking_ns: u64,
    /// As above.
    pub blocking_ns: u64,
    /// Compute time beside I/O over compute time alone.
    pub compute_inflation: Spread,
    /// I/O time beside compute over I/O alone, where the way of overlapping shows it.
    pub io_inflation: Option<Spread>,
    /// Nanoseconds to start an operation.
    pub start_ns: Spread,
    /// Nanoseconds to wait for it after computing.
    pub wait_ns: Spread,
    /// Bytes moved in the non-blocking phase by all ranks.
    pub bytes: u64,
    /// Calibration tries.
    pub tries: u32,
}

/// All repetitions of one ratio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverlapSummary {
    /// Compute over I/O as wanted.
    pub wanted: f64,
    /// The median ratio of the usable repetitions.
    pub ratio: f64,
    /// Its interval.
    pub interval: Interval,
    /// Theory at the median `compute_over_io`.
    pub theory: f64,
    /// Usable repetitions.
    pub usable: usize,
}

/// Runs the plan on every rank. `observe` sees every point on rank 0.
///
/// # Errors
/// The first error of any rank.
pub fn overlap(
    plan: &OverlapPlan,
    comm: &dyn Comm,
    observe: &dyn Fn(&OverlapPoint),
) -> Result<Vec<OverlapPoint>, BenchError> {
    let made = Bench::new(plan, comm);
    agree(comm, made.as_ref().map(|_| ()).map_err(Clone::clone))?;
    let Ok(mut bench) = made else { return Ok(Vec::new()) };
    let result = bench.points(observe);
    if comm.rank().0 == 0 {
        let _ = std::fs::remove_file(&plan.target);
    }
    result
}

struct Bench<'a> {
    plan: &'a OverlapPlan,
    comm: &'a dyn Comm,
    pattern: Box<dyn Pattern>,
    backend: Box<dyn Backend>,
    source: Source,
    kernel: Kernel,
    sweep_ns: f64,
    next: u64,
    operations: u64,
}

type Told = (String, String);

fn told(error: &IoError) -> Told {
    (error.to_string(), error.hint().to_owned())
}

impl<'a> Bench<'a> {
    fn new(plan: &'a OverlapPlan, comm: &'a dyn Comm) -> Result<Bench<'a>, Told> {
        let pattern = iolab_pattern::Catalog::make(&plan.spatial, comm.size(), plan.seed)
            .map_err(|error| (error.message, error.hint))?;
        let operations = pattern.operations(comm.rank());
        if plan.way == Way::Native && !plan.method.queues {
            return Err((
                format!("{} has no non-blocking form of its own", plan.method.name),
                "take --way thread, or a method such as uring or nonblocking".to_owned(),
            ));
        }
        if operations == 0 {
            let hint = "make the pattern larger".to_owned();
            return Err(("the pattern gives this rank no operation".to_owned(), hint));
        }
        let writes = plan.direction == Direction::Write;
        let source = Source::plan(pattern.as_ref(), comm.rank(), writes, false, 1)
            .map_err(|why| (why, String::new()))?;
        let arena = Arena::new(source.bytes);
        let mut backend = (plan.method.make)(arena, 1).map_err(|error| told(&error))?;
        if let Some(rate) = plan.throttle {
            backend = Box::new(Paced::new(backend, rate, plan.method.queues));
        }
        if plan.way == Way::Thread {
            backend = Box::new(Threaded::new(backend));
        }
        let mut kernel = Kernel::default();
        let sweep_ns = kernel.sweep_ns();
        let next = 0;
        Ok(Bench { plan, comm, pattern, backend, source, kernel, sweep_ns, next, operations })
    }

    fn points(&mut self, observe: &dyn Fn(&OverlapPoint)) -> Result<Vec<OverlapPoint>, BenchError> {
        let opened = self.open();
        agree(self.comm, opened)?;
        let mut points = Vec::new();
        for &wanted in &self.plan.ratios {
            for repetition in 0..self.plan.repetitions {
                let point = self.point(wanted, repetition)?;
                if self.comm.rank().0 == 0 {
                    observe(&point);
                }
                points.push(point);
            }
        }
        let closed = self.backend.close().map_err(|error| told(&error));
        agree(self.comm, closed)?;
        Ok(points)
    }

    /// Opens; for reading the file is made first, each rank writing its own part of the pattern.
    fn open(&mut self) -> Result<(), Told> {
        let rank = self.comm.rank();
        let content = Content::new(self.plan.seed, 0, 0);
        self.source.fill(self.pattern.as_ref(), rank, content, self.backend.arena());
        let noncontiguous = !is_contiguous(self.pattern.as_ref(), rank);
        let noncontiguous = largest(self.comm, noncontiguous.into()).unwrap_or(1) > 0;
        if self.plan.direction == Direction::Read && rank.0 == 0 && self.plan.method.keeps_data {
            let mut bytes = vec![0; self.pattern.file_bytes().min(1 << 30) as usize];
            content.fill(0, &mut bytes);
            std::fs::write(&self.plan.target, bytes).map_err(|error| {
                let path = self.plan.target.display();
                (format!("cannot prepare {path}: {error}"), "choose another --target".to_owned())
            })?;
        }
        let _ = self.comm.barrier();
        let opening = Opening {
            path: self.plan.target.clone(),
            write: self.plan.direction == Direction::Write,
            truncate: self.plan.direction == Direction::Write,
            direct: self.plan.direct,
            base: 0,
            hints: Vec::new(),
            shared: true,
            view: None,
            noncontiguous,
        };
        self.backend.open(&opening, self.comm).map_err(|error| told(&error))?;
        (0..self.plan.fill).try_for_each(|_| self.io_alone().map(|_| ())).map_err(|e| told(&e))
    }

    /// The next operation of the pattern, round and round.
    fn aim(&mut self, access: &mut Access) -> usize {
        let index = self.next % self.operations;
        self.next += 1;
        self.pattern.place(Rank(self.comm.rank().0), index, access);
        match self.plan.direction {
            Direction::Write => self.source.write_at(index, access),
            Direction::Read => self.source.read_at,
        }
    }

    fn io_alone(&mut self) -> Result<u64, IoError> {
        if self.plan.compute_only {
            return Ok(0);
        }
        let mut access = Access::new();
        let at = self.aim(&mut access);
        let start = monotonic();
        self.backend.run(self.plan.direction, &access, at)?;
        Ok(monotonic() - start)
    }

    fn compute(&mut self, sweeps: u64) -> Result<u64, IoError> {
        // About every 20 us, which is what a program can afford to look.
        let every = if self.plan.poll { (20_000.0 / self.sweep_ns).ceil() as u64 } else { 0 };
        let backend = self.backend.as_mut();
        let mut polled = Ok(());
        let start = monotonic();
        self.kernel
            .run(sweeps, every, || polled = polled.clone().and_then(|()| backend.poll().map(drop)));
        polled.map(|()| monotonic() - start)
    }

    /// One operation with the computation beside it.
    fn both(&mut self, sweeps: u64, sums: &mut RankResult) -> Result<(), IoError> {
        if self.plan.compute_only {
            sums.compute_n += self.compute(sweeps)? as f64;
            return Ok(());
        }
        let mut access = Access::new();
        let at = self.aim(&mut access);
        let start = monotonic();
        self.backend.start(self.plan.direction, &access, at, 0)?;
        let started = monotonic();
        sums.compute_n += self.compute(sweeps)? as f64;
        let computed = monotonic();
        let (_, moved) = self.backend.finish()?;
        let end = monotonic();
        sums.start += (started - start) as f64;
        sums.wait += (end - computed) as f64;
        sums.bytes += moved.bytes;
        if let Some(nanos) = self.backend.call_ns() {
            *sums.io_n.get_or_insert(0.0) += nanos as f64;
        }
        Ok(())
    }

    fn point(&mut self, wanted: f64, repetition: u32) -> Result<OverlapPoint, BenchError> {
        let mut own = RankResult::default();
        let sweeps = self.calibrate(wanted, &mut own)?;
        // The phases take turns, so that what else goes on in the machine meets both alike.
        let mut left = self.plan.count;
        while left > 0 {
            let turn = left.min(TURN);
            self.nonblocking(sweeps, turn, &mut own)?;
            self.blocking(sweeps, turn, &mut own)?;
            left -= turn;
        }
        own.divide(self.plan.count as f64);
        let said = serde_json::to_vec(&own).unwrap_or_default();
        let mut ranks: Vec<RankResult> = Vec::new();
        for (rank, text) in self.comm.gather(&said)?.iter().enumerate() {
            let result: RankResult = serde_json::from_slice(text).unwrap_or_default();
            if let Some((message, hint)) = result.error {
                return Err(BenchError::OnRank { rank: rank as u32, message, hint });
            }
            ranks.push(result);
        }
        Ok(point(wanted, repetition, &ranks))
    }

    /// Finds the sweeps that take `wanted` times as long as one I/O while both run.
    fn calibrate(&mut self, wanted: f64, own: &mut RankResult) -> Result<u64, BenchError> {
        const BATCH: u64 = 5;
        let mut sweeps = 0;
        for tries in 1..=self.plan.tries.1 {
            own.tries = tries;
            self.comm.barrier()?;
            let mut difference = 0.0;
            if own.error.is_none() {
                match self.one_try(wanted, &mut sweeps, BATCH) {
                    Ok(found) => difference = found,
                    Err(error) => own.error = Some(told(&error)),
                }
            }
            // Parts per million travel as whole numbers; all ranks go on until all are near.
            let worst = largest(self.comm, (difference * 1e6) as u64)? as f64 / 1e6;
            if tries >= self.plan.tries.0 && worst <= self.plan.margin {
                break;
            }
        }
        Ok(sweeps)
    }

    /// Corrects the sweeps; gives how far the computation was from what is wanted.
    fn one_try(&mut self, wanted: f64, sweeps: &mut u64, batch: u64) -> Result<f64, IoError> {
        let mut io = Vec::new();
        for _ in 0..batch {
            io.push(self.io_alone()?);
        }
        // Without I/O there is nothing to compare with: a computation of 1 ms.
        let io_ns = if self.plan.compute_only { 1e6 } else { middle(&mut io) };
        let target = io_ns * wanted;
        if *sweeps == 0 {
            *sweeps = (target / self.sweep_ns).round() as u64;
        }
        let mut compute = Vec::new();
        for _ in 0..batch {
            let mut sums = RankResult::default();
            self.both(*sweeps, &mut sums)?;
            compute.push(sums.compute_n as u64);
        }
        let took = middle(&mut compute);
        if target == 0.0 || *sweeps == 0 {
            return Ok(0.0);
        }
        *sweeps = ((*sweeps as f64) * (target / took).clamp(0.5, 2.0)).round().max(1.0) as u64;
        Ok((took - target).abs() / target)
    }

    fn nonblocking(
        &mut self,
        sweeps: u64,
        count: u64,
        own: &mut RankResult,
    ) -> Result<(), BenchError> {
        self.comm.barrier()?;
        let start = monotonic();
        let done = (0..count).try_for_each(|_| self.both(sweeps, own));
        self.comm.barrier()?;
        own.nonblocking_phase += monotonic() - start;
        own.error = own.error.take().or(done.err().map(|error| told(&error)));
        Ok(())
    }

    fn blocking(
        &mut self,
        sweeps: u64,
        count: u64,
        own: &mut RankResult,
    ) -> Result<(), BenchError> {
        self.comm.barrier()?;
        let start = monotonic();
        let done = (0..count).try_for_each(|_| {
            own.io_b += self.io_alone()? as f64;
            own.compute_b += self.compute(sweeps)? as f64;
            Ok(())
        });
        self.comm.barrier()?;
        own.blocking_phase += monotonic() - start;
        own.error = own.error.take().or(done.err().map(|error: IoError| told(&error)));
        Ok(())
    }
}

fn middle(values: &mut [u64]) -> f64 {
    values.sort_unstable();
    values[values.len() / 2] as f64
}

/// In theory: what is longer over both together.
pub fn theory(compute: f64, io: f64) -> f64 {
    if compute + io > 0.0 { compute.max(io) / (compute + io) } else { 1.0 }
}

fn spread(values: impl Iterator<Item = f64>) -> Spread {
    let values: Vec<f64> = values.collect();
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Spread { mean, min, max }
}

fn over(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

fn point(wanted: f64, repetition: u32, ranks: &[RankResult]) -> OverlapPoint {
    let mean = |field: fn(&RankResult) -> f64| spread(ranks.iter().map(field)).mean;
    let (compute, io) = (mean(|r| r.compute_b), mean(|r| r.io_b));
    let known = ranks.iter().all(|rank| rank.io_n.is_some());
    let first = &ranks[0];
    // How far the computation beside I/O was from the wanted multiple of the I/O alone.
    let off = |r: &RankResult| {
        let target = r.io_b * wanted;
        if target > 0.0 { (r.compute_n - target).abs() / target } else { 0.0 }
    };
    let quality = spread(ranks.iter().map(off)).max;
    OverlapPoint {
        wanted,
        compute_over_io: if io > 0.0 { compute / io } else { f64::MAX },
        repetition,
        ratio: over(first.nonblocking_phase as f64, first.blocking_phase as f64),
        theory: theory(compute, io),
        quality,
        usable: quality <= QUALITY_LIMIT,
        nonblocking_ns: first.nonblocking_phase,
        blocking_ns: first.blocking_phase,
        compute_inflation: spread(ranks.iter().map(|r| over(r.compute_n, r.compute_b))),
        io_inflation: known
            .then(|| spread(ranks.iter().map(|r| over(r.io_n.unwrap_or(0.0), r.io_b)))),
        start_ns: spread(ranks.iter().map(|r| r.start)),
        wait_ns: spread(ranks.iter().map(|r| r.wait)),
        bytes: ranks.iter().map(|r| r.bytes).sum(),
        tries: ranks.iter().map(|r| r.tries).max().unwrap_or(0),
    }
}

/// The usable repetitions of each ratio together.
pub fn overlap_summary(points: &[OverlapPoint]) -> Vec<OverlapSummary> {
    let mut wanted: Vec<f64> = points.iter().map(|point| point.wanted).collect();
    wanted.dedup();
    wanted
        .into_iter()
        .map(|wanted| {
            let usable: Vec<_> = points.iter().filter(|p| p.wanted == wanted && p.usable).collect();
            let pick = |field: fn(&OverlapPoint) -> f64| -> Vec<f64> {
                usable.iter().map(|point| field(point)).collect()
            };
            OverlapSummary {
                wanted,
                ratio: crate::statistics::median(&pick(|p| p.ratio)),
                interval: interval_of_median(&pick(|p| p.ratio)),
                theory: crate::statistics::median(&pick(|p| p.theory)),
                usable: usable.len(),
            }
        })
        .collect()
}
