//! One rank of the overlap benchmark: does I/O and computation, together and apart, and looks at
//! the clock in between.
//!
//! The clock, the computation and the back end are given to it, so that its arithmetic can be held
//! to a world where every duration is known.

use super::calibration::Calibration;
use super::plan::{OverlapCase, OverlapPlan};
use crate::failure::{BenchError, told};
use crate::kernel::Computation;
use crate::source::Source;
use iolab_backend::{Backend, Direction, IoError};
use iolab_comm::{Comm, largest};
use iolab_pattern::{Access, Pattern};
use iolab_report::bench::Stamps;
use iolab_report::overlap::{Lane, Load, RankSample, Span, Turn};
use std::time::Duration;

/// Operations of a phase before the other has its turn.
const TURN: u64 = 5;
/// Operations of a calibration try.
const BATCH: u64 = 5;
/// Computation where there is no I/O to compare it with: 1 ms at equality.
const ALONE_NS: f64 = 1e6;
/// Between looks at the library while computing: what a program can afford.
const LOOK_NS: f64 = 20_000.0;

/// What a rank acts with.
pub(crate) struct Tools {
    pub(crate) pattern: Box<dyn Pattern>,
    pub(crate) backend: Box<dyn Backend>,
    pub(crate) source: Source,
    pub(crate) computation: Box<dyn Computation>,
    /// Nanoseconds since some moment.
    pub(crate) clock: Box<dyn Fn() -> u64>,
}

/// One rank with one case.
pub(crate) struct Actor<'a> {
    pub(crate) plan: &'a OverlapPlan,
    pub(crate) case: &'a OverlapCase,
    pub(crate) comm: &'a dyn Comm,
    pub(crate) tools: Tools,
    /// All ranks have to take part in every operation.
    together: bool,
    sweep_ns: f64,
    next: u64,
    operations: u64,
    error: Option<(String, String)>,
    /// What is to be drawn, if anything is.
    pub(crate) spans: Option<Vec<Span>>,
    /// Whether what is done now is to be drawn.
    measuring: bool,
}

/// One operation with the computation beside it. Nanoseconds.
#[derive(Clone, Copy, Default)]
struct Beside {
    start: u64,
    compute: u64,
    wait: u64,
    /// From the start to the end, where the end was seen.
    io: Option<u64>,
    bytes: u64,
}

