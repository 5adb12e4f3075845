//! `iolab simulate --workload` and `--show` from the outside.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn iolab(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
    command.args(arguments).output().unwrap()
}

fn stdout_of(arguments: &[&str]) -> String {
    let output = iolab(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn stderr_of(arguments: &[&str]) -> String {
    let output = iolab(arguments);
    assert!(!output.status.success() && output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

fn sample(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("samples/workloads").join(name).display().to_string()
}

fn json_of(arguments: &[&str]) -> serde_json::Value {
    let text = stdout_of(&[&["simulate", "--json"], arguments].concat());
    serde_json::from_str(&text).unwrap()
}

fn samples() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/workloads");
    let files = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect()
}

#[test]
fn every_sample_workload_runs_on_two_platforms() {
    let samples = samples();
    assert!(samples.len() >= 3);
    for sample in samples {
        let name = sample.display().to_string();
        for platform in ["classic-hdd", "classic-ssd"] {
            let json = json_of(&["--workload", &name, "--platform", platform]);
            assert!(json["seconds"].as_f64().unwrap() > 0.0, "{name} on {platform}");
            assert!(json["servers"].as_array().unwrap().len() == 10);
        }
    }
}

#[test]
fn the_three_forms_tell_the_same_run() {
    let arguments = ["--workload", &sample("interference.toml"), "--platform", "classic-hdd"];
    let json = json_of(&arguments);
    let seconds = json["seconds"].as_f64().unwrap();
    let text = stdout_of(&[&["simulate"], &arguments[..]].concat());
    assert!(text.contains(&format!("{seconds:.9} s (")), "{text}");
    let csv = stdout_of(&[&["simulate", "--csv"], &arguments[..]].concat());
    let mut records = csv::Reader::from_reader(csv.as_bytes()).into_records();
    assert!(records.all(|record| record.is_ok()), "{csv}");
    assert!(csv.lines().any(|line| line.starts_with("phase,queries,database,600,")), "{csv}");
    let servers = csv.lines().filter(|line| line.starts_with("server,")).count();
    let links = csv.lines().filter(|line| line.starts_with("link,")).count();
    assert_eq!((servers, links), (10, 81));
    let queue_max = json["servers"][0]["queue_max"].as_u64().unwrap();
    assert!((2..=10).contains(&queue_max), "{queue_max} of 10 clients at once");
}

#[test]
fn a_collective_access_is_chosen_by_name_and_matters() {
    let arguments = ["--workload", &sample("collective.toml"), "--platform", "classic-hdd"];
    let seconds = |more: &[&str]| {
        let json = json_of(&[&arguments[..], more].concat());
        json["seconds"].as_f64().unwrap()
    };
    let (direct, together) = (seconds(&["--collective", "direct"]), seconds(&[]));
    assert!(direct > 1.2 * together, "{direct} against {together}");
    assert_eq!(together, seconds(&["--collective", "file=two-phase"]));
    let choices =
        json_of(&[&arguments[..], &["--collective", "direct"]].concat())["choices"].take();
    assert_eq!(choices["seconds_without"], together);
    assert_eq!(
        (&choices["verdict"], &choices["chosen"][0]),
        (&"slower".into(), &"--collective direct".into())
    );
    let same = json_of(&[&arguments[..], &["--collective", "two-phase"]].concat());
    assert_eq!((&same["choices"]["share"], &same["seconds"]), (&1.0.into(), &together.into()));
    assert!(same["choices"]["verdict"].as_str().unwrap().starts_with("no difference"));
    assert!(json_of(&arguments)["choices"].is_null(), "nothing was chosen");
    let error =
        stderr_of(&[&["simulate", "--collective", "file=three-phase"], &arguments[..]].concat());
    assert!(
        error.contains("three-phase") && error.contains("hint: choose from two-phase"),
        "{error}"
    );
}

#[test]
fn the_answer_is_the_median_of_a_band_and_its_trace_is_of_that_run() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("run.iot");
    let arguments = ["--workload", &sample("checkpoint.toml"), "--platform", "classic-hdd"];
    let whole = json_of(&[&arguments[..], &["-o", trace.to_str().unwrap()]].concat());
    let (band, seconds) = (&whole["band"], whole["seconds"].as_f64().unwrap());
    assert_eq!((band["tie_seeds"].as_u64(), band["median"].as_f64()), (Some(9), Some(seconds)));
    let seed = whole["tie_seed"].to_string();
    let alone = json_of(&[&arguments[..], &["--tie-seed", &seed]].concat());
    assert_eq!(alone["event_hash"], whole["event_hash"]);
    assert!(alone["band"].is_null());
    let one = json_of(&[&arguments[..], &["--seeds", "1"]].concat());
    assert!(one["band"].is_null() && one["tie_seed"] == 0);
    let text = stdout_of(&[&["simulate"], &arguments[..]].concat());
    assert!(text.contains("over 9 orders of simultaneous events"), "{text}");
    let told =
        stderr_of(&[&["simulate", "--seeds", "3", "--tie-seed", "1"], &arguments[..]].concat());
    assert!(told.contains("cannot be used with"), "{told}");
}

#[test]
fn bands_hold_the_runs_over_tie_seeds() {
    let arguments = ["--workload", &sample("checkpoint.toml"), "--platform", "classic-hdd"];
    let band = &json_of(&[&arguments[..], &["--bands", "4"]].concat())["band"];
    let value = |key: &str| band[key].as_f64().unwrap();
    assert!(value("low") < value("high"));
    let one = json_of(&[&arguments[..], &["--tie-seed", "3"]].concat());
    let seconds = one["seconds"].as_f64().unwrap();
    assert!((value("low")..=value("high")).contains(&seconds));
}

#[test]
fn the_printed_template_runs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("w.toml");
    std::fs::write(&path, stdout_of(&["simulate", "--template"])).unwrap();
    let json = json_of(&["--workload", path.to_str().unwrap(), "--platform", "classic-hdd"]);
    assert_eq!(json["applications"][0]["phases"].as_array().unwrap().len(), 3);
}

#[test]
fn a_platform_is_drawn_as_text_and_as_pictures() {
    let text = stdout_of(&["simulate", "--show", "--platform", "classic-hdd"]);
    for part in [
        "switch switch",
        "client0 … client9",
        "server, cache none",
        "7200 rpm",
        "100 MiB/s, 200 µs",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("platform.svg");
    let path = path.to_str().unwrap();
    stdout_of(&["simulate", "--show", "svg", "--platform", "burst-buffer", "-o", path]);
    assert!(std::fs::read_to_string(path).unwrap().starts_with("<svg"));
    let html = stdout_of(&["simulate", "--show", "html", "--platform", "nvme"]);
    assert!(html.starts_with("<!doctype html>") && html.contains("</svg>"));
}

#[test]
fn slips_are_named_with_their_file_and_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("w.toml");
    let text = std::fs::read_to_string(sample("checkpoint.toml")).unwrap();
    std::fs::write(&path, text.replace("{ open = \"checkpoints\" }", "{ open = \"chekpoints\" }"))
        .unwrap();
    let path = path.to_str().unwrap();
    let error = stderr_of(&["simulate", "--workload", path, "--platform", "classic-hdd"]);
    for part in [
        path,
        "line 25",
        "`model`",
        "`checkpoint`",
        "no file `chekpoints`",
        "hint: choose from checkpoints",
    ] {
        assert!(error.contains(part), "{part} in\n{error}");
    }
    let error = stderr_of(&["simulate", "--workload", "absent.toml", "--platform", "classic-hdd"]);
    assert!(error.contains("absent.toml") && error.contains("--template"), "{error}");
    let sample = sample("checkpoint.toml");
    let error = stderr_of(&["simulate", "--workload", &sample, "--platform", "local-ext4"]);
    assert!(error.contains("local-ext4") && error.contains("hint"), "{error}");
}

fn scenario(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("samples/scenarios").join(name).display().to_string()
}

#[test]
fn faults_are_told_beside_the_run_without_them() {
    let workload = sample("checkpoint.toml");
    let arguments = ["--workload", &workload, "--platform", "classic-hdd"];
    let sound = json_of(&arguments);
    let faulty = json_of(&[&arguments[..], &["--faults", &scenario("bad-day.toml")]].concat());
    assert!(sound["faults"].is_null());
    assert_eq!(faulty["faults"]["seconds_without"], sound["seconds"]);
    assert!(faulty["faults"]["slow_down"].as_f64().unwrap() > 1.0);
    assert!(faulty["faults"]["lost_packets"].as_u64().unwrap() > 0);
    assert_eq!(faulty["faults"]["faults"].as_array().unwrap().len(), 4);
}

#[test]
fn a_hang_is_diagnosed_and_unknown_names_are_told_before_anything_runs() {
    let workload = sample("checkpoint.toml");
    let run = |platform: &str, name: &str| {
        let faults = scenario(name);
        let arguments = ["--workload", &workload, "--platform", platform, "--faults", &faults];
        stderr_of(&[&["simulate"], &arguments[..]].concat())
    };
    let text = run("classic-hdd", "crash.toml");
    assert!(text.contains("error: deadlock at") && text.contains("crashed: rank 4"), "{text}");
    assert!(text.contains("without the faults the run takes"), "{text}");
    let text = run("nvme", "bad-day.toml");
    assert!(text.contains("fault 2 (stalled-server): there is no server `server7`"), "{text}");
    assert!(text.contains("hint: choose from server0, server1"), "{text}");
}

#[test]
fn a_recorded_run_can_be_reported_and_viewed() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("out.iot").display().to_string();
    let page = directory.path().join("page.html").display().to_string();
    let sample = sample("checkpoint.toml");
    stdout_of(&["simulate", "--workload", &sample, "--platform", "classic-hdd", "-o", &trace]);
    let report: serde_json::Value =
        serde_json::from_str(&stdout_of(&["report", &trace, "--json"])).unwrap();
    assert_eq!(report["summary"]["written_bytes"], 192 << 20);
    let text = stdout_of(&["report", &trace]);
    for layer in ["mpiio", "compute", "server", "device", "network"] {
        assert!(text.contains(layer), "{layer} in\n{text}");
    }
    stdout_of(&["view", &trace, "-o", &page]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("960 calls of 8 processes"), "{}", &page[..2000]);
}

