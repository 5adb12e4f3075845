//! `iolab mpi`: the adapter between iolab and the site's MPI.

use crate::failure::Failure;
use clap::{Args, Subcommand};
use iolab_comm::adapters;
use std::process::ExitCode;

/// Build or show the adapter to the site's MPI (automatic on first use under mpiexec).
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compile the adapter with every mpicc that is found (IOLAB_MPICC names another one).
    Build,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Command::Build = arguments.command;
    let mut built = 0;
    for (family, adapter) in adapters() {
        match adapter {
            Ok(adapter) => {
                built += 1;
                let done = if adapter.fresh { "built" } else { "in place" };
                let (path, compiler) = (adapter.path.display(), adapter.compiler.display());
                say_line!("{:<9} {done}: {path} (by {compiler})", family.name());
            }
            Err(error) => say_line!("{:<9} none: {error}", family.name()),
        }
    }
    match built {
        0 => Err(Failure::new("no MPI compiler was found")
            .hint("install one (apt install mpich, or libopenmpi-dev), or set IOLAB_MPICC")),
        _ => Ok(ExitCode::SUCCESS),
    }
}
