//! `iolab run`: an unmodified program with in-situ strategies applied to its files.
//!
//! The strategies are checked here, so that the library inside the program never meets a bad one.
//! Then this process becomes the program: same process number, same signals, same exit code. Only
//! when something is to be written down at the end does it stay and wait.

use crate::failure::Failure;
use crate::output::{self, Output as Target};
use crate::record::{Output, RESOLUTION_NS, Saved, launch_failure, spool_failure, summarize};
use clap::Args;
use iolab_host::launch;
use iolab_host::recording::{Recording, Settings};
use iolab_policy::insitu::StrategySpec;
use iolab_trace::finish::Side;
use iolab_trace::{Event, Layer};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Run a program with strategies applied to its files, without changing the program.
///
/// The environment hands the strategies on to its children. See `iolab strategies` for the list.
#[derive(Args)]
pub(crate) struct Arguments {
    /// A strategy, for example `write-back:buffer=1m,paths=*.chk`; the first one is on top.
    #[arg(long, value_name = "STRATEGY", required = true)]
    apply: Vec<String>,
    /// Record the program's calls into this trace as well.
    #[arg(long, value_name = "RUN.iot")]
    record: Option<PathBuf>,
    /// Write what the strategies decided, command by command, into this trace.
    #[arg(long, value_name = "DECISIONS.iot")]
    decisions: Option<PathBuf>,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let specs = parse(&arguments.apply)?;
    let program = &arguments.command[0];
    let mut command = Command::new(program);
    command.args(&arguments.command[1..]).env("IOLAB_APPLY", StrategySpec::join(&specs));
    launch::preload(&mut command, &launch::find_library().map_err(launch_failure)?);
    if arguments.record.is_some() || arguments.decisions.is_some() {
        return watched(arguments, &mut command);
    }
    let failure = command.exec();
    Err(launch_failure(launch::start_error(program, failure)))
}

/// The strategies of a command line, top first.
pub(crate) fn parse(texts: &[String]) -> Result<Vec<StrategySpec>, Failure> {
    texts.iter().map(|text| StrategySpec::parse(text).map_err(Failure::from)).collect()
}

/// Runs the command to its end and writes what was asked for.
fn watched(arguments: &Arguments, command: &mut Command) -> Result<ExitCode, Failure> {
    let record = Target::begin_if(arguments.record.as_deref(), "--record", &[])?;
    let decisions = Target::begin_if(arguments.decisions.as_deref(), "--decisions", &[])?;
    output::distinct(&record.iter().chain(&decisions).collect::<Vec<_>>())?;
    let settings =
        Settings { posix: true, stdio: arguments.record.is_some(), ..Settings::default() };
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
    let ending = match launch::run(command, &mut recording) {
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
    Ok(ExitCode::from(ending.code()))
}

fn save(
    recording: &Recording,
    side: Side,
    output: Output,
    wanted: impl Fn(&Event) -> bool,
) -> Result<(), Failure> {
    let mut trace = recording.finished(side).map_err(|error| spool_failure(&error))?;
    trace.events.retain(wanted);
    let path = output.path().to_owned();
    if let Saved::Whole(trace) = output.save(trace)? {
        summarize(&trace, &path);
    }
    Ok(())
}