#[test]
fn the_report_of_a_recorded_run_divides_the_time_of_calls_without_rest() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("run.iot").display().to_string();
    let workload = sample("checkpoint.toml");
    let run = ["simulate", "--workload", &workload, "--platform", "classic-hdd", "--seeds", "1"];
    stdout_of(&[&run[..], &["-o", &trace]].concat());
    let report: serde_json::Value =
        serde_json::from_str(&stdout_of(&["report", &trace, "--json"])).unwrap();
    let parts = &report["parts"];
    let rows = |key: &str| parts[key].as_array().unwrap();
    let mut sums = vec![&parts["total"]];
    sums.extend(["functions", "phases", "files", "servers"].iter().flat_map(|key| rows(key)));
    for sum in &sums {
        let times = sum["parts"].as_object().unwrap().values();
        let whole: u64 = times.map(|ns| ns.as_u64().unwrap()).sum();
        assert_eq!(sum["time_ns"].as_u64().unwrap(), whole, "{sum}");
    }
    let phases: Vec<_> = rows("phases").iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert!(phases.contains(&"checkpoint") && phases.contains(&"compute"), "{phases:?}");
    let text = stdout_of(&["report", &trace]);
    assert!(text.contains("\nWhere the time of calls went ("), "{text}");
    assert!(text.contains("  phase checkpoint\n") && text.contains("seek-bound-devices"), "{text}");
}

