//! `iolab mount`: a directory seen through strategies, for programs of any kind.

pub(crate) mod server;

use crate::failure::Failure;
use crate::run::parse;
use clap::Args;
use iolab_host::interruption::{Interruptions, name};
use iolab_mount::{MountError, Settings, mount};
use std::path::PathBuf;
use std::process::ExitCode;

/// Mount a directory so that all programs see its files through strategies.
///
/// Stays in the foreground; SIGINT, SIGTERM and `umount` end it, after what strategies hold has been
/// written out. See `iolab strategies` for the list; globs are about paths below the mount point.
#[derive(Args)]
pub(crate) struct Arguments {
    /// A strategy, for example `write-back:paths=*.chk`; the first one is on top.
    #[arg(long, value_name = "STRATEGY", required = true)]
    apply: Vec<String>,
    /// The directory whose files are served.
    source: PathBuf,
    /// An empty directory where they are seen.
    mountpoint: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let strategies = parse(&arguments.apply)?;
    let signals = Interruptions::expect();
    let mut signals = signals.map_err(|error| Failure::new(format!("signals: {error}")))?;
    let settings = Settings {
        source: arguments.source.clone(),
        mountpoint: arguments.mountpoint.clone(),
        strategies,
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
    mounted.wait().map_err(|error| Failure::new(format!("{place}: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

/// What is wrong with a mount, for a person.
pub(crate) fn failure(error: MountError) -> Failure {
    let failure = Failure::new(&error);
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
