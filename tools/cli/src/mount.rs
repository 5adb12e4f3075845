//! `iolab mount`: a directory seen through strategies, for programs of any kind.

pub(crate) mod enter;
pub(crate) mod server;

use crate::failure::{Failure, LEFT};
use crate::{packed, planned, storage_block};
use clap::Args;
use iolab_host::interruption::{Interruptions, name};
use iolab_mount::{MountError, Settings, mount};
use iolab_packs::packs_in;
use iolab_policy::insitu::classes::Semantics;
use iolab_policy::insitu::stacking::{self, Consent, Setting};
use iolab_policy::insitu::{Selection, StrategySpec};
use std::path::PathBuf;
use std::process::ExitCode;

/// What reads through containers, on a mount where nothing is made.
const READING: &str = "defer-close:unpack=never,paths=**";

/// Mount a directory so that all programs see its files through strategies.
///
/// Stays in the foreground; SIGINT, SIGTERM and `umount` end it, after what strategies hold has been
/// written out. See `iolab strategies` for the list; globs are about paths below the mount point.
#[derive(Args)]
pub(crate) struct Arguments {
    /// A strategy, for example `write-back:paths=*.chk`, or a stack, `A + B`; the first one is on top.
    #[arg(long, value_name = "STRATEGY", required_unless_present = "packs")]
    apply: Vec<String>,
    /// Show the files in containers that lie in the directory (`iolab-RUN-NODE.pack`, which `defer-close` leaves) as the
    /// files they are, only to be read.
    #[arg(long, conflicts_with = "apply")]
    packs: bool,
    /// Take a strategy although it gives this up: `weaker-durability`, `age`, `late-visibility`,
    /// `undefined-bytes`.
    #[arg(long, value_name = "WORD")]
    allow: Vec<String>,
    /// Take strategies that are there to make trouble.
    #[arg(long)]
    cruel: bool,
    /// The directory whose files are served.
    source: PathBuf,
    /// An empty directory where they are seen.
    mountpoint: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.packs {
        return read(arguments);
    }
    let block = |_: &Selection| Some(storage_block::of_directory(&arguments.source));
    let strategies = StrategySpec::parse_each_on(&arguments.apply, &block)?;
    let mut strategies = planned::with_plans(strategies, |_, _| {})?;
    refuse_destroyers(&strategies)?;
    let covered: Vec<PathBuf> = arguments.source.canonicalize().into_iter().collect();
    packed::resolve_places(&mut strategies, &covered)?;
    let consent = Consent::of(&arguments.allow, arguments.cruel, false)?;
    for remark in stacking::check(&strategies, Setting::Mounted, consent)? {
        eprintln!("iolab: {remark}");
    }
    serve(arguments, strategies)
}

/// Nothing is kept and nothing can be made: only what earlier runs have left is seen.
fn read(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.source.is_dir() && packs_in(&arguments.source).is_empty() {
        let place = arguments.source.display();
        eprintln!("iolab: warning: there is no container (iolab-RUN-NODE.pack) in {place}");
    }
    serve(arguments, vec![StrategySpec::parse(READING)?])
}

/// Serves until the end.
fn serve(arguments: &Arguments, strategies: Vec<StrategySpec>) -> Result<ExitCode, Failure> {
    let signals = Interruptions::expect();
    let mut signals = signals.map_err(|error| Failure::new(format!("signals: {error}")))?;
    let settings = Settings {
        source: arguments.source.clone(),
        mountpoint: arguments.mountpoint.clone(),
        strategies,
        is_read_only: arguments.packs,
    };
    let mounted = mount(settings, Interruptions::forget).map_err(failure)?;
    let place = mounted.mountpoint().display().to_string();
    say_line!("ready: {} is seen at {place}", arguments.source.display());
    let signal = signals.wait().map_err(|error| Failure::new(format!("signals: {error}")))?;
    if signal != 0 {
        let open = mounted.end();
        if open > 0 {
            eprintln!(
                "iolab: {}: {place} is unmounted; nothing is held any more, and {open} open files are \
                 served until they are closed ({} again ends that at once)",
                name(signal),
                name(signal)
            );
        }
    }
    let (counted, packed) =
        mounted.wait().map_err(|error| Failure::new(format!("{place}: {error}")))?;
    counted.lines().iter().for_each(|line| eprintln!("iolab: {line}"));
    Ok(match packed.is_none_or(|packed| packed::settle(&packed)) {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(LEFT),
    })
}

/// A directory that is mounted is used as it is without us; who destroys files has no place there.
pub(crate) fn refuse_destroyers(specs: &[StrategySpec]) -> Result<(), Failure> {
    let destroys = |spec: &&StrategySpec| spec.row().classes.semantics == Semantics::Destroyed;
    match specs.iter().find(destroys) {
        None => Ok(()),
        Some(spec) => {
            Err(Failure::new(format!("`{}` destroys files, and is not for a mount", spec.name))
                .hint("measure with `iolab run --via preload`"))
        }
    }
}

/// What is wrong with a mount, for a person.
pub(crate) fn failure(error: MountError) -> Failure {
    let failure = Failure::new(&error);
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
