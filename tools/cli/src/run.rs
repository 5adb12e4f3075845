//! `iolab run`: an unmodified program with in-situ strategies applied to its files.
//!
//! The strategies are checked here, so that the library inside the program never meets a bad one.
//! This process stays, hands signals on, and ends as the program ended: what a killed process held is
//! written out all the same, and at the end a line says what was applied. With `--quiet`, and nothing to
//! look after or to write down, this process becomes the program.

mod counting;
mod deferred;
mod staging;
mod telling;
mod via;

use crate::above::{self, Above};
use crate::collective::Collective;
use crate::failure::{Failure, LEFT};
use crate::mounted::Via;
use crate::output::{self, Output as Target};
use crate::planned;
use crate::profile;
use crate::record::{
    Output, RESOLUTION_NS, Saved, StdioName, launch_failure, making, named_in, nothing_is_lost,
    spool_failure, summarize, writing,
};
use crate::storage_block;
use clap::Args;
use counting::Counting;
use iolab_host::inherited;
use iolab_host::job::Job;
use iolab_host::launch::{self, Both, Ending, Watcher};
use iolab_host::recording::{Recording, Settings, StreamCalls};
use iolab_host::run::{SharedRun, has_memory_from_around, leftovers};
use iolab_policy::insitu::stacking::{self, Consent, Setting};
use iolab_policy::insitu::{BlockOf, StrategySpec};
use iolab_trace::finish::Side;
use iolab_trace::{Event, Layer};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use telling::{NOT_REACHED, Telling};

/// Run a program with strategies applied to its files, or with another algorithm for its collective
/// accesses, without changing the program.
///
/// The environment hands the strategies on to its children. See `iolab strategies` for the list.
#[derive(Args)]
pub(crate) struct Arguments {
    /// A profile, as `iolab advise --profile` and `iolab tune` write it: its strategies, where it is meant
    /// to be used; elsewhere it says so, and the command runs without it
    #[arg(
        value_name = "@PROFILE.toml",
        value_parser = crate::profile::named,
        groups = ["changed", "strategies"],
        conflicts_with = "apply"
    )]
    profile: Option<PathBuf>,
    /// A strategy, for example `write-back:buffer=1m,paths=*.chk`, or a stack, `A + B`; the first one
    /// is on top.
    #[arg(
        long,
        value_name = "STRATEGY",
        required_unless_present_any = ["collective", "profile"],
        groups = ["changed", "strategies"]
    )]
    apply: Vec<String>,
    /// Take a strategy although it gives this up: `weaker-durability`, `age`, `late-visibility`,
    /// `undefined-bytes`.
    #[arg(long, value_name = "WORD", requires = "strategies")]
    allow: Vec<String>,
    /// Take a strategy that destroys the files it is for.
    #[arg(long = "i-know-this-destroys-data", requires = "strategies")]
    destroys: bool,
    /// End with exit code 3 if a program of the run did not load the library, or moves data past it.
    #[arg(long, requires = "strategies")]
    strict: bool,
    /// Say nothing of what was applied.
    #[arg(long)]
    quiet: bool,
    /// The library says all the same what passes it: the run around this one is not quiet.
    #[arg(long, hide = true, requires = "quiet")]
    within: bool,
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
    #[command(flatten)]
    via: Via,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (specs, steps_aside) = match &arguments.profile {
        Some(path) => match profile::for_command(path, &arguments.command)? {
            Some(specs) => (specs, false),
            None => (Vec::new(), true),
        },
        None => {
            let block = storage_block::of_selection();
            (StrategySpec::parse_each_on(&arguments.apply, &block)?, false)
        }
    };
    let program = &arguments.command[0];
    let specs = planned::with_plans(specs, |path, trace| {
        planned::warn_of_another_program(path, trace, program);
    })?;
    let consent = Consent::of(&arguments.allow, arguments.collective.cruel, arguments.destroys)?;
    let remarks = stacking::check(&specs, arguments.via.setting(&specs), consent)?;
    arguments.collective.goes_with(&specs)?;
    if !arguments.quiet {
        remarks.iter().for_each(|remark| eprintln!("iolab: {remark}"));
        if arguments.apply.iter().any(|text| text.contains(storage_block::ASKED)) {
            specs
                .iter()
                .filter_map(storage_block::told)
                .for_each(|line| eprintln!("iolab: {line}"));
        }
    }
    if specs.iter().any(StrategySpec::needs_mount) {
        return via::needed(arguments, specs, consent);
    }
    if !steps_aside && arguments.via.is_mount(program)? {
        return via::mounted(arguments, specs, &arguments.command);
    }
    let mut specs = profile::rooted_here(specs)?;
    let collective = arguments.collective.applied()?;
    let mut command = Command::new(program);
    command.args(&arguments.command[1..]);
    let above = Above::begin(&mut command, &specs, arguments.quiet, arguments.strict);
    let libraries = above::preloaded(&[(collective.is_some(), launch::find_mpi_library)], &specs)?;
    if let Some(collective) = &collective {
        collective.prepare(&mut command);
    }
    launch::preload(&mut command, &libraries);
    let staging = staging::begin(&mut command, &specs, arguments.quiet)?;
    let shared = shared_run(&mut specs);
    if !specs.is_empty() {
        command.env("IOLAB_APPLY", StrategySpec::join(&specs));
        command.env("IOLAB_ALLOW", consent.text());
    }
    match arguments.quiet && !arguments.within {
        true => command.env("IOLAB_QUIET", "1"),
        false => command.env_remove("IOLAB_QUIET"),
    };
    let telling = Telling::begin(&mut command, &specs, arguments.quiet, arguments.strict);
    let counting = Counting::begin(&mut command, &specs);
    let wants_a_trace = arguments.record.is_some() || arguments.decisions.is_some();
    let has_plans = planned::share(&mut command, &specs)?;
    let is_told = telling.is_some() || counting.is_some() || above.is_some();
    let is_waited_for = is_told || has_plans;
    let has_nobody = shared.is_none() && staging.is_none() && collective.is_none();
    if has_nobody && !wants_a_trace && !is_waited_for {
        inherited::hand_on(&mut command);
        let failure = command.exec();
        return Err(launch_failure(launch::start_error(program, failure)));
    }
    let (mut shared, mut nobody) = (shared, launch::AsOne);
    if let Some(run) = &shared {
        command.envs(run.environment());
    }
    let watcher: &mut dyn Watcher = match &mut shared {
        Some(run) => run,
        None => &mut nobody,
    };
    let ended = match wants_a_trace {
        true => watched(arguments, &specs, &mut command, watcher),
        false => launch::run(&mut command, watcher).map_err(launch_failure),
    };
    if let Some(run) = shared {
        end(run);
    }
    let is_home = staging.is_none_or(|staging| staging::end(staging, arguments.quiet));
    if let Some(collective) = collective {
        collective.end(program);
    }
    let ending = ended?;
    if let Some(counting) = counting {
        counting.end();
    }
    let is_reached = above.is_none_or(|above| above.end(arguments.strict));
    let is_reached = telling.is_none_or(|telling| telling.end(arguments.strict)) && is_reached;
    Ok(match ending.code() {
        0 if !is_home => ExitCode::from(LEFT),
        0 if arguments.strict && !is_reached => ExitCode::from(NOT_REACHED),
        _ => ExitCode::from(ending.follow()),
    })
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