impl<'a> Actor<'a> {
    pub(crate) fn new(
        plan: &'a OverlapPlan,
        case: &'a OverlapCase,
        comm: &'a dyn Comm,
        mut tools: Tools,
        together: bool,
    ) -> Actor<'a> {
        let operations = tools.pattern.operations(comm.rank()).max(1);
        let sweep_ns = tools.computation.sweep_ns();
        let (error, spans) = (None, None);
        Actor {
            plan,
            case,
            comm,
            tools,
            together,
            sweep_ns,
            next: 0,
            operations,
            error,
            spans,
            measuring: false,
        }
    }

    fn now(&self) -> u64 {
        (self.tools.clock)()
    }

    /// The next operation of the pattern, round and round; its buffer.
    fn aim(&mut self, access: &mut Access) -> usize {
        if self.case.load == Load::ZeroBytes {
            access.set_contiguous(0, 0);
            return 0;
        }
        let index = self.next % self.operations;
        self.next += 1;
        self.tools.pattern.place(self.comm.rank(), index, access);
        match self.case.direction {
            Direction::Read => self.tools.source.read_at(index, 0),
            Direction::Write => {
                let Tools { source, backend, .. } = &mut self.tools;
                let at = source.write_at(index, access);
                if source.needs_stamps() {
                    source.stamp(access, at, backend.spare());
                }
                at
            }
        }
    }

    fn draw(&mut self, lane: Lane, start: u64, end: u64, access: Option<&Access>, exact: bool) {
        if let Some(spans) = self.spans.as_mut().filter(|_| self.measuring) {
            let place = access.map(|access| {
                let first = access.file().first();
                (first.map_or(0, |first| first.offset), access.bytes())
            });
            spans.push(Span::new(lane, (start, end), place, exact));
        }
    }

    fn io_alone(&mut self) -> Result<u64, IoError> {
        if self.case.load == Load::None {
            return Ok(0);
        }
        let mut access = Access::new();
        let at = self.aim(&mut access);
        let start = self.now();
        self.tools.backend.run(self.case.direction, &access, at)?;
        let end = self.now();
        self.draw(Lane::Call, start, end, Some(&access), true);
        Ok(end - start)
    }

    /// Computes; gives how long that took, and when an operation under way was first seen done.
    fn compute(&mut self, sweeps: u64, look: bool) -> Result<(u64, Option<u64>), IoError> {
        let every = if look { (LOOK_NS / self.sweep_ns).ceil() as u64 } else { 0 };
        let Tools { backend, computation, clock, .. } = &mut self.tools;
        let mut seen = Ok(None);
        let start = clock();
        computation.run(sweeps, every, &mut || {
            if let Ok(None) = seen {
                seen = backend.poll().map(|done| done.then(&mut *clock));
            }
        });
        let end = clock();
        self.draw(Lane::Compute, start, end, None, true);
        Ok((end - start, seen?))
    }

    /// Starts an operation, computes, waits.
    fn beside(&mut self, sweeps: u64) -> Result<Beside, IoError> {
        if self.case.load == Load::None {
            let (compute, _) = self.compute(sweeps, false)?;
            return Ok(Beside { compute, ..Beside::default() });
        }
        let mut access = Access::new();
        let at = self.aim(&mut access);
        let start = self.now();
        self.tools.backend.start(self.case.direction, &access, at, 0)?;
        let started = self.now();
        let (compute, seen) = self.compute(sweeps, self.case.poll)?;
        let computed = self.now();
        // Still under way now means that its end will be seen; looked at all along, that it just was.
        let done = seen.is_some() || self.tools.backend.poll()?;
        let seen = seen.or((done && self.case.poll).then_some(computed));
        let (_, moved) = self.tools.backend.finish()?;
        let end = self.now();
        let call = self.tools.backend.call();
        let finished = call.map(|(_, end)| end).or(seen).or((!done).then_some(end));
        let begun = call.map_or(start, |(begun, _)| begun);
        self.draw(Lane::Beside, begun, finished.unwrap_or(end), Some(&access), finished.is_some());
        Ok(Beside {
            start: started - start,
            compute,
            wait: end - computed,
            io: finished.map(|end| end.saturating_sub(begun)),
            bytes: moved.bytes,
        })
    }

    /// Does something that often. After an error a rank stops, unless the others would wait for it
    /// for ever.
    fn repeat(&mut self, count: u64, mut step: impl FnMut(&mut Self) -> Result<(), IoError>) {
        for _ in 0..count {
            if self.error.is_some() && !self.together {
                return;
            }
            if let Err(error) = step(self) {
                self.error.get_or_insert(told(&error));
            }
        }
    }

    /// Untimed operations, to fill caches and servers.
    pub(crate) fn fill(&mut self) -> Result<(), (String, String)> {
        self.repeat(self.plan.fill, |actor| actor.io_alone().map(drop));
        self.error.take().map_or(Ok(()), Err)
    }

    /// One repetition at one ratio, with its own calibration beside it.
    pub(crate) fn sample(&mut self, wanted: f64) -> Result<RankSample, BenchError> {
        let fit = self.calibrate(wanted)?;
        std::thread::sleep(Duration::from_secs_f64(self.plan.settle));
        let mut sums =
            RankSample { tries: fit.tries, difference: fit.difference, ..RankSample::default() };
        sums.io_n = Some(0.0);
        self.measuring = true;
        // The phases take turns, and turns in going first, so that what else goes on in the machine
        // meets both alike.
        let mut left = self.plan.count;
        while left > 0 {
            let count = left.min(TURN);
            let mut turn = Turn::default();
            if sums.turns.len().is_multiple_of(2) {
                turn.nonblocking = self.nonblocking(count, fit.sweeps, &mut sums)?;
                turn.blocking = self.blocking(count, fit.sweeps, &mut sums)?;
            } else {
                turn.blocking = self.blocking(count, fit.sweeps, &mut sums)?;
                turn.nonblocking = self.nonblocking(count, fit.sweeps, &mut sums)?;
            }
            sums.turns.push(turn);
            left -= count;
        }
        self.measuring = false;
        sums.error = self.error.take();
        divide(&mut sums, self.plan.count as f64);
        Ok(sums)
    }

    fn nonblocking(
        &mut self,
        count: u64,
        sweeps: u64,
        sums: &mut RankSample,
    ) -> Result<Stamps, BenchError> {
        self.phase(count, |actor| {
            let beside = actor.beside(sweeps)?;
            add(sums, &beside);
            Ok(())
        })
    }

    fn blocking(
        &mut self,
        count: u64,
        sweeps: u64,
        sums: &mut RankSample,
    ) -> Result<Stamps, BenchError> {
        self.phase(count, |actor| {
            sums.io_b += actor.io_alone()? as f64;
            sums.compute_b += actor.compute(sweeps, false)?.0 as f64;
            Ok(())
        })
    }

    /// What this rank's clock shows from barrier to barrier; the phase is made of all ranks'.
    fn phase(
        &mut self,
        count: u64,
        step: impl FnMut(&mut Self) -> Result<(), IoError>,
    ) -> Result<Stamps, BenchError> {
        let entered = self.now();
        self.comm.barrier()?;
        let left = self.now();
        self.repeat(count, step);
        let ended = self.now();
        self.comm.barrier()?;
        Ok(Stamps { entered, left, ended, released: self.now() })
    }

    /// Fits the computation until every rank is near enough.
    fn calibrate(&mut self, wanted: f64) -> Result<Calibration, BenchError> {
        let io_ns = self.middle_of_io();
        let mut fit = Calibration::guess(wanted, self.plan.margin, io_ns, self.sweep_ns);
        loop {
            self.comm.barrier()?;
            let (io_ns, compute_ns) = self.middle_of_both(fit.sweeps);
            fit.learn(io_ns, compute_ns);
            // Parts per million travel as whole numbers.
            let worst = largest(self.comm, (fit.difference * 1e6).min(1e15) as u64)? as f64 / 1e6;
            if fit.is_done(worst, self.plan.tries) {
                return Ok(fit);
            }
        }
    }

    fn moves_something(&self) -> bool {
        self.case.load == Load::Pattern
    }

    fn middle_of_io(&mut self) -> f64 {
        let mut times = Vec::new();
        self.repeat(BATCH, |actor| {
            times.push(actor.io_alone()?);
            Ok(())
        });
        if self.moves_something() { middle(&mut times) } else { ALONE_NS }
    }

    /// I/O and computation while both run; I/O alone where the end of one beside is not seen.
    fn middle_of_both(&mut self, sweeps: u64) -> (f64, f64) {
        let (mut io, mut compute) = (Vec::new(), Vec::new());
        self.repeat(BATCH, |actor| {
            let beside = actor.beside(sweeps)?;
            io.extend(beside.io);
            compute.push(beside.compute);
            Ok(())
        });
        // Decided for all ranks alike, as they may have to take part in each other's operations.
        let io_ns = match self.moves_something() && self.case.sees_ends() {
            true => middle(&mut io),
            false => self.middle_of_io(),
        };
        (io_ns, middle(&mut compute))
    }
}

fn add(sums: &mut RankSample, beside: &Beside) {
    sums.compute_n += beside.compute as f64;
    sums.start += beside.start as f64;
    sums.wait += beside.wait as f64;
    sums.bytes += beside.bytes;
    sums.io_n = sums.io_n.zip(beside.io).map(|(sum, io)| sum + io as f64);
}

/// Makes sums over operations into means.
fn divide(sums: &mut RankSample, count: f64) {
    let all =
        [&mut sums.compute_n, &mut sums.compute_b, &mut sums.io_b, &mut sums.start, &mut sums.wait];
    all.into_iter().for_each(|sum| *sum /= count);
    sums.io_n = sums.io_n.map(|sum| sum / count);
}

fn middle(values: &mut [u64]) -> f64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0) as f64
}
