//! `iolab mount-enter`: becomes a command in a namespace where its directories are covered, while somebody else
//! waits for it.

use crate::failure::Failure;
use crate::mounted::{FAILED, become_command};
use clap::Args;
use iolab_host::launch;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;

/// Run a command whose directories are covered; `iolab record --via mount` starts this.
#[derive(Args)]
#[command(hide = true)]
pub(crate) struct Arguments {
    /// The descriptor that leads to the server.
    server: i32,
    /// The one that leads to whoever waits: closed when this process has become the command.
    waiting: i32,
    /// Directories, by their canonical names.
    #[arg(required = true)]
    directories: Vec<PathBuf>,
    /// The command and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let descriptor = |number| {
        let handed_down = launch::handed_down(number).map(UnixStream::from);
        handed_down.map_err(|error| Failure::new(format!("descriptor {number}: {error}")))
    };
    let (server, mut waiting) = (descriptor(arguments.server)?, descriptor(arguments.waiting)?);
    let became = become_command(&server, &arguments.directories, &arguments.command);
    // Whoever does not hear it makes an empty trace.
    let _ = waiting.write_all(&[FAILED]);
    became
}
