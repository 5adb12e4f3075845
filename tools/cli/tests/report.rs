//! `iolab report`, `export` (more in export/) and `import` from the outside.

use iolab_trace::{Event, FileEntry, Function, Header, ProcessEntry, Trace};
use iolab_vocab::{FileId, Nanos};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

const STRACE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/traces/strace/fork_and_thread.txt");

/// 200 writes of 64 bytes.
fn save(path: &Path) {
    let header = Header {
        command: vec!["./writer".to_owned()],
        processes: vec![ProcessEntry { name: "writer".to_owned(), ..Default::default() }],
        files: vec![FileEntry { path: "/data/log".to_owned(), ..Default::default() }],
        ..Header::default()
    };
    let write = |index: u64| Event {
        file: FileId(0),
        fd: 3,
        offset: index as i64 * 64,
        length: 64,
        result: 64,
        start: Nanos(index * 1000),
        end: Nanos(index * 1000 + 900),
        ..Event::of(Function::WRITE)
    };
    let events = (0..200).map(write).collect();
    iolab_iot::write(&Trace { header, events, ..Trace::default() }, File::create(path).unwrap())
        .unwrap();
}

fn iolab(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
    command.args(arguments).current_dir(directory).output().unwrap()
}

fn stdout_of(directory: &Path, arguments: &[&str]) -> String {
    let output = iolab(directory, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A report, whatever the trace is called that it was made of.
fn report_of(directory: &Path, trace: &str) -> String {
    stdout_of(directory, &["report", trace])
        .replace(&format!("iolab view {trace} "), "iolab view TRACE ")
}

#[test]
fn one_trace_is_reported_in_every_form() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    save(&directory.join("run.iot"));
    let text = stdout_of(directory, &["report", "run.iot"]);
    assert!(text.contains("✖ high   small-sequential-writes  /data/log"), "{text}");
    assert!(!text.contains('\x1b'), "no colours in a pipe");
    let rows = text.matches(" · see row ").count();
    assert_eq!(text.matches("iolab view run.iot --at row=").count(), rows, "{text}");
    let command = text.lines().find(|line| line.contains("iolab view")).unwrap();
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    let link = stdout_of(directory, &words);
    let row = words.last().unwrap().replace("row=", "call=0.");
    assert!(link.contains("/run.html#") && link.contains(&row), "{command}: {link}");
    let json = stdout_of(directory, &["report", "run.iot", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["findings"][0]["remedy"]["strategy"], "write-back:paths=/data/log");
    assert_eq!(json["summary"]["written_bytes"], 12_800);
    let csv = stdout_of(directory, &["report", "run.iot", "--csv"]);
    assert!(csv.lines().nth(1).unwrap().starts_with("/data/log,,0,0,0,200,12800,"), "{csv}");
    stdout_of(directory, &["report", "run.iot", "--html", "page.html"]);
    assert!(
        fs::read_to_string(directory.join("page.html"))
            .unwrap()
            .contains("small sequential writes")
    );
}

#[test]
fn strategies_in_findings_are_ones_the_catalogue_knows() {
    let directory = tempfile::tempdir().unwrap();
    save(&directory.path().join("run.iot"));
    let json = stdout_of(directory.path(), &["report", "run.iot", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    for finding in json["findings"].as_array().unwrap() {
        if let Some(strategy) = finding["remedy"]["strategy"].as_str() {
            iolab_policy::insitu::StrategySpec::parse(strategy).unwrap();
        }
    }
}

#[test]
fn a_trace_that_is_missing_cut_or_something_else_is_named_and_fails() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    save(&directory.join("run.iot"));
    let whole = fs::read(directory.join("run.iot")).unwrap();
    fs::write(directory.join("cut.iot"), &whole[..whole.len() / 2]).unwrap();
    fs::write(directory.join("other.iot"), "#!/bin/sh\n").unwrap();
    let mut damaged = whole.clone();
    damaged[20] ^= 1;
    fs::write(directory.join("damaged.iot"), damaged).unwrap();
    let cases = [
        ("missing.iot", "No such file"),
        ("cut.iot", "is cut after"),
        ("other.iot", "does not begin with `PAR1`"),
        ("damaged.iot", "row group 0 is damaged"),
        // A directory is read as the parts of one trace; the first that is none is named.
        (".", "cut.iot: the trace is cut after"),
    ];
    for (name, problem) in cases {
        for task in [&["report", name][..], &["export", name, "--to", "csv"]] {
            let output = iolab(directory, task);
            let message = String::from_utf8_lossy(&output.stderr).to_lowercase();
            assert_eq!(output.status.code(), Some(1), "{name}: {message}");
            assert!(
                message.contains(name) && message.contains(&problem.to_lowercase()),
                "{message}"
            );
        }
    }
}

#[test]
fn a_page_that_cannot_be_written_is_named() {
    let directory = tempfile::tempdir().unwrap();
    save(&directory.path().join("run.iot"));
    let output = iolab(directory.path(), &["report", "run.iot", "--html", "nowhere/page.html"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nowhere/page.html"));
}

#[test]
fn a_trace_goes_out_in_each_format() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    save(&directory.join("run.iot"));
    let chrome = stdout_of(directory, &["export", "run.iot", "--to", "chrome"]);
    let chrome: serde_json::Value = serde_json::from_str(&chrome).unwrap();
    let events = chrome["traceEvents"].as_array().unwrap();
    assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), 200);
    let dxt = stdout_of(directory, &["export", "run.iot", "--to", "dxt"]);
    assert_eq!(dxt.lines().filter(|line| line.starts_with(" X_POSIX")).count(), 200);
    stdout_of(directory, &["export", "run.iot", "--to", "csv", "-o", "run.csv"]);
    assert_eq!(fs::read_to_string(directory.join("run.csv")).unwrap().lines().count(), 201);
}

const DFTRACER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/dftracer/");
const DARSHAN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/darshan/");

#[test]
fn a_log_of_darshan_is_a_trace_for_every_command() {
    let directory = tempfile::tempdir().unwrap();
    let log = &format!("{DARSHAN}mpi-io-test-x86_64-3.1.3.darshan");
    let out = |arguments: &[&str]| stdout_of(directory.path(), arguments);
    let text = out(&["report", log]);
    assert!(text.contains("imported") && text.contains("· 4 ranks ·"), "{text}");
    assert!(text.contains("read 64 MiB · wrote 64 MiB"), "{text}");
    assert!(text.contains("inferred: opens and closes"), "{text}");
    let (traced, counted) = text.split_once("\nWhat Darshan counted besides\n").unwrap();
    assert!(!traced.contains("of it metadata"), "{text}");
    assert!(counted.contains("POSIX") && counted.contains("MPI-IO"), "{text}");
    let predicted = out(&["simulate", "--trace", log, "--platform", "classic-hdd"]);
    assert!(predicted.contains("6.44 MiB"), "{predicted}");
    out(&["view", log, "-o", "page.html"]);
    out(&["import", log, "-o", "run.iot"]);
    assert_eq!(out(&["report", "run.iot"]), traced);

    for (command, name, wanted) in [
        ("view", "mpi-io-test-x86_64-3.0.0.darshan", "it counts 8 reads and writes"),
        ("report", "README.md", "README.md"),
    ] {
        let log = &format!("{DARSHAN}{name}");
        let output = iolab(directory.path(), &[command, log]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && told.contains(wanted), "{told}");
        assert!(told.contains("hint: "), "{told}");
    }
}

#[test]
fn a_log_that_only_counts_is_reported_and_simulated_as_what_it_counts() {
    let directory = tempfile::tempdir().unwrap();
    let log = &format!("{DARSHAN}mpi-io-test-x86_64-3.0.0.darshan");
    let out = |arguments: &[&str]| stdout_of(directory.path(), arguments);
    let text = out(&["report", log]);
    assert!(text.contains("What counters cannot tell") && text.contains("MPI-IO"), "{text}");
    let report: serde_json::Value = serde_json::from_str(&out(&["report", log, "--json"])).unwrap();
    assert_eq!(report["schema"], "iolab.counted/1");
    assert_eq!(report["summary"]["read_bytes"], 64 << 20);
    assert_eq!(report["summary"]["written_bytes"], 64 << 20);
    assert!(out(&["report", log, "--csv"]).starts_with("path,file_system,module"));
    out(&["import", log, "--as", "workload", "-o", "w.toml"]);
    let simulate =
        |workload: &str| out(&["simulate", "--workload", workload, "--platform", "classic-hdd"]);
    assert!(simulate("w.toml").contains("64 MiB"), "{}", simulate("w.toml"));
    assert!(simulate(log).contains("64 MiB"));
}

#[test]
fn an_archive_of_otf2_is_a_trace_for_every_command() {
    let directory = tempfile::tempdir().unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../real/traces/tests/write_otf2.py");
    let run = directory.path().join("run");
    // The system's Python, which has the system's python3-otf2.
    let written = Command::new("/usr/bin/python3").arg(script).arg("regions").arg(run).output();
    assert!(written.unwrap().status.success(), "`tools/setup/install test` installs python3-otf2");
    let out = |arguments: &[&str]| stdout_of(directory.path(), arguments);
    let text = report_of(directory.path(), "run");
    assert!(text.contains("imported on node0 · 3 ranks"), "{text}");
    assert!(text.contains("inferred: offsets of MPI-IO, from the first access of POSIX"), "{text}");
    out(&["view", "run/traces.otf2", "-o", "page.html"]);
    out(&["import", "run", "-o", "run.iot"]);
    assert_eq!(report_of(directory.path(), "run.iot"), text);
    assert!(out(&["compare", "run", "run.iot"]).contains("calls matched"));
    let simulated = out(&["simulate", "--trace", "run", "--platform", "classic-hdd"]);
    assert!(
        simulated.contains("MPI_File_write_all") || simulated.contains("client2"),
        "{simulated}"
    );
}

#[test]
fn texts_of_recorder_are_a_trace_for_every_command() {
    let directory = tempfile::tempdir().unwrap();
    let texts = directory.path().join("run/_text");
    std::fs::create_dir_all(&texts).unwrap();
    for rank in 0..2 {
        let write = format!("0.2 0.3 write 0 0 ( /data/{rank} 0x1 4096 )\n").repeat(10);
        let text = format!("0.1 0.2 open 0 0 ( /data/{rank} 577 420 )\n{write}");
        std::fs::write(texts.join(format!("{rank}.txt")), text).unwrap();
    }
    let out = |arguments: &[&str]| stdout_of(directory.path(), arguments);
    let text = report_of(directory.path(), "run");
    assert!(text.contains("2 ranks") && text.contains("wrote 80 KiB"), "{text}");
    assert!(text.contains("inferred: that every call succeeded"), "{text}");
    out(&["import", "run", "-o", "run.iot"]);
    assert_eq!(report_of(directory.path(), "run.iot"), text);
    out(&["view", "run/_text/1.txt", "-o", "page.html", "--at", "row=3"]);
    out(&["simulate", "--trace", "run", "--platform", "classic-hdd"]);
}

#[test]
fn traces_of_dftracer_are_a_trace_for_every_command_also_as_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let out = |arguments: &[&str]| stdout_of(directory.path(), arguments);
    for part in ["cm1-2024-3537780.pfw.gz", "cm1-2024-3537781.pfw.gz"] {
        let run = directory.path().join("run");
        std::fs::create_dir_all(&run).unwrap();
        std::fs::copy(format!("{DFTRACER}{part}"), run.join(part)).unwrap();
    }
    let text = report_of(directory.path(), "run");
    assert!(text.contains("imported on corona173 · 2 ranks"), "{text}");
    let one = &format!("{DFTRACER}cm1-2024-3537780.pfw.gz");
    let text = report_of(directory.path(), one);
    assert!(text.contains("imported on corona173 · 1 process"), "{text}");
    assert!(text.contains("inferred: offsets of read, write"), "{text}");
    out(&["view", one, "-o", "page.html"]);
    out(&["import", one, "-o", "run.iot"]);
    assert_eq!(report_of(directory.path(), "run.iot"), text);
    assert!(
        out(&["simulate", "--trace", one, "--platform", "classic-hdd"]).contains("cm1out_stats")
    );
}

#[test]
fn what_strace_recorded_is_reported_like_any_trace() {
    let directory = tempfile::tempdir().unwrap();
    stdout_of(directory.path(), &["import", "--from", "strace", STRACE, "-o", "st.iot"]);
    let text = stdout_of(directory.path(), &["report", "st.iot"]);
    assert!(text.contains("imported · 2 processes"), "{text}");
    assert!(text.contains("inferred: offsets of read and write"), "{text}");

    let output = iolab(directory.path(), &["import", "--from", "strace", "st.iot"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("hint: record with `strace -f -T -ttt")
    );
}
