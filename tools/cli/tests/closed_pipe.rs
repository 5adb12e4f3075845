//! A reader that closes the pipe (`| head`) is no failure, and standard output that cannot be written
//! is one. Standard error that cannot be written is none: there is nobody to tell.

use std::fs::OpenOptions;
use std::process::{Command, Stdio};

/// Commands that print more than one line by different ways.
const COMMANDS: &[&[&str]] = &[
    &["--help"],
    &["--version"],
    &["fs", "up", "--help"],
    &["bench", "--list"],
    &["bench", "--template"],
    &["strategies"],
    &["man", "fs"],
    &["completion", "zsh"],
    &["simulate", "--template"],
    &["reproduce", "piosimhd", "--only", "individual-100,NoCache,524288"],
    &["reproduce", "hdd-vs-ssd", "--only", "individual-100,NoCache,524288"],
];

fn iolab(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
    command.args(arguments).stderr(Stdio::piped());
    command
}

#[test]
fn a_closed_pipe_ends_no_command_in_a_panic() {
    for arguments in COMMANDS {
        let mut child = iolab(arguments).stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {words}");
        assert!(!words.contains("panicked"), "{arguments:?}: {words}");
    }
}

#[test]
fn a_full_disk_behind_standard_output_is_told() {
    for arguments in COMMANDS {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = iolab(arguments).stdout(full).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?} printed nothing and succeeded");
        assert!(words.contains("standard output: No space left"), "{arguments:?}: {words}");
        assert!(!words.contains("panicked"), "{arguments:?}: {words}");
    }
}

#[test]
fn a_full_disk_behind_standard_error_costs_no_run_its_result() {
    let home = tempfile::tempdir().unwrap();
    let program = ["--", "sh", "-c", "echo bytes > out; exit 4"];
    for arguments in [&["record", "-o", "run.iot"][..], &["run", "--apply", "count"]] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = iolab(arguments);
        command.args(program).stderr(full).current_dir(home.path());
        assert_eq!(command.status().unwrap().code(), Some(4), "{arguments:?}");
    }
    let report = iolab(&["report", "run.iot"]).current_dir(home.path()).output().unwrap();
    assert!(report.status.success(), "{report:?}");
}
