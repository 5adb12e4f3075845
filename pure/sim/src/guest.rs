//! A recorded program in virtual time: what it would take on a platform, under strategies.
//!
//! Each thread of the trace becomes a sequence of calls with the time between them kept as
//! computation. A call on a file that a strategy chooses goes through the very stack that the
//! preloaded library runs; what comes out at the bottom is charged by the platform's storage
//! model. The result is a trace like a recorded one.

mod cluster;
mod kernel;
mod local;
mod processors;
mod program;
mod run;
mod scale;
mod setup;
mod staging;

use crate::platform::Platform;
use iolab_device::local::{InterceptCosts, LocalStorage};
use iolab_policy::insitu::{StrategySpec, Totals, stacking};
use iolab_trace::{Class, Clock, Event, FORMAT_VERSION, Header, Origin, Trace};
use iolab_vocab::{Nanos, Refusal, Seed};
use program::{Program, Recording};
use run::Run;
use scale::Scale;
use setup::Setup;
use std::collections::BTreeSet;

/// Which time a call takes that strategies leave as it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durations {
    /// The recorded one.
    #[default]
    Recorded,
    /// The model's.
    Model,
}

/// How to simulate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Time of calls left as they were.
    pub durations: Durations,
    /// Order of simultaneous events.
    pub seed: Seed,
    /// Files that exist before the run are not in the page cache.
    pub cold: bool,
    /// Cache layer of the servers of a cluster platform; `None` is the platform's own.
    pub cache: Option<String>,
    /// Keep what the stacks decided, as `Prediction::decisions`.
    pub keep_decisions: bool,
}

/// What a simulation predicts.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Run time of the whole command, from its start to the end of its last process.
    pub wall: Nanos,
    /// Part of it: starting the command, and loading and ending what the strategies need.
    pub starting: Nanos,
    /// Time until the servers of a cluster had stored everything.
    pub stored: Option<Nanos>,
    /// Time in calls that touch files, summed over threads.
    pub io: Nanos,
    /// The run as a trace.
    pub trace: Trace,
    /// What the stacks decided, one row per command; empty unless asked for.
    pub decisions: Trace,
    /// FNV-1a hash over every event in the order it happened: equal for equal inputs and seed.
    pub event_hash: u64,
    /// Calls handed to strategies, and calls those sent on to the file system.
    pub staged_calls: u64,
    /// See `staged_calls`.
    pub performed_calls: u64,
    /// What strategies that count have counted.
    pub counted: Totals,
}

impl Prediction {
    /// How much of the run time is starting the command.
    pub fn starting_share(&self) -> f64 {
        self.starting.seconds() / self.wall.seconds().max(1e-9)
    }
}

/// Predicts the run of the recorded program on `platform` under the strategies `apply`, top first.
/// With no strategies it predicts the plain run, without the recorder.
pub fn predict(
    trace: &Trace,
    platform: &Platform,
    apply: &[StrategySpec],
    settings: &Settings,
) -> Result<Prediction, Refusal> {
    Subject::new(trace, platform, settings)?.predict(apply, settings.seed)
}

/// A recorded program on a platform, made ready once for predictions under many stacks.
#[derive(Debug)]
pub struct Subject<'a> {
    trace: &'a Trace,
    platform: &'a Platform,
    settings: Settings,
    storage: LocalStorage,
    program: Program,
    scale: Scale,
}

