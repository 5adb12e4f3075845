//! `iolab completion`: what a shell needs to complete our commands.

use crate::failure::Failure;
use clap::{Args, Command};
use clap_complete::{Shell, generate};
use std::process::ExitCode;

/// Print what makes a shell complete `iolab` commands.
///
/// bash: `source <(iolab completion bash)`. zsh: `iolab completion zsh > _iolab` into a directory of
/// `$fpath`. fish: `iolab completion fish > ~/.config/fish/completions/iolab.fish`. Packages of iolab
/// bring it along.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Which shell.
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, mut command: Command) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    generate(arguments.shell, &mut command, "iolab", &mut script);
    crate::say::text(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
