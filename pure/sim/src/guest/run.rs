//! The run of a program on local storage: moments happen in virtual time.
//!
//! A sequence works through its gap, makes its call, and goes on. What a call costs is known when
//! it begins (the kernel below is the model of local storage), so a call is one stretch of work on
//! a core and one of waiting. Events: two per call, in the queue's total order.

use super::kernel::{Cost, Kernel};
use super::processors::Processors;
use super::program::{Moment, Point, Program, What};
use super::scale::Scale;
use super::staging::Staging;
use super::{Durations, Settings};
use crate::queue::{EventQueue, Ordered, Source};
use iolab_device::local::LocalStorage;
use iolab_policy::insitu::StrategySpec;
use iolab_trace::{Class, Event, Trace};
use iolab_vocab::{Nanos, Refusal};

/// What a run came to.
pub(super) struct Run {
    /// Rows of the trace with the times (and results) they have now.
    pub(super) events: Vec<Event>,
    /// What the stacks decided.
    pub(super) decisions: Vec<Event>,
    /// By process: when it began and ended.
    pub(super) processes: Vec<(Nanos, Nanos)>,
    pub(super) end: Nanos,
    /// When the servers of a cluster had stored everything.
    pub(super) stored: Option<Nanos>,
    pub(super) event_hash: u64,
    pub(super) staged_calls: u64,
    pub(super) performed_calls: u64,
}

impl Run {
    /// Nothing has happened yet.
    pub(super) fn empty(machine: &Machine) -> Run {
        Run {
            events: machine.trace.events.clone(),
            decisions: Vec::new(),
            processes: vec![(Nanos(u64::MAX), Nanos::ZERO); machine.trace.header.processes.len()],
            end: Nanos::ZERO,
            stored: None,
            event_hash: 0xCBF2_9CE4_8422_2325,
            staged_calls: 0,
            performed_calls: 0,
        }
    }

    /// A process was at work at that time.
    pub(super) fn seen(&mut self, process: u32, now: Nanos) {
        let (began, ended) = &mut self.processes[process as usize];
        *began = (*began).min(now);
        *ended = (*ended).max(now);
        self.end = self.end.max(now);
    }

    /// Everything has happened.
    pub(super) fn finished(mut self, machine: &Machine) -> Run {
        for &(row, call) in &machine.program.inside {
            self.place_inside(&machine.trace.events, row, call);
        }
        for (began, ended) in &mut self.processes {
            *began = (*began).min(*ended);
        }
        self.decisions.sort_by_key(|event| (event.process, event.thread, event.start));
        self
    }

    /// A row that was part of a call keeps its place in it.
    fn place_inside(&mut self, recorded: &[Event], row: usize, call: usize) {
        let (whole, now) = (&recorded[call], self.events[call]);
        let place = |time: Nanos| {
            let since = u128::from(time.min(whole.end).since(whole.start).get());
            let scaled = since * u128::from(now.duration().get())
                / u128::from(whole.duration().get().max(1));
            now.start.after(Nanos(scaled as u64))
        };
        let (start, end) = (place(recorded[row].start), place(recorded[row].end));
        (self.events[row].start, self.events[row].end) = (start, end);
    }

    /// Adds the end of a row to the hash.
    pub(super) fn hash(&mut self, now: Nanos, row: usize) {
        for word in [now.0, row as u64] {
            self.event_hash = (self.event_hash ^ word).wrapping_mul(0x100_0000_01B3);
        }
    }
}

/// What is needed to run a program.
pub(super) struct Machine<'a> {
    pub(super) trace: &'a Trace,
    pub(super) program: &'a Program,
    pub(super) storage: &'a LocalStorage,
    pub(super) apply: &'a [StrategySpec],
    pub(super) scale: Scale,
    pub(super) settings: &'a Settings,
}

impl Machine<'_> {
    /// Why a program cannot be run to its end: one sequence waits for another in vain.
    pub(super) fn never_comes(&self, waiter: usize, awaited: usize) -> Refusal {
        let name = |sequence: usize| {
            let process = self.program.sequences[sequence].process as usize;
            &self.trace.header.processes[process].name
        };
        Refusal {
            message: format!(
                "`{}` waits for `{}`, which never comes so far",
                name(waiter),
                name(awaited)
            ),
            hint: "the trace may be cut short; see `iolab report`".to_owned(),
        }
    }
}

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
    machine: &'a Machine<'a>,
    queue: Ordered<Happening>,
    cores: Option<Processors>,
    scheduled: Option<Nanos>,
    places: Vec<Place>,
    kernel: Kernel<'a>,
    staging: Staging<'a>,
    run: Run,
}

/// Runs the program from time zero.
pub(super) fn run(machine: &Machine) -> Result<Run, Refusal> {
    let header = &machine.trace.header;
    let (files, processes) = (header.files.len(), header.processes.len());
    let sequences = machine.program.sequences.len();
    let shared = sequences > machine.storage.cores as usize;
    let mut running = Running {
        machine,
        queue: Ordered::new(machine.settings.seed),
        cores: shared.then(|| Processors::new(machine.storage.cores)),
        scheduled: None,
        places: vec![Place::default(); sequences],
        kernel: Kernel::new(machine.storage, machine.settings.cold, files, processes),
        staging: Staging::new(machine, processes),
        run: Run::empty(machine),
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
        let moments = &self.machine.program.sequences[sequence as usize].moments;
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
                let cost = self.call(now, row);
                self.run.events[row].start = now;
                self.places[sequence as usize].phase = Phase::Call(cost.wait);
                self.work(now, sequence, cost.work);
            }
            What::Begin(row) => {
                self.run.events[row].start = now;
                self.done(now, sequence, what);
            }
            What::Start => {
                let process = self.machine.program.sequences[sequence as usize].process;
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
        let process = self.machine.program.sequences[sequence as usize].process;
        self.run.seen(process, now);
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

    fn call(&mut self, now: Nanos, row: usize) -> Cost {
        let event = &self.machine.trace.events[row];
        if self.machine.apply.is_empty() {
            return self.native(row);
        }
        let outcome = self.staging.call(now, row, &mut self.kernel, &mut self.run);
        self.run.events[row].result = outcome.result.unwrap_or(event.result);
        outcome.cost
    }

    fn native(&mut self, row: usize) -> Cost {
        native(self.machine, &mut self.kernel, row)
    }

    /// Every sequence must have come to its end; else name one that waits, and for whom.
    fn finish(self) -> Result<Run, Refusal> {
        for (index, place) in self.places.iter().enumerate() {
            if let Some((_, waiter)) = place.waiters.first() {
                return Err(self.machine.never_comes(*waiter as usize, index));
            }
        }
        let machine = self.machine;
        Ok(self.run.finished(machine))
    }
}

/// A call as it was recorded, at its recorded duration or at the model's cost; what servers do of it
/// costs what they take.
pub(super) fn native(machine: &Machine, kernel: &mut Kernel, row: usize) -> Cost {
    let event = &machine.trace.events[row];
    match (kernel.native(event), machine.settings.durations) {
        _ if kernel.is_served() => Cost::default(),
        (Some(cost), Durations::Model) => cost,
        _ => recorded(machine, row),
    }
}

/// The recorded duration of a call; a sync waits, everything else works.
pub(super) fn recorded(machine: &Machine, row: usize) -> Cost {
    let event = &machine.trace.events[row];
    match event.function.class() {
        Class::Sync => Cost { work: Nanos::ZERO, wait: event.duration() },
        _ => Cost::work(machine.program.durations[row]),
    }
}
