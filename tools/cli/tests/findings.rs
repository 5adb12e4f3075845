//! Real programs with one fault each, recorded and reported: the fault is found, and its near miss
//! is not.

mod built;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/findings");

fn faults(directory: &Path) -> PathBuf {
    let program = directory.join("faults");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-Wall", "-o"]).arg(&program);
    let compiled = compiler.arg(format!("{SOURCES}/faults.c")).status().unwrap();
    assert!(compiled.success());
    program
}

/// Standard output of the command in that directory.
fn iolab(directory: &Path, args: &[&str]) -> Vec<u8> {
    let mut iolab = Command::new(env!("CARGO_BIN_EXE_iolab"));
    let done = iolab.current_dir(directory).args(args).output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}

/// The rules that found something in the trace `run.iot`, and what they say.
fn findings_in(directory: &Path) -> Vec<(String, String)> {
    let report = iolab(directory, &["report", "run.iot", "--json"]);
    let report: Value = serde_json::from_slice(&report).unwrap();
    let rules = report["findings"].as_array().unwrap().iter();
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    rules.map(|finding| (text(finding, "rule"), text(finding, "message"))).collect()
}

/// Records a command in a directory of its own and gives the rules that found something.
fn findings_of(command: &[&str]) -> Vec<String> {
    built::library();
    let directory = tempfile::tempdir().unwrap();
    let record = [&["record", "-o", "run.iot", "--"], command].concat();
    iolab(directory.path(), &record);
    findings_in(directory.path()).into_iter().map(|(rule, _)| rule).collect()
}

/// What the rules say of a simulated run of four ranks that write 16 pieces of 64 KiB each, so far
/// apart, on ten servers with stripes of 64 KiB.
fn findings_of_writes(distance: &str) -> Vec<(String, String)> {
    let directory = tempfile::tempdir().unwrap();
    let workload = format!(
        r#"files = [{{ name = "data", size = "100m" }}]
        [[applications]]
        ranks = 4
        [[applications.phases]]
        commands = [
          {{ open = "data" }},
          {{ repeat = 16, commands = [
            {{ write = "data", rank_step = "10240k", bytes = "64k", step = "{distance}" }},
          ] }},
          {{ close = "data" }},
        ]"#
    );
    std::fs::write(directory.path().join("workload.toml"), workload).unwrap();
    let run = ["simulate", "--workload", "workload.toml", "--platform", "classic-hdd"];
    iolab(directory.path(), &[&run[..], &["--seeds", "1", "-o", "run.iot"]].concat());
    findings_in(directory.path())
}

#[track_caller]
fn assert_told_apart(rule: &str, faulty: &[&str], near: &[&str]) {
    let found = findings_of(faulty);
    assert!(found.iter().any(|name| name == rule), "{rule} missed, found {found:?}");
    let found = findings_of(near);
    assert!(!found.iter().any(|name| name == rule), "false {rule}, found {found:?}");
}

#[track_caller]
fn assert_fault(rule: &str) {
    let directory = tempfile::tempdir().unwrap();
    let program = faults(directory.path());
    let program = program.to_str().unwrap();
    assert_told_apart(rule, &[program, rule, "faulty"], &[program, rule, "near"]);
}

#[test]
fn a_program_that_writes_tiny_records_in_a_row() {
    assert_fault("small-sequential-writes");
}

#[test]
fn a_program_that_writes_tiny_records_all_over_a_file() {
    assert_fault("small-random-writes");
}

#[test]
fn a_program_that_reads_through_an_unbuffered_stream() {
    assert_fault("small-sequential-reads");
}

#[test]
fn a_program_that_seeks_to_where_it_is() {
    assert_fault("redundant-seeks");
}

#[test]
fn a_program_that_syncs_each_line() {
    assert_fault("fsync-storm");
}

#[test]
fn a_program_that_reads_back_what_it_just_wrote() {
    assert_fault("read-after-write");
}

#[test]
fn a_program_that_asks_for_a_status_again_and_again() {
    assert_fault("stat-storm");
}

#[test]
fn a_program_that_flushes_each_line() {
    assert_fault("flush-after-each-print");
}

#[test]
fn a_program_with_one_slow_rank() {
    let directory = tempfile::tempdir().unwrap();
    let program = faults(directory.path());
    let program = program.to_str().unwrap();
    let slow = |variant| findings_of(&[program, "one-slow-rank", variant]);
    let is_found = |found: &[String]| found.iter().any(|name| name == "one-slow-rank");
    assert!(is_found(&slow("faulty")));
    // On a busy machine a rank may really be held up; not three times in a row.
    assert!((0..3).any(|_| !is_found(&slow("near"))));
}

#[test]
fn a_simulated_program_whose_distance_is_a_multiple_of_stripe_times_servers() {
    let busy = |found: Vec<(String, String)>| {
        found.into_iter().find(|(rule, _)| rule == "uneven-servers").map(|(_, message)| message)
    };
    let told = busy(findings_of_writes("640k")).expect("all pieces lie on one server");
    assert!(told.contains("(server0)") && told.contains("4 MiB"), "{told}");
    assert_eq!(busy(findings_of_writes("64k")), None);
    assert_eq!(busy(findings_of_writes("704k")), None);
}

#[test]
fn a_python_program_that_opens_its_log_for_each_line() {
    let script = format!("{SOURCES}/churn.py");
    let command = |variant| ["python3", script.as_str(), variant];
    assert_told_apart("open-close-churn", &command("faulty"), &command("near"));
}
