//! A command whose directories are covered by a mount, for this command alone: its server, the way into the
//! namespace where it is seen, and its calls told to a recording.

use crate::failure::Failure;
use crate::mount;
use crate::record::launch_failure;
use clap::{Args, ValueEnum};
use iolab_host::inherited;
use iolab_host::launch::{self, Ending, Watcher};
use iolab_host::recording::Recording;
use iolab_mount::{NamespaceError, enter};
use iolab_policy::insitu::StrategySpec;
use iolab_policy::insitu::stacking::Setting;
use iolab_trace::program::Missed;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// The server writes its rows down within this time, or what it has not is lost.
const PATIENCE: Duration = Duration::from_secs(60);
/// By this a process says that it did not become the command.
pub(crate) const FAILED: u8 = b'f';
/// Asks the server for all it was told, and is its answer.
pub(crate) const TELL: u8 = b't';

/// How a program is reached.
#[derive(Args)]
pub(crate) struct Via {
    /// How the program is reached: by the preloaded library (the usual one), by a mount over directories (static, Go
    /// and io_uring programs as well), or by whichever suits the program. Without it: the library, or a mount where
    /// a strategy needs one.
    #[arg(long, value_name = "WAY")]
    via: Option<Way>,
    /// With a mount: cover this directory. Without: the ones that `paths=` of strategies name; where only calls
    /// are recorded, the working directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) over: Vec<PathBuf>,
}

/// The ways there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Way {
    Preload,
    Mount,
    Auto,
}

impl Via {
    /// Whether the user has chosen a mount.
    pub(crate) fn is_given(&self) -> bool {
        self.via == Some(Way::Mount)
    }

    /// Whether this program gets a mount; `auto` says which way it took, and why.
    pub(crate) fn is_mount(&self, program: &OsStr) -> Result<bool, Failure> {
        let (is_mount, why) = match self.via.unwrap_or(Way::Preload) {
            Way::Mount => return Ok(true),
            Way::Preload if self.over.is_empty() => return Ok(false),
            Way::Preload => {
                return Err(Failure::new("--over is for a mount, and there is none")
                    .hint("add --via mount (or auto), or leave --over out"));
            }
            Way::Auto => judge(program),
        };
        let way = if is_mount { "mount" } else { "preload" };
        eprintln!("iolab: --via {way}: {} {why}", program.to_string_lossy());
        Ok(is_mount)
    }

    /// Where strategies are at work then: by the library alone only if the user has chosen that.
    pub(crate) fn setting(&self, specs: &[StrategySpec]) -> Setting {
        match self.via {
            Some(Way::Preload) => Setting::Loaded,
            _ if specs.iter().any(|spec| spec.deferral().is_some()) => Setting::Mounted,
            _ => Setting::Live,
        }
    }
}

/// Whether only a mount reaches a program, and why.
fn judge(program: &OsStr) -> (bool, &'static str) {
    match launch::missed(Path::new(program)) {
        Some((_, Missed::SetUser)) => {
            (true, "runs as another user, so it loads no library of ours")
        }
        Some((_, Missed::Static)) => (true, "is static, so it loads no library"),
        Some((_, Missed::ForeignLibc)) => (true, "is of another C library than glibc"),
        Some((_, Missed::OtherMachine)) => (true, "is of 32 bits or for another processor"),
        Some((_, Missed::Environment)) | None => (false, "loads libraries"),
    }
}

/// The server of a mount that is to come.
pub(crate) struct Server {
    /// To hand it the devices.
    pub(crate) socket: UnixStream,
    /// To hear from it.
    told: UnixStream,
}

/// What else a server is to know.
#[derive(Clone, Copy, Default)]
pub(crate) struct Manner {
    /// Somebody waits to hear what became of small files.
    pub(crate) is_waited_for: bool,
    /// Nothing is said of what merely passes.
    pub(crate) is_quiet: bool,
}

