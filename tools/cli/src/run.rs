//! `iolab run`: an unmodified program with in-situ strategies applied to its files.
//!
//! The strategies are checked here, so that the library inside the program never meets a bad one.
//! When one of them holds bytes back, or something is to be written down at the end, this process
//! stays, hands signals on, and ends as the program ended: what a killed process held is then
//! written out all the same. Else this process becomes the program.

use crate::collective::Collective;
use crate::failure::Failure;
use crate::output::{self, Output as Target};
use crate::record::{
    Output, RESOLUTION_NS, Saved, StdioName, launch_failure, making, named_in, spool_failure,
    summarize, writing,
};
use clap::Args;
use iolab_host::job::Job;
use iolab_host::launch::{self, Both, Ending, Watcher};
use iolab_host::recording::{Recording, Settings, StreamCalls};
use iolab_host::run::{SharedRun, has_memory_from_around, leftovers};
use iolab_policy::insitu::StrategySpec;
use iolab_trace::finish::Side;
use iolab_trace::{Event, Layer};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Run a program with strategies applied to its files, or with another algorithm for its collective
/// accesses, without changing the program.
///
/// The environment hands the strategies on to its children. See `iolab strategies` for the list.
#[derive(Args)]
pub(crate) struct Arguments {
    /// A strategy, for example `write-back:buffer=1m,paths=*.chk`; the first one is on top.
    #[arg(long, value_name = "STRATEGY", required_unless_present = "collective")]
    apply: Vec<String>,
    #[command(flatten)]
    collective: Collective,
    /// Record the program's calls into this trace as well.
    #[arg(long, value_name = "RUN.iot")]
    record: Option<PathBuf>,
    /// How that trace holds calls on streams (stdio), as in `iolab record`.
    #[arg(long, value_name = "HOW", default_value = "auto", requires = "record")]
    stdio: StdioName,
    /// Write what the strategies decided, command by command, into this trace.
    #[arg(long, value_name = "DECISIONS.iot")]
    decisions: Option<PathBuf>,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut specs = parse(&arguments.apply)?;
    let collective = arguments.collective.applied()?;
    let program = &arguments.command[0];
    let mut command = Command::new(program);
    command.args(&arguments.command[1..]);
    let mut libraries = vec![launch::find_library().map_err(launch_failure)?];
    if let Some(collective) = &collective {
        libraries.push(launch::find_mpi_library().map_err(launch_failure)?);
        collective.prepare(&mut command);
    }
    launch::preload(&mut command, &libraries);
    let shared = shared_run(&mut specs);
    if !specs.is_empty() {
        command.env("IOLAB_APPLY", StrategySpec::join(&specs));
    }
    let wants_a_trace = arguments.record.is_some() || arguments.decisions.is_some();
    if shared.is_none() && !wants_a_trace && collective.is_none() {
        let failure = command.exec();
        return Err(launch_failure(launch::start_error(program, failure)));
    }
    let (mut shared, mut nobody) = (shared, launch::Unwatched);
    if let Some(run) = &shared {
        command.envs(run.environment());
    }
    let watcher: &mut dyn Watcher = match &mut shared {
        Some(run) => run,
        None => &mut nobody,
    };
    let ended = match wants_a_trace {
        true => watched(arguments, &mut command, watcher),
        false => launch::run(&mut command, watcher).map_err(launch_failure),
    };
    if let Some(run) = shared {
        end(run);
    }
    if let Some(collective) = collective {
        collective.end(program);
    }
    ended.map(|ending| ExitCode::from(ending.follow()))
}

