//! `iolab record` and `iolab recover` from the outside: what is seen, that the guest does not
//! notice, what survives, and what happens to slips.

#[path = "../built/mod.rs"]
mod built;
mod fitting;
mod hdf5;
mod mechanisms;
mod mounted;
mod mpi;
mod netcdf;
mod parallel;
mod slips;
mod streams;
mod survival;
mod transparency;

use built::library;
use iolab_trace::Trace;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The `iolab` of this build, with its library.
fn iolab() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
    command.env("IOLAB_LIBRARY", library());
    command
}

/// `iolab record -o run.iot options -- words` in a directory.
fn record<W: AsRef<OsStr>>(directory: &Path, options: &[&str], words: &[W]) -> Output {
    let mut command = iolab();
    command.args(["record", "-o", "run.iot"]).args(options).arg("--").args(words);
    command.current_dir(directory).output().unwrap()
}

/// Reads the trace `run.iot` of a directory.
fn trace(directory: &Path) -> Trace {
    iolab_iot::read(File::open(directory.join("run.iot")).unwrap()).unwrap()
}

/// Fails with the name of the package when a tool this suite needs is not there: a test that
/// quietly does not run is worse than one that fails.
fn need(tool: &str, package: &str) {
    let found = std::env::var_os("PATH")
        .is_some_and(|list| std::env::split_paths(&list).any(|folder| folder.join(tool).exists()));
    assert!(found, "`{tool}` is not installed: apt-get install {package}");
}

/// Compiles a C program of `guests/`.
fn guest(name: &str, directory: &Path) -> PathBuf {
    need("gcc", "gcc");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/guests");
    let program = directory.join(name);
    let built = Command::new("gcc")
        .args(["-O1", "-pthread", "-o"])
        .arg(&program)
        .arg(source.join(format!("{name}.c")))
        .status();
    assert!(built.unwrap().success(), "{name}.c does not compile");
    program
}

/// The last part of a path.
fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A temporary directory for one test, with a place to work in.
fn workshop() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let work = directory.path().join("work");
    fs::create_dir(&work).unwrap();
    (directory, work)
}
