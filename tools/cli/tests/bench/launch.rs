//! The command under test: alone, or as ranks of an MPI job.

use std::process::{Command, Output, Stdio};

pub(crate) fn iolab() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

/// The launchers of both MPI families, as far as they are installed; `make test` installs both.
pub(crate) fn launchers() -> Vec<&'static str> {
    let known = ["mpiexec.mpich", "mpiexec.openmpi"];
    let here = |name: &&str| {
        let found = Command::new(name).arg("--version").stdout(Stdio::null()).status();
        found.is_ok()
    };
    let found: Vec<_> = known.into_iter().filter(here).collect();
    for missing in known.iter().filter(|name| !found.contains(name)) {
        eprintln!("SKIPPED for {missing}: not installed");
    }
    found
}

pub(crate) fn under(launcher: &str, ranks: u32) -> Command {
    let mut command = Command::new(launcher);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    if launcher.contains("openmpi") {
        command.arg("--oversubscribe");
    }
    command.args(["-n", &ranks.to_string(), env!("CARGO_BIN_EXE_iolab")]);
    command
}

pub(crate) fn told(output: &Output) -> String {
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{out}{err}")
}