/// The strategies of a command line, top first, for a trial that touches no file of the user's.
pub(crate) fn parse_for_scratch(
    texts: &[String],
    block: BlockOf,
) -> Result<Vec<StrategySpec>, Failure> {
    let specs = planned::with_plans(StrategySpec::parse_each_on(texts, block)?, |_, _| {})?;
    for remark in stacking::check(&specs, Setting::Scratch, Consent::default())? {
        eprintln!("iolab: {remark}");
    }
    Ok(specs)
}

/// Runs the command to its end and writes what was asked for.
fn watched(
    arguments: &Arguments,
    specs: &[StrategySpec],
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
        target.map(|target| Output::reserve(target, RESOLUTION_NS, summarize)).transpose()
    };
    let (mut record, mut decisions) = (reserve(record)?, reserve(decisions)?);
    let texts: Vec<String> = specs.iter().map(|spec| spec.text.clone()).collect();
    let mut recording = Recording::begin(&settings, &arguments.command, &texts)
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
        save(&recording, specs, Side::Program, output, |_| true)?;
    }
    if let Some(output) = decisions {
        save(&recording, specs, Side::Below, output, |event| {
            event.function.layer() == Layer::Insitu
        })?;
    }
    recording.discard();
    Ok(ending)
}

fn save(
    recording: &Recording,
    specs: &[StrategySpec],
    side: Side,
    output: Output,
    wanted: impl Fn(&Event) -> bool,
) -> Result<(), Failure> {
    let patience = making(recording);
    let mut trace = recording.finished(side).map_err(|error| spool_failure(&error))?;
    trace.header.given_up = stacking::given_up(specs);
    trace.retain(wanted);
    patience.step(writing(&trace));
    let saved = output.save(trace).map_err(|failure| nothing_is_lost(recording, failure))?;
    drop(patience);
    if let Saved::Whole(trace, place) = saved {
        summarize(&trace, &place);
    }
    Ok(())
}