impl<'a> Subject<'a> {
    /// Makes a program of the trace and fits the model to its recorded calls.
    ///
    /// # Errors
    /// That the trace is damaged, or the platform has nothing to run it on.
    pub fn new(
        trace: &'a Trace,
        platform: &'a Platform,
        settings: &Settings,
    ) -> Result<Subject<'a>, Refusal> {
        let is_cluster = !platform.nodes.is_empty();
        let documented = Platform::preset("local-ext4")?.local;
        let Some(storage) = platform.local.clone().or(documented.filter(|_| is_cluster)) else {
            return Err(Refusal {
                message: format!(
                    "platform `{}` has no [local] storage and no nodes",
                    platform.name
                ),
                hint: "give a platform as `iolab calibrate DIR` writes it, or a cluster".to_owned(),
            });
        };
        let cores = if is_cluster { u32::MAX } else { storage.cores };
        let program = program::program(trace, cores, recording(trace, &storage.intercept))?;
        let scale = match settings.durations {
            Durations::Recorded => scale::fit(trace, &program, &storage, settings.cold),
            Durations::Model => Scale::ONE,
        };
        Ok(Subject { trace, platform, settings: settings.clone(), storage, program, scale })
    }

    /// The run under these strategies, top first, in one order of simultaneous events. Relative globs
    /// count from where the command was recorded.
    ///
    /// # Errors
    /// That the program cannot be run to its end, or that a strategy hears calls that are not simulated.
    pub fn predict(&self, apply: &[StrategySpec], seed: Seed) -> Result<Prediction, Refusal> {
        stacking::is_heard(apply, stacking::Setting::Scratch)?;
        let root = &self.trace.header.working_directory;
        let apply: Vec<StrategySpec> = match root.starts_with('/') {
            true => apply.iter().map(|spec| spec.clone().rooted(root)).collect(),
            false => apply.to_vec(),
        };
        let without_loading = apply.is_empty().then(|| {
            let mut program = self.program.clone();
            leave_out_loading(&mut program, self.storage.intercept.load_ns);
            program
        });
        let program = without_loading.as_ref().unwrap_or(&self.program);
        let settings = Settings { seed, ..self.settings.clone() };
        let (trace, storage, scale) = (self.trace, &self.storage, self.scale);
        let setup = Setup { trace, program, storage, apply: &apply, scale, settings: &settings };
        let run = match self.platform.nodes.is_empty() {
            false => cluster::run(&setup, self.platform)?,
            true => local::run(&setup)?,
        };
        let outside = outside(&self.storage.intercept, &apply);
        Ok(Prediction {
            wall: run.end.after(outside),
            starting: outside,
            stored: run.stored.map(|stored| stored.after(outside)),
            io: io_of(&run.events),
            event_hash: run.event_hash,
            staged_calls: run.staged_calls,
            performed_calls: run.performed_calls,
            counted: run.counted.clone(),
            decisions: Trace {
                header: header(trace, program, &apply, &run),
                events: run.decisions.clone(),
                ..Trace::default()
            },
            trace: Trace {
                header: header(trace, program, &apply, &run),
                events: run.events,
                ..Trace::default()
            },
        })
    }
}

/// The tie seeds that say something about this run: a single thread on local storage does one thing at
/// a time, so one run says all. There must be one seed at least.
pub fn orders<'a>(trace: &Trace, platform: &Platform, seeds: &'a [Seed]) -> &'a [Seed] {
    let threads: BTreeSet<_> =
        trace.events.iter().map(|event| (event.process, event.thread)).collect();
    let has_one_order = threads.len() <= 1 && platform.nodes.is_empty();
    if has_one_order { &seeds[..1] } else { seeds }
}

/// What recording the trace cost: what its header says, or else what calibration found.
fn recording(trace: &Trace, intercept: &InterceptCosts) -> Recording {
    match (trace.header.origin, trace.header.overhead_ns) {
        (Origin::Recorded, 0) => {
            Recording { call_ns: intercept.record_ns, left_out_ns: intercept.hook_ns }
        }
        (Origin::Recorded, call_ns) => {
            Recording { call_ns: call_ns as f64, left_out_ns: intercept.hook_ns }
        }
        _ => Recording::default(),
    }
}

/// What starting and ending the command takes, as far as its trace cannot show it.
fn outside(intercept: &InterceptCosts, apply: &[StrategySpec]) -> Nanos {
    let launching_ns = match apply.is_empty() {
        true => 0.0,
        false => intercept.load_ns + intercept.launch_ns,
    };
    Nanos((intercept.process_ns + launching_ns).round() as u64)
}

/// Time in calls on files, as the program sees it: the outermost ones, summed over threads.
pub fn io_of(events: &[Event]) -> Nanos {
    let is_io = |event: &&Event| {
        let is_io = !matches!(event.function.class(), Class::Process | Class::Unseen);
        event.function.is_system_call() && is_io
    };
    Nanos(events.iter().filter(is_io).map(|event| event.duration().get()).sum())
}

/// A recorded child loaded the library before its first moment. Under strategies it does so again,
/// in a plain run it does not.
fn leave_out_loading(program: &mut Program, load_ns: f64) {
    for sequence in &mut program.sequences {
        if let Some(first) = sequence.moments.first_mut()
            && first.after.is_some()
            && sequence.is_main
        {
            first.work = first.work.since(Nanos(load_ns as u64));
        }
    }
}

/// The header of what was simulated.
fn header(trace: &Trace, program: &Program, apply: &[StrategySpec], run: &Run) -> Header {
    let mut header = trace.header.clone();
    header.format_version = FORMAT_VERSION;
    header.origin = Origin::Simulated;
    header.clock = Clock { source: "virtual".to_owned(), resolution_ns: 1, ..Clock::default() };
    header.overhead_ns = 0;
    header.strategies = apply.iter().map(|spec| spec.text.clone()).collect();
    header.given_up = stacking::given_up(apply);
    header.inferred.extend(program.inferred.iter().cloned());
    for (entry, (began, ended)) in header.processes.iter_mut().zip(&run.processes) {
        (entry.start_ns, entry.end_ns) = (began.get(), ended.get());
    }
    header
}
