//! `iolab mount-server`: serves the directories of one `iolab run --via mount`, outside of its
//! namespace. Standard input is the socket to the launcher.

use crate::failure::Failure;
use crate::mounted::TELL;
use crate::packed;
use crate::planned;
use crate::record::spool_failure;
use clap::Args;
use iolab_host::interruption::Interruptions;
use iolab_host::recording::Teller;
use iolab_mount::{NamespaceError, Release, serve};
use iolab_policy::insitu::StrategySpec;
use std::fs::File;
use std::io::{self, Read, Write};
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
    /// Tell of calls in this spool directory; standard output is a socket to who wants them written down.
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    /// Tell on standard output, a socket, what became of small files.
    #[arg(long)]
    waited_for: bool,
    /// Say nothing of what merely passes.
    #[arg(long)]
    quiet: bool,
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
    let teller = arguments.spool.as_deref().map(Teller::of).transpose();
    let teller = teller.map_err(|error| spool_failure(&error))?;
    let (directories, is_quiet) = (&arguments.directories, arguments.quiet);
    let served = serve(UnixStream::from(socket), directories, &strategies, teller, is_quiet);
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
    // Who waits for small files reads what was told after that.
    if arguments.spool.is_some() && !arguments.waited_for {
        let release = served.release();
        let listener = io::stdout().as_fd().try_clone_to_owned().map(UnixStream::from);
        let listener = listener.map_err(no_socket)?;
        thread::spawn(move || tell_who_asks(listener, &release));
    }
    let (counted, packed) = served.wait();
    counted.lines().iter().for_each(|line| eprintln!("iolab: {line}"));
    packed::serve_out(&packed, arguments.waited_for);
    Ok(ExitCode::SUCCESS)
}

/// Writes down what was told whenever the recorder wants it.
fn tell_who_asks(mut recorder: UnixStream, release: &Release) {
    let mut asked = [0];
    while let Ok(1) = recorder.read(&mut asked) {
        release.tell_all();
        if recorder.write_all(&[TELL]).is_err() {
            break;
        }
    }
    // Processes that outlive the command are served on; whoever reads what the recorder says need not wait for them.
    let nothing = File::options().write(true).open("/dev/null");
    if let Ok(nothing) = nothing {
        let _ = rustix::stdio::dup2_stderr(nothing);
    }
}

/// What is wrong with a namespace, for a person.
pub(crate) fn failure(error: NamespaceError) -> Failure {
    let failure = Failure::new(&error);
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
