//! The run of a program on local storage: moments happen in virtual time.
//!
//! A sequence works through its gap, makes its call, and goes on. What a call costs is known when
//! it begins (the kernel below is the model of local storage), so a call is one stretch of work on
//! a core and one of waiting. Events: two per call, in the queue's total order.

use super::kernel::Kernel;
use super::processors::Processors;
use super::program::{Moment, Point, What};
use super::run::Run;
use super::setup::Setup;
use super::staging::Staging;
use crate::queue::{EventQueue, Ordered, Source};
use iolab_vocab::{Nanos, Refusal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Happening {
    /// A sequence's work or waiting is over.
    Ready(u32),
    /// Some work on shared cores may be over.
    Cores,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Gap,
    Call(Nanos),
    Waiting,
}

/// Where a sequence is.
#[derive(Clone, Debug, Default)]
struct Place {
    at: usize,
    phase: Phase,
    /// Progress made, plus one; 0 before it has started.
    reached: u32,
    /// Who waits for which progress of this sequence.
    waiters: Vec<(u32, u32)>,
}

struct Running<'a> {
    setup: &'a Setup<'a>,
    queue: Ordered<Happening>,
    cores: Option<Processors>,
    scheduled: Option<Nanos>,
    places: Vec<Place>,
    kernel: Kernel<'a>,
    staging: Staging<'a>,
    run: Run,
}

/// Runs the program from time zero.
pub(super) fn run(setup: &Setup) -> Result<Run, Refusal> {
    let header = &setup.trace.header;
    let (files, processes) = (header.files.len(), header.processes.len());
    let sequences = setup.program.sequences.len();
    let shared = sequences > setup.storage.cores as usize;
    let mut running = Running {
        setup,
        queue: Ordered::new(setup.settings.seed),
        cores: shared.then(|| Processors::new(setup.storage.cores)),
        scheduled: None,
        places: vec![Place::default(); sequences],
        kernel: Kernel::new(setup.storage, setup.settings.cold, files, processes),
        staging: Staging::new(setup, processes),
        run: Run::empty(setup),
    };
    for sequence in 0..sequences as u32 {
        running.enter(Nanos::ZERO, sequence);
    }
    while let Some((now, happening)) = running.queue.pop() {
        match happening {
            Happening::Ready(sequence) => running.proceed(now, sequence),
            Happening::Cores => running.free_cores(now),
        }
    }
    running.finish()
}

impl Running<'_> {
    fn moment(&self, sequence: u32) -> Option<Moment> {
        let moments = &self.setup.program.sequences[sequence as usize].moments;
        moments.get(self.places[sequence as usize].at).copied()
    }

    /// Goes for the next moment: waits for what it is after, then works.
    fn enter(&mut self, now: Nanos, sequence: u32) {
        let Some(moment) = self.moment(sequence) else { return };
        if let Some(point) = moment.after
            && self.places[point.sequence as usize].reached <= point.progress
        {
            let waiters = &mut self.places[point.sequence as usize].waiters;
            return waiters.push((point.progress, sequence));
        }
        self.places[sequence as usize].phase = Phase::Gap;
        self.work(now, sequence, moment.work);
    }

    fn work(&mut self, now: Nanos, sequence: u32, work: Nanos) {
        match &mut self.cores {
            Some(cores) if work > Nanos::ZERO => {
                cores.begin(now, sequence, work);
                self.schedule_cores();
            }
            _ => self.queue.push(now.after(work), Source(sequence), Happening::Ready(sequence)),
        }
    }

    fn schedule_cores(&mut self) {
        let Some(next) = self.cores.as_ref().and_then(Processors::next_end) else { return };
        if self.scheduled.is_none_or(|scheduled| next < scheduled) {
            let source = Source(self.places.len() as u32);
            self.queue.push(next, source, Happening::Cores);
            self.scheduled = Some(next);
        }
    }

    fn free_cores(&mut self, now: Nanos) {
        self.scheduled = self.scheduled.filter(|scheduled| *scheduled > now);
        while let Some(sequence) = self.cores.as_mut().and_then(|cores| cores.pop(now)) {
            self.proceed(now, sequence);
        }
        self.schedule_cores();
    }

    fn proceed(&mut self, now: Nanos, sequence: u32) {
        let moment = self.moment(sequence).expect("a sequence that works has a moment to come to");
        match self.places[sequence as usize].phase {
            Phase::Gap => self.begin(now, sequence, moment.what),
            Phase::Call(wait) if wait > Nanos::ZERO => {
                self.places[sequence as usize].phase = Phase::Waiting;
                self.queue.push(now.after(wait), Source(sequence), Happening::Ready(sequence));
            }
            Phase::Call(_) | Phase::Waiting => self.done(now, sequence, moment.what),
        }
    }

    fn begin(&mut self, now: Nanos, sequence: u32, what: What) {
        let progress = 2 * self.places[sequence as usize].at as u32 + 1;
        self.reach(now, Point { sequence, progress });
        match what {
            What::Call(row) => {
                let cost = self.staging.carry_out(now, row, &mut self.kernel, &mut self.run);
                self.run.events[row].start = now;
                self.places[sequence as usize].phase = Phase::Call(cost.wait);
                self.work(now, sequence, cost.work);
            }
            What::Begin(row) => {
                self.run.events[row].start = now;
                self.done(now, sequence, what);
            }
            What::Start => {
                let process = self.setup.program.sequences[sequence as usize].process;
                self.run.seen(process, now);
                self.done(now, sequence, what);
            }
            What::End(_) | What::Exit => self.done(now, sequence, what),
        }
    }

    fn done(&mut self, now: Nanos, sequence: u32, what: What) {
        if let What::Call(row) | What::End(row) = what {
            self.run.events[row].end = now;
            self.run.hash(now, row);
        }
        let process = self.setup.program.sequences[sequence as usize].process;
        self.run.seen(process, now);
        if what == What::Exit {
            self.staging.ended(process);
        }
        let place = &mut self.places[sequence as usize];
        let progress = 2 * place.at as u32 + 2;
        place.at += 1;
        self.reach(now, Point { sequence, progress });
        self.enter(now, sequence);
    }

    /// Notes progress and lets those go on who waited for it.
    fn reach(&mut self, now: Nanos, point: Point) {
        let place = &mut self.places[point.sequence as usize];
        place.reached = point.progress + 1;
        if place.waiters.is_empty() {
            return;
        }
        let (over, still): (Vec<_>, Vec<_>) =
            place.waiters.drain(..).partition(|(progress, _)| *progress <= point.progress);
        place.waiters = still;
        for (_, waiter) in over {
            self.enter(now, waiter);
        }
    }

    /// Every sequence must have come to its end; else name one that waits, and for whom.
    fn finish(mut self) -> Result<Run, Refusal> {
        for (index, place) in self.places.iter().enumerate() {
            if let Some((_, waiter)) = place.waiters.first() {
                return Err(self.setup.never_comes(*waiter as usize, index));
            }
        }
        let setup = self.setup;
        self.staging.end(&mut self.run);
        Ok(self.run.finished(setup))
    }
}
