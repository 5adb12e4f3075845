//! A trace of HDTrace from the outside: imported, reported, simulated, reproduced.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn sample() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("samples/traces/hdtrace/partdiff-2009")
}

fn iolab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iolab")).args(arguments).output().unwrap()
}

fn stdout(arguments: &[&str]) -> String {
    let output = iolab(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn stderr_of_failure(arguments: &[&str]) -> String {
    let output = iolab(arguments);
    assert!(!output.status.success(), "{arguments:?} should fail");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn the_bundled_trace_the_project_and_its_import_give_the_same_table() {
    let bundled = stdout(&["reproduce", "partdiff", "--csv"]);
    let columns = "cache_layer,server,accesses,no_seek,near,far,bytes,runtime_seconds";
    assert_eq!(bundled.lines().next(), Some(columns));
    assert_eq!(bundled.lines().count(), 1 + 5 * 5);
    let sample = sample();
    assert_eq!(stdout(&["reproduce", "partdiff", "--csv", sample.to_str().unwrap()]), bundled);
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("partdiff.iot");
    let (project, trace) = (sample.join("partdiff-par.proj"), trace.to_str().unwrap());
    let imported = iolab(&["import", project.to_str().unwrap(), "-o", trace]);
    let told = String::from_utf8(imported.stderr).unwrap();
    assert!(told.contains("left out: 360 Type_free, 261 Type_commit"), "{told}");
    assert_eq!(stdout(&["reproduce", "partdiff", "--csv", trace]), bundled);
}

#[test]
fn the_text_shows_the_published_value_beside_ours_and_json_says_how_far_off() {
    let text = stdout(&["reproduce", "partdiff", "--bands", "2"]);
    assert!(text.contains("published 8.04 s") && text.contains("(52494376)"), "{text}");
    assert!(text.contains("band"), "{text}");
    let json = stdout(&["reproduce", "partdiff", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let configurations = json["configurations"].as_array().unwrap();
    assert_eq!(configurations.len(), 5);
    for one in configurations {
        assert!(one["differs"].as_f64().unwrap().abs() < 0.05, "{one}");
    }
}

#[test]
fn a_recorded_program_of_mpi_runs_on_any_cluster() {
    let project = sample().join("partdiff-par.proj");
    let project = project.to_str().unwrap();
    let platform = sample().join("../../../partdiff-2009/platform.toml");
    let run = |platform: &str, more: &[&str]| {
        let arguments = ["simulate", "--trace", project, "--platform", platform, "--json"];
        let json = stdout(&[&arguments, more].concat());
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert!((json["recorded_seconds"].as_f64().unwrap() - 3.93).abs() < 0.01, "{json}");
        assert_eq!(json["applications"][0]["ranks"], 5);
        json["seconds"].as_f64().unwrap()
    };
    let of_2009 = run(platform.to_str().unwrap(), &["--cache", "none", "--order", "published"]);
    assert!((of_2009 / 8.04 - 1.0).abs() < 0.05, "{of_2009}");
    let nvme = run("nvme", &["--bands", "2"]);
    assert!(nvme < of_2009 / 2.0, "{nvme}");
    let told = stderr_of_failure(&["simulate", "--trace", project, "--platform", "local-ext4"]);
    assert!(told.contains("has no nodes"), "{told}");
    // An imported program takes strategies, which step aside from a file that all ranks have open.
    assert_eq!(run("nvme", &["--apply", "write-back"]), run("nvme", &[]));
    let arguments = ["simulate", "--trace", project, "--platform", "nvme", "--apply", "write-back"];
    assert!(stdout(&arguments).contains("note: strategies stepped aside from `"));
}

#[test]
fn a_project_can_be_reported_and_drawn_as_it_is() {
    let project = sample().join("partdiff-par.proj");
    let report = stdout(&["report", project.to_str().unwrap()]);
    assert!(report.contains("5 ranks") && report.contains("wrote 250 MiB"), "{report}");
    let page = stdout(&["view", project.to_str().unwrap(), "-o", "-"]);
    assert!(page.contains("partdiff-par"));
}

#[test]
fn what_is_missing_or_cut_is_named_with_a_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let project = directory.path().join("partdiff-par.proj");
    fs::copy(sample().join("partdiff-par.proj"), &project).unwrap();
    let project = project.to_str().unwrap();
    let told = stderr_of_failure(&["import", project]);
    assert!(told.contains("partdiff-par_node05_0_0.trc"), "{told}");
    assert!(told.contains("hint: a project X.proj needs"), "{told}");
    for entry in fs::read_dir(sample()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        let cut = if path.to_str().unwrap().contains("_2_0") { 5000 } else { bytes.len() };
        fs::write(directory.path().join(path.file_name().unwrap()), &bytes[..cut]).unwrap();
    }
    let told = stderr_of_failure(&["import", project]);
    assert!(told.contains("partdiff-par_node08_2_0.trc, line 54: "), "{told}");
    assert!(told.contains("hint: "), "{told}");
    let nothing = directory.path().join("nothing.txt");
    let told = stderr_of_failure(&["import", nothing.to_str().unwrap()]);
    assert!(told.contains("nothing.txt: No such file"), "{told}");
    fs::write(&nothing, "nothing\n").unwrap();
    let told = stderr_of_failure(&["import", nothing.to_str().unwrap()]);
    assert!(told.contains("--from hdtrace"), "{told}");
}