impl Server {
    /// Starts it outside of the namespace. It lives as long as the last process of the command, which may wait for
    /// its children: so it is nobody's child. It tells of calls in `spool`, if there is one, or what became of small
    /// files where that is waited for.
    pub(crate) fn start(
        specs: &[StrategySpec],
        directories: &[PathBuf],
        spool: Option<&Path>,
        manner: Manner,
    ) -> Result<Server, Failure> {
        let failed =
            |error: std::io::Error| Failure::new(format!("the server of the files: {error}"));
        let (socket, theirs) = UnixStream::pair().map_err(failed)?;
        let (told, their_told) = UnixStream::pair().map_err(failed)?;
        let mut command = Command::new(env::current_exe().map_err(failed)?);
        command.arg("mount-server");
        for spec in specs {
            command.arg("--apply").arg(&spec.text);
        }
        if let Some(spool) = spool {
            command.arg("--spool").arg(spool);
        }
        let flags = [(manner.is_waited_for, "--waited-for"), (manner.is_quiet, "--quiet")];
        command.args(flags.iter().filter(|(is_said, _)| *is_said).map(|(_, flag)| flag));
        let out = match spool.is_some() || manner.is_waited_for {
            true => Stdio::from(OwnedFd::from(their_told)),
            false => Stdio::null(),
        };
        command.arg("--").args(directories).stdin(OwnedFd::from(theirs)).stdout(out);
        launch::orphan(&mut command).map_err(failed)?;
        Ok(Server { socket, told })
    }

    /// To hear its answers, and what became of small files, when it ends.
    pub(crate) fn into_listener(self) -> UnixStream {
        self.told
    }
}

/// All that the server was told so far is in the spool; if it does not say so in time, that is said.
fn tell_all(told: &mut UnixStream) {
    let asked = told.set_read_timeout(Some(PATIENCE)).and(told.write_all(&[TELL]));
    match asked.and_then(|()| told.read(&mut [0])) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => eprintln!(
            "iolab: warning: the server of the files did not write down its last calls in {} s",
            PATIENCE.as_secs()
        ),
        // One that has ended has written down all it had.
        _ => {}
    }
}

/// How a command ended that ran with its directories covered.
pub(crate) struct Ended {
    pub(crate) ending: Ending,
    /// It came to be; else what is in the way was said.
    pub(crate) has_started: bool,
}

/// This process becomes the command, in a namespace where its directories are covered.
pub(crate) fn become_command(
    server: &UnixStream,
    directories: &[PathBuf],
    command: &[OsString],
) -> Result<ExitCode, Failure> {
    enter(server, directories).map_err(|error| match error {
        // It has said itself what it met.
        NamespaceError::Server => Failure::new(&error).hint("its message is above"),
        other => mount::server::failure(other),
    })?;
    let mut program = Command::new(&command[0]);
    program.args(&command[1..]);
    inherited::hand_on(&mut program);
    let failure = program.exec();
    Err(launch_failure(launch::start_error(&command[0], failure)))
}

/// Runs the command to its end, its directories covered; calls on their files are in the recording then.
pub(crate) fn run(
    specs: &[StrategySpec],
    directories: &[PathBuf],
    command: &[OsString],
    recording: &mut Recording,
) -> Result<Ended, Failure> {
    recording.note_mounts(directories).map_err(|error| crate::record::spool_failure(&error))?;
    let server = Server::start(specs, directories, Some(recording.directory()), Manner::default())?;
    let ended = beside(&server, directories, command, recording)?;
    tell_all(&mut server.into_listener());
    Ok(ended)
}

/// Runs the command to its end beside a server of its directories.
pub(crate) fn beside(
    server: &Server,
    directories: &[PathBuf],
    command: &[OsString],
    watcher: &mut dyn Watcher,
) -> Result<Ended, Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("the command: {error}"));
    let mut inside = Command::new(env::current_exe().map_err(failed)?);
    let (mut failing, theirs) = UnixStream::pair().map_err(failed)?;
    inside.arg("mount-enter");
    for socket in [&server.socket, &theirs] {
        launch::hand_down(socket).map_err(failed)?;
        inside.arg(socket.as_raw_fd().to_string());
    }
    inside.args(directories).arg("--").args(command);
    let ending = launch::run(&mut inside, watcher).map_err(launch_failure)?;
    drop(theirs);
    let has_started = failing.read(&mut [0]).is_ok_and(|said| said == 0);
    Ok(Ended { ending, has_started })
}