#[test]
fn a_trace_cut_short_anywhere_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let whole = directory.path().join("whole.iot").display().to_string();
    let sample = sample("interference.toml");
    stdout_of(&["simulate", "--workload", &sample, "--platform", "classic-ssd", "-o", &whole]);
    let bytes = std::fs::read(&whole).unwrap();
    let cut = directory.path().join("cut.iot");
    let lengths = (0..8).map(|eighth| bytes.len() * eighth / 8).chain([bytes.len() - 1, 3, 4, 5]);
    for length in lengths {
        std::fs::write(&cut, &bytes[..length]).unwrap();
        let trace = cut.to_str().unwrap();
        let error = stderr_of(&["simulate", "--trace", trace, "--platform", "classic-hdd"]);
        assert!(error.starts_with("error: ") && error.contains("cut.iot"), "{length}: {error}");
        assert!(!error.contains("panicked"), "{length}: {error}");
    }
}

#[test]
fn this_machine_is_what_calibrate_wrote_here() {
    let place = tempfile::tempdir().unwrap();
    let show = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
        command.args(["simulate", "--show", "--platform", "this-machine"]);
        command.current_dir(place.path()).output().unwrap()
    };
    let missing = show();
    let words = String::from_utf8(missing.stderr).unwrap();
    assert!(!missing.status.success());
    assert!(words.contains("this-machine.toml") && words.contains("iolab calibrate"), "{words}");
    let preset = iolab_sim::platform::PRESETS.iter().find(|preset| preset.0 == "nvme").unwrap();
    std::fs::write(place.path().join("this-machine.toml"), preset.1).unwrap();
    let shown = String::from_utf8(show().stdout).unwrap();
    assert!(shown.contains("device nvme"), "{shown}");
}

