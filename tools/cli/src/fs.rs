//! `iolab fs`: a parallel file system of one's own, for a job or for a directory.

mod check;
mod copy;
mod explore;
mod files;
mod launch;
mod replay;
mod run;
mod runs;
mod standing;
mod status;

use crate::failure::Failure;
use clap::{Args, Subcommand};
use iolab_pfs::Code;
use iolab_pfs_node::{Client, files as plain};
use iolab_vocab::printable;
use standing::Standing;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, io};

/// Use a parallel file system of your own: start it, run MPI programs on it, look into it.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Up(launch::Up),
    #[command(hide = true)]
    Node(launch::NodeArguments),
    Run(run::Arguments),
    Stop(launch::Stop),
    Status(status::Arguments),
    Ls(files::Ls),
    Cat(files::Cat),
    Cp(copy::Arguments),
    Mv(files::Mv),
    Rm(files::Rm),
    Mkdir(files::Mkdir),
    Du(files::Du),
    Layout(files::Layout),
    Check(check::Check),
    Rescue(check::Rescue),
    Explore(explore::Arguments),
    Replay(replay::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        Command::Up(arguments) => launch::up(arguments),
        Command::Node(arguments) => launch::node(arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::Stop(arguments) => launch::stop(arguments),
        Command::Status(arguments) => status::run(arguments),
        Command::Ls(arguments) => files::ls(arguments),
        Command::Cat(arguments) => files::cat(arguments),
        Command::Cp(arguments) => copy::run(arguments),
        Command::Mv(arguments) => files::mv(arguments),
        Command::Rm(arguments) => files::rm(arguments),
        Command::Mkdir(arguments) => files::mkdir(arguments),
        Command::Du(arguments) => files::du(arguments),
        Command::Layout(arguments) => files::layout(arguments),
        Command::Check(arguments) => check::check(arguments),
        Command::Rescue(arguments) => check::rescue(arguments),
        Command::Explore(arguments) => explore::run(arguments),
        Command::Replay(arguments) => replay::run(arguments),
    }
}

/// Which file system is meant.
#[derive(Args)]
struct Place {
    /// Directory of the file system. [default: $IOLAB_FS]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Place {
    fn directory(&self) -> Result<PathBuf, Failure> {
        let given = self.dir.clone().or_else(|| env::var_os("IOLAB_FS").map(PathBuf::from));
        given.ok_or_else(|| {
            Failure::new("no file system is named")
                .hint("give --dir DIR, the directory that `iolab fs up --dir DIR` got")
        })
    }

    fn client(&self) -> Result<Client, Failure> {
        Ok(Client::of(&self.directory()?)?)
    }
}

/// What names in the file system begin with where plain ones may stand, and may begin with everywhere.
const PREFIX: &[u8] = b"iolab:";

/// The name in the file system of a path as a user writes it: files have the names there that they have
/// outside.
fn name_of(path: &Path) -> Result<Vec<u8>, Failure> {
    let here = env::current_dir().map_err(|error| Failure::new(format!("directory: {error}")))?;
    let bytes = path.as_os_str().as_bytes();
    let name = Path::new(OsStr::from_bytes(bytes.strip_prefix(PREFIX).unwrap_or(bytes)));
    Ok(plain::name_of(name, &here))
}

/// A name for people: it stays on its line, whatever it is.
fn shown(path: &[u8]) -> String {
    printable(&String::from_utf8_lossy(path)).into_owned()
}

/// What failed in the file system, and on what.
fn failure(path: &[u8], failure: iolab_pfs::client::Failure) -> Failure {
    let path = shown(path);
    // A text that names path or reason already says enough of it.
    let mut told = failure.text;
    if !told.contains(&path) {
        told = if told.is_empty() { path } else { format!("{path}: {told}") };
    }
    let words = told.to_lowercase();
    if !words.contains(&failure.code.to_string().to_lowercase()) {
        told = format!("{told}: {}", reason(failure.code));
    }
    let told = Failure::new(told);
    match way_out(failure.code) {
        Some(hint) => told.hint(hint),
        None => told,
    }
}

/// What a code means, by the system's words where it is one of those that only the system gives.
fn reason(code: Code) -> String {
    let text = code.to_string();
    match text.starts_with("error ") && code.0 < 1000 {
        true => io::Error::from_raw_os_error(code.0.into()).to_string(),
        false => text,
    }
}

/// What to do about an error, where its name does not say so itself.
fn way_out(code: Code) -> Option<&'static str> {
    match code {
        Code::NO_ENTRY => Some("`iolab fs ls -r` lists what there is"),
        Code::EXISTS => Some("take another name, or `iolab fs rm` what has it"),
        Code::NOT_EMPTY => Some("`iolab fs rm -r` removes a directory with all that is below"),
        Code::NO_SPACE => {
            Some("make room on the device or raise --capacity, or name a directory on another one")
        }
        Code::QUOTA => Some("remove files, or raise --quota or --quota-files"),
        Code::TIMED_OUT => Some("`iolab fs status` tells which process serves; does it run?"),
        Code::TOO_LARGE => {
            Some("see `ulimit -f` where the servers were started, and the limits of the device")
        }
        Code::IO => Some("node.log in the directory of the file system may tell more"),
        _ => None,
    }
}
