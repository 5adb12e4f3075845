//! `iolab compare` on simulated runs: what differs is named, a run does not differ from itself, and
//! slips are told without harm to the traces.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `iolab words` in a directory.
fn iolab(directory: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iolab")).current_dir(directory).args(words).output().unwrap()
}

/// A run of two ranks that write so many pieces of 1 MiB, as `NAME.iot`.
fn simulated(directory: &Path, name: &str, pieces: u32) {
    let workload = format!(
        r#"files = [{{ name = "data", size = "100m" }}]
        [[applications]]
        ranks = 2
        [[applications.phases]]
        commands = [
          {{ open = "data" }},
          {{ repeat = {pieces}, commands = [
            {{ write = "data", rank_step = "50m", bytes = "1m", step = "1m" }},
          ] }},
          {{ close = "data" }},
        ]"#
    );
    fs::write(directory.join("workload.toml"), workload).unwrap();
    let trace = format!("{name}.iot");
    let run =
        ["simulate", "--workload", "workload.toml", "--platform", "classic-hdd", "--seeds", "1"];
    let done = iolab(directory, &[&run[..], &["-o", &trace]].concat());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn what_differs_is_named_and_a_run_does_not_differ_from_itself() {
    let directory = tempfile::tempdir().unwrap();
    simulated(directory.path(), "few", 4);
    simulated(directory.path(), "many", 12);
    let words = ["compare", "few.iot", "many.iot", "--json"];
    let found = iolab(directory.path(), &words);
    let found: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    let differences = found["differences"].as_array().unwrap();
    assert!(text(found.to_string().as_bytes()).contains("data"), "{found}");
    assert!(!differences.is_empty(), "{found}");
    let itself = iolab(directory.path(), &["compare", "few.iot", "few.iot", "--json"]);
    let itself: serde_json::Value = serde_json::from_slice(&itself.stdout).unwrap();
    assert_eq!(itself["differences"].as_array().map(Vec::len), Some(0), "{itself}");
}

#[test]
fn a_limit_that_is_exceeded_is_an_exit_code_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    simulated(directory.path(), "few", 4);
    simulated(directory.path(), "many", 12);
    let limit = |b: &str| {
        let words = ["compare", "few.iot", b, "--fail-above", "5%"];
        iolab(directory.path(), &words).status.code()
    };
    assert_eq!((limit("few.iot"), limit("many.iot")), (Some(0), Some(3)));
}

#[test]
fn a_page_is_written_beside_the_traces_and_over_none_of_them() {
    let directory = tempfile::tempdir().unwrap();
    simulated(directory.path(), "few", 4);
    simulated(directory.path(), "many", 12);
    let before = fs::read(directory.path().join("few.iot")).unwrap();
    let refused = iolab(directory.path(), &["compare", "few.iot", "many.iot", "-o", "few.iot"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("few.iot is both read and written"));
    assert_eq!(fs::read(directory.path().join("few.iot")).unwrap(), before);
    let made = iolab(directory.path(), &["compare", "few.iot", "many.iot", "-o", "page.html"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert!(
        fs::read_to_string(directory.path().join("page.html"))
            .unwrap()
            .starts_with("<!doctype html>")
    );
    let alone = iolab(directory.path(), &["compare", "few.iot"]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(text(&alone.stderr).contains("nothing to compare few.iot with"));
}