#[test]
fn what_only_traces_of_posix_calls_can_have_is_refused_and_not_ignored() {
    let workload = samples().remove(0).display().to_string();
    let flags: [&[&str]; 3] =
        [&["--cold"], &["--durations", "model"], &["--decisions", "unwritten.iot"]];
    for flag in flags {
        let run = ["simulate", "--workload", &workload, "--platform", "classic-hdd"];
        let said = stderr_of(&[&run[..], flag].concat());
        assert!(said.contains(&format!("{} does nothing here", flag[0])), "{said}");
    }
    assert!(!Path::new("unwritten.iot").exists());
}

#[test]
fn strategies_are_told_with_what_they_change() {
    let place = tempfile::tempdir().unwrap();
    let workload = place.path().join("own.toml");
    let text = r#"
        files = [{ name = "own", per_rank = true }]
        [[applications]]
        ranks = 4
        [[applications.phases]]
        commands = [{ open = "own" }, { write = "own", bytes = 100, calls = 500 }, { close = "own" }]
    "#;
    std::fs::write(&workload, text).unwrap();
    let path = workload.to_str().unwrap();
    let given = ["simulate", "--platform", "classic-hdd", "--workload", path];
    let run = |flags: &[&str]| {
        let output = iolab(&[&given[..], flags].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let told = run(&["--apply", "write-back"]);
    assert!(told.contains("note: 2000 accesses went through strategies, "), "{told}");
    assert!(told.contains("chosen: --apply write-back\n") && told.contains(": faster ("), "{told}");
    let json: serde_json::Value =
        serde_json::from_str(&run(&["--apply", "write-back", "--json"])).unwrap();
    assert_eq!(json["choices"]["chosen"][0], "--apply write-back", "{json:#}");
    let said = stderr_of(&[&given[..], &["--apply", "write-forth"]].concat());
    assert!(said.contains("write-forth"), "{said}");
}

fn file_system(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("samples/file-systems").join(name).display().to_string()
}

#[test]
fn a_workload_runs_on_a_parallel_file_system_in_all_forms() {
    let (workload, instance) = (sample("matrix.toml"), file_system("scratch.toml"));
    let arguments =
        ["--workload", &workload, "--platform", "nvme", "--file-system", &instance, "--seeds", "3"];
    let json = json_of(&arguments);
    let servers = json["file_system"]["servers"].as_array().unwrap();
    let bytes = |key: &str| servers.iter().map(|server| server[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((bytes("received_bytes"), bytes("sent_bytes")), (16 << 20, 16 << 20));
    assert_eq!(json["file_system"]["durability"], "device");
    assert_eq!(json["band"]["tie_seeds"], 3);
    let csv = stdout_of(&[&["simulate", "--csv"], &arguments[..]].concat());
    assert_eq!(csv.lines().filter(|line| line.starts_with("file-server,")).count(), 4);
}

#[test]
fn what_belongs_to_the_clusters_model_is_refused_on_a_file_system() {
    let (workload, instance) = (sample("matrix.toml"), file_system("scratch.toml"));
    let arguments =
        ["simulate", "--workload", &workload, "--platform", "nvme", "--file-system", &instance];
    for (flags, named) in [
        (&["--cache", "aggregation"][..], "--cache"),
        (&["--apply", "write-back"], "--apply"),
        (&["--collective", "direct"], "--collective NAME"),
        (&["--order", "published"], "--order published"),
    ] {
        let error = stderr_of(&[&arguments[..], flags].concat());
        assert!(error.contains(&format!("{named} does nothing with --file-system")), "{error}");
    }
    let error = stderr_of(&[&arguments[..6], &["/does/not/exist.toml"]].concat());
    assert!(error.contains("/does/not/exist.toml"), "{error}");
}
