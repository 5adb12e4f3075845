//! `iolab run`: an unmodified program with in-situ strategies applied to its files.
//!
//! The strategies are checked here, so that the library inside the program never meets a bad one.
//! Then this process becomes the program: same process number, same signals, same exit code.

use crate::failure::Failure;
use clap::Args;
use iolab_policy::insitu::StrategySpec;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Run a program with strategies applied to its files, without changing the program.
///
/// The environment hands the strategies on to its children. See `iolab strategies` for the list.
#[derive(Args)]
pub(crate) struct Arguments {
    /// A strategy, for example `write-back:buffer=1m,paths=*.chk`; the first one is on top.
    #[arg(long, value_name = "STRATEGY", required = true)]
    apply: Vec<String>,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let specs = parse(&arguments.apply)?;
    let program = &arguments.command[0];
    let failure = Command::new(program)
        .args(&arguments.command[1..])
        .env("LD_PRELOAD", preload(&library()?))
        .env("IOLAB_APPLY", StrategySpec::join(&specs))
        .exec();
    Err(Failure::new(format!("cannot run `{}`: {failure}", program.display()))
        .hint("give a program of this machine and its arguments after `--`"))
}

/// The strategies of a command line, top first.
pub(crate) fn parse(texts: &[String]) -> Result<Vec<StrategySpec>, Failure> {
    texts.iter().map(|text| StrategySpec::parse(text).map_err(Failure::from)).collect()
}

/// The value of `LD_PRELOAD` with our library before what stands there already.
fn preload(library: &Path) -> OsString {
    let mut value = library.as_os_str().to_owned();
    if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        value.push(OsStr::new(":"));
        value.push(others);
    }
    value
}

/// The preloaded library: beside this program, as cargo leaves it, or in `../lib`, as packages do.
fn library() -> Result<PathBuf, Failure> {
    const NAME: &str = "libiolab_intercept.so";
    if let Some(path) = env::var_os("IOLAB_LIBRARY") {
        return Ok(path.into());
    }
    let program =
        env::current_exe().map_err(|error| Failure::new(error).hint("is /proc mounted?"))?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    let places =
        [folder.join(NAME), folder.join("../lib").join(NAME), folder.join("deps").join(NAME)];
    places.into_iter().find(|place| place.is_file()).ok_or_else(|| {
        Failure::new(format!("{NAME} is not in {} nor in its ../lib", folder.display()))
            .hint("build it with `cargo build --release`, or set IOLAB_LIBRARY to its path")
    })
}