/// The memory the processes of the run share, if a strategy holds bytes back, or keeps what it has
/// read, and no run around this one has some. Where there is none, such strategies step aside.
fn shared_run(specs: &mut Vec<StrategySpec>) -> Option<SharedRun> {
    // Who keeps bytes only has to hear of others.
    let holds = |spec: &StrategySpec| {
        let strategy = spec.build();
        strategy.holding_bytes().max(u64::from(strategy.keeps_bytes()))
    };
    let most = specs.iter().map(holds).max().filter(|&bytes| bytes > 0)?;
    if has_memory_from_around(most) {
        return None;
    }
    if let Some(job) = Job::find() {
        // Ranks read each other's files, and nobody of another run sees what this one holds.
        if job.rank == 0 {
            eprintln!(
                "iolab: warning: every rank has an `iolab run` of its own, so strategies hold \
                 nothing back; `iolab run … -- mpiexec …` makes one run of all ranks"
            );
        }
        specs.retain(|spec| holds(spec) == 0);
        return None;
    }
    let left = leftovers();
    if let Some(directory) = left.first() {
        let (first, others) = (directory.display(), left.len() - 1);
        let more = if others > 0 { format!(" (and {others} more)") } else { String::new() };
        eprintln!(
            "iolab: warning: a run that was killed still holds bytes: `iolab recover {first}`{more}"
        );
    }
    match SharedRun::begin(most) {
        Ok(run) => Some(run),
        Err(error) => {
            eprintln!(
                "iolab: warning: no memory to share, so strategies hold nothing back: {error}"
            );
            specs.retain(|spec| holds(spec) == 0);
            None
        }
    }
}

fn end(run: SharedRun) {
    let directory = run.directory().to_owned();
    let failures = run.end();
    for failure in &failures {
        eprintln!("iolab: warning: {failure}");
    }
    if !failures.is_empty() {
        eprintln!(
            "iolab: nothing is lost yet: mend that, then `iolab recover {}`",
            directory.display()
        );
    }
}

/// The strategies of a command line, top first.
pub(crate) fn parse(texts: &[String]) -> Result<Vec<StrategySpec>, Failure> {
    texts.iter().map(|text| StrategySpec::parse(text).map_err(Failure::from)).collect()
}

/// Runs the command to its end and writes what was asked for.
fn watched(
    arguments: &Arguments,
    command: &mut Command,
    watcher: &mut dyn Watcher,
) -> Result<Ending, Failure> {
    let inputs = named_in(&arguments.command);
    let record = Target::begin_if(arguments.record.as_deref(), "--record", &inputs)?;
    let decisions = Target::begin_if(arguments.decisions.as_deref(), "--decisions", &inputs)?;
    output::distinct(&record.iter().chain(&decisions).collect::<Vec<_>>())?;
    let stdio = match arguments.record {
        Some(_) => arguments.stdio.into(),
        None => StreamCalls::Nothing,
    };
    let settings = Settings { posix: true, stdio, ..Settings::default() };
    let reserve = |target: Option<Target>| {
        target.map(|target| Output::reserve(target, RESOLUTION_NS)).transpose()
    };
    let (mut record, mut decisions) = (reserve(record)?, reserve(decisions)?);
    let mut recording = Recording::begin(&settings, &arguments.command, &arguments.apply)
        .map_err(|error| spool_failure(&error))?;
    for output in [&mut record, &mut decisions].into_iter().flatten() {
        output.recorded_in(recording.directory());
    }
    command.envs(recording.environment());
    if arguments.decisions.is_some() {
        command.env("IOLAB_DECISIONS", "1");
    }
    let ending = match launch::run(command, &mut Both(&mut recording, watcher)) {
        Ok(ending) => ending,
        Err(error) => {
            recording.discard();
            return Err(launch_failure(error));
        }
    };
    if let Some(output) = record {
        save(&recording, Side::Program, output, |_| true)?;
    }
    if let Some(output) = decisions {
        save(&recording, Side::Below, output, |event| event.function.layer() == Layer::Insitu)?;
    }
    recording.discard();
    Ok(ending)
}

fn save(
    recording: &Recording,
    side: Side,
    output: Output,
    wanted: impl Fn(&Event) -> bool,
) -> Result<(), Failure> {
    let patience = making(recording);
    let mut trace = recording.finished(side).map_err(|error| spool_failure(&error))?;
    trace.events.retain(wanted);
    patience.step(writing(&trace));
    let saved = output.save(trace)?;
    drop(patience);
    if let Saved::Whole(trace, place) = saved {
        summarize(&trace, &place);
    }
    Ok(())
}
