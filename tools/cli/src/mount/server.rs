//! `iolab mount-server`: serves the directories of one `iolab run --via mount`, outside of its
//! namespace. Standard input is the socket to the launcher.

use crate::failure::Failure;
use crate::planned;
use clap::Args;
use iolab_host::interruption::Interruptions;
use iolab_mount::{NamespaceError, serve};
use iolab_policy::insitu::StrategySpec;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

/// Serve the directories of one `iolab run --via mount`, which starts this.
#[derive(Args)]
#[command(hide = true)]
pub(crate) struct Arguments {
    /// A strategy; the first one is on top.
    #[arg(long, value_name = "STRATEGY")]
    apply: Vec<String>,
    /// Directories, by their canonical names.
    #[arg(required = true)]
    directories: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    // The launcher has checked what stands on what.
    let strategies = StrategySpec::parse_each(&arguments.apply)?;
    let strategies = planned::with_plans(strategies, |_, _| {})?;
    let no_socket = |error: io::Error| Failure::new(format!("standard input: {error}"));
    let socket = io::stdin().as_fd().try_clone_to_owned().map_err(no_socket)?;
    let served = serve(UnixStream::from(socket), &arguments.directories, &strategies);
    let served = match served {
        Ok(served) => served,
        Err(NamespaceError::Launcher) => return Ok(ExitCode::FAILURE),
        Err(error) => return Err(failure(error)),
    };
    if let Ok(mut signals) = Interruptions::expect() {
        let release = served.release();
        // Each signal once: the second of its kind ends this process, and nothing is held then.
        thread::spawn(move || {
            while signals.wait().is_ok() {
                release.release();
            }
        });
    }
    let counted = served.wait();
    counted.lines().iter().for_each(|line| eprintln!("iolab: {line}"));
    Ok(ExitCode::SUCCESS)
}

/// What is wrong with a namespace, for a person.
pub(crate) fn failure(error: NamespaceError) -> Failure {
    let failure = Failure::new(&error);
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
