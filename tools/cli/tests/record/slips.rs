//! Bad input: a clear word, an exit code that is not 0, and no harm to the guest.

use crate::{iolab, record, trace, workshop};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_missing_command_is_named_and_leaves_nothing_behind() {
    let (directory, work) = workshop();
    let output = record(directory.path(), &["--spool", "work"], &["no-such-command"]);
    assert_eq!(output.status.code(), Some(127), "as in a shell");
    assert!(said(&output).contains("no command `no-such-command`"), "{}", said(&output));
    assert!(said(&output).contains("hint:"));
    assert!(!directory.path().join("run.iot").exists());
    assert_eq!(fs::read_dir(work).unwrap().count(), 0);
}

#[test]
fn a_file_that_is_no_program_is_named() {
    let (directory, _) = workshop();
    fs::write(directory.path().join("text"), "not a program").unwrap();
    let output = record(directory.path(), &[], &["./text"]);
    assert_eq!(output.status.code(), Some(126), "as in a shell");
    assert!(said(&output).contains("`./text` could not be started"));
}

#[test]
fn an_output_that_cannot_be_written_is_found_before_the_command_runs() {
    let (directory, _) = workshop();
    let mut command = iolab();
    command.args(["record", "-o", "nowhere/run.iot", "--", "touch", "ran"]);
    let output = command.current_dir(directory.path()).output().unwrap();
    assert!(!output.status.success() && said(&output).contains("nowhere"), "{}", said(&output));
    assert!(!directory.path().join("ran").exists());
}

#[test]
fn neither_the_program_nor_a_file_it_is_given_becomes_the_trace() {
    let (directory, _) = workshop();
    fs::copy("/bin/cat", directory.path().join("program")).unwrap();
    fs::write(directory.path().join("data"), "kept").unwrap();
    let starts: [&[&str]; 2] = [&["record", "-o"], &["run", "--apply", "null", "--record"]];
    for start in starts {
        for name in ["program", "data"] {
            let mut command = iolab();
            command.args(start).arg(name).args(["--", "./program", "data"]);
            let output = command.current_dir(directory.path()).output().unwrap();
            let told = said(&output);
            assert!(!output.status.success() && told.contains("both read and written"), "{told}");
            assert!(output.stdout.is_empty(), "it did not run");
        }
    }
    let same = |name: &str, as_this: &str| {
        fs::read(directory.path().join(name)).unwrap() == fs::read(as_this).unwrap()
    };
    assert!(same("program", "/bin/cat"));
    assert_eq!(fs::read_to_string(directory.path().join("data")).unwrap(), "kept");
}

#[test]
fn calls_on_no_descriptor_are_told_as_such() {
    let (directory, _) = workshop();
    let script =
        "import os\nfor fd in (-1, 70000, 999):\n try: os.write(fd, b'x')\n except OSError: pass";
    let output = record(directory.path(), &[], &["python3", "-c", script]);
    assert!(output.status.success(), "{}", said(&output));
    let left_out = trace(directory.path()).header.losses.left_out_calls;
    assert_eq!(left_out.get("descriptor above 65535"), Some(&1), "{left_out:?}");
    assert!(
        left_out.get("not an open descriptor").is_some_and(|&count| count >= 1),
        "{left_out:?}"
    );
}

#[test]
fn run_finds_out_about_its_traces_before_the_program_runs_too() {
    let (directory, _) = workshop();
    for flag in ["--record", "--decisions"] {
        let mut command = iolab();
        command.args(["run", "--apply", "null", flag, "nowhere/x.iot", "--", "touch", "ran"]);
        let output = command.current_dir(directory.path()).output().unwrap();
        assert!(!output.status.success() && said(&output).contains("nowhere"), "{}", said(&output));
        assert!(!directory.path().join("ran").exists());
    }
}

#[test]
fn decisions_about_calls_on_streams_are_kept_beside_the_recorded_calls() {
    let (directory, _) = workshop();
    let script = "import ctypes\nc = ctypes.CDLL(None)\nc.fopen.restype = ctypes.c_void_p\n\
        for n in range(9):\n f = ctypes.c_void_p(c.fopen(b'f%d' % n, b'w'))\n c.fputs(b'text', f)\n c.fclose(f)";
    let mut command = iolab();
    command.args(["run", "--apply", "null", "--record", "run.iot", "--decisions", "decided.iot"]);
    command.args(["--", "python3", "-c", script]).current_dir(directory.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let file = std::fs::File::open(directory.path().join("decided.iot")).unwrap();
    let decided = iolab_iot::read(file).unwrap();
    assert!(decided.events.len() >= 9, "{} decisions", decided.events.len());
    let is_decision = |event: &iolab_trace::Event| event.function.layer().name() == "insitu";
    assert!(decided.events.iter().all(|event| is_decision(event) && event.parent < 0));
}

#[test]
fn an_output_that_another_recording_writes_is_refused_and_one_that_was_killed_blocks_nobody() {
    let (directory, _) = workshop();
    // It outlives its recorder, but not this test, whose directory goes.
    let wait = "touch started; while [ -e started ]; do sleep 0.02; done";
    let mut first = iolab();
    first.args(["record", "-o", "run.iot", "--", "sh", "-c", wait]).current_dir(directory.path());
    first.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut first = first.spawn().unwrap();
    while !directory.path().join("started").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let second = record(directory.path(), &[], &["touch", "ran"]);
    assert!(!second.status.success() && said(&second).contains("run.iot"), "{}", said(&second));
    assert!(!directory.path().join("ran").exists());
    first.kill().unwrap();
    first.wait().unwrap();
    let third = record(directory.path(), &[], &["true"]);
    assert!(third.status.success(), "{}", said(&third));
    assert!(said(&third).contains("iolab recover"), "{}", said(&third));
    let spool = said(&third).split('`').nth(1).unwrap().rsplit(' ').next().unwrap().to_owned();
    iolab_host::recording::remove(std::path::Path::new(&spool));
}

#[test]
fn a_missing_spool_directory_and_a_missing_library_are_named() {
    let (directory, _) = workshop();
    let output = record(directory.path(), &["--spool", "nowhere"], &["true"]);
    assert!(!output.status.success() && said(&output).contains("nowhere"), "{}", said(&output));
    let mut command = iolab();
    command.env("IOLAB_LIBRARY", "/nowhere/lib.so").args(["record", "--", "true"]);
    let output = command.current_dir(directory.path()).output().unwrap();
    assert!(!output.status.success() && said(&output).contains("/nowhere/lib.so"));
}

#[test]
fn unknown_words_on_the_command_line_are_refused() {
    let (directory, _) = workshop();
    let cases = [
        ["--clock", "sundial"],
        ["--layer", "posix,mpi9"],
        ["--spool-limit", "12q"],
        ["--when-full", "explode"],
    ];
    for case in cases {
        let output = record(directory.path(), &case, &["true"]);
        assert!(!output.status.success(), "{case:?}");
        let offender = case[1].rsplit(',').next().unwrap();
        assert!(said(&output).contains(offender), "{}", said(&output));
    }
}

#[test]
fn recover_refuses_what_is_no_spool_directory() {
    let (directory, _) = workshop();
    let recover = |what: &str| {
        iolab().args(["recover", what]).current_dir(directory.path()).output().unwrap()
    };
    let output = recover("nowhere");
    assert!(!output.status.success() && said(&output).contains("nowhere"), "{}", said(&output));
    assert!(!said(&output).contains("--spool DIR"), "no flag of another command");
    fs::write(directory.path().join("work/control"), [7; 5000]).unwrap();
    let output = recover("work");
    assert!(!output.status.success() && said(&output).contains("no spool directory"));
}

#[test]
fn the_exit_code_is_that_of_the_command() {
    let (directory, _) = workshop();
    for (script, code) in
        [("exit 0", 0), ("exit 42", 42), ("kill -TERM $$", 143), ("kill -SEGV $$", 139)]
    {
        let output = record(directory.path(), &[], &["sh", "-c", script]);
        assert_eq!(output.status.code(), Some(code), "{script}");
        assert!(directory.path().join("run.iot").exists());
    }
}

#[test]
fn a_static_program_is_reported_as_unseen() {
    let (directory, _) = workshop();
    fs::write(directory.path().join("s.c"), "int main(void) { return 0; }").unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-static", "-o", "still", "s.c"]).current_dir(directory.path());
    assert!(gcc.status().unwrap().success(), "a static libc is missing: apt-get install libc6-dev");
    let output = record(directory.path(), &[], &["./still"]);
    assert!(output.status.success());
    assert!(said(&output).contains("./still did not load the library"), "{}", said(&output));
    let output = record(directory.path(), &[], &["sh", "-c", "./still; true"]);
    assert!(said(&output).contains("still did not load the library"), "{}", said(&output));
    let spawn = "import os; os.waitpid(os.posix_spawn('./still', ['still'], os.environ), 0)";
    let output = record(directory.path(), &[], &["python3", "-c", spawn]);
    assert!(said(&output).contains("still did not load the library"), "{}", said(&output));
}

/// Needs root for a small file system of its own; without, a directory nobody may write to shows
/// the same path of the code.
#[test]
fn a_full_disk_under_the_spool_costs_records_and_never_the_guest() {
    let (directory, _) = workshop();
    let small = directory.path().join("small");
    fs::create_dir(&small).unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=400k", "tmpfs"]).arg(&small);
    if !mount.output().is_ok_and(|output| output.status.success()) {
        return a_spool_nobody_may_write_to(directory.path(), &small);
    }
    let words = ["dd", "if=/dev/zero", "of=out", "bs=64", "count=100000"];
    let output = record(directory.path(), &["--spool", "small"], &words);
    let unmounted = Command::new("umount").arg(&small).status().unwrap();
    assert!(
        unmounted.success() && output.status.success(),
        "{:?} {}",
        output.status,
        said(&output)
    );
    let trace = trace(directory.path());
    assert_eq!(fs::metadata(directory.path().join("out")).unwrap().len(), 6_400_000);
    let lost = trace.header.losses.lost_calls.get("no space for the spool");
    assert!(lost.is_some_and(|&count| count > 0), "{:?}", trace.header.losses);
    assert!(!trace.events.is_empty());
}

fn a_spool_nobody_may_write_to(directory: &std::path::Path, closed: &std::path::Path) {
    fs::set_permissions(closed, fs::Permissions::from_mode(0o500)).unwrap();
    let output = record(directory, &["--spool", "small"], &["true"]);
    assert!(!output.status.success() && said(&output).contains("small"), "{}", said(&output));
}

#[test]
fn a_recording_counts_what_its_report_counts() {
    let (directory, _) = workshop();
    // Calls inside of a call (popen), several images of one process, children.
    let script = "seq 3 > a; cat a | sort > b; python3 -c \"import os; os.popen('wc b').read()\"; exec cp b c";
    let told = said(&record(directory.path(), &[], &["sh", "-c", script]));
    let words = ["report", "run.iot", "--json"];
    let report = iolab().args(words).current_dir(directory.path()).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    let calls = report["summary"]["call_count"].as_u64().unwrap();
    assert!(calls > 20, "{report}");
    assert!(told.starts_with(&format!("iolab: {calls} calls on ")), "{calls} calls: {told}");
}

#[test]
fn one_of_a_kind_is_told_in_the_singular() {
    let (directory, _) = workshop();
    fs::write(directory.path().join("only"), "text").unwrap();
    let told = said(&record(directory.path(), &[], &["truncate", "-s", "9", "only"]));
    assert!(told.contains(" on 1 file by 1 process in run.iot ("), "{told}");
}

#[test]
fn a_quiet_recording_tells_only_what_is_missing() {
    let (directory, _) = workshop();
    let script = "echo said; echo told >&2; dd if=/dev/zero of=out bs=1 count=60000 status=none";
    let told = |options: &[&str]| {
        let output = record(directory.path(), options, &["sh", "-c", script]);
        assert!(output.status.success() && output.stdout == b"said\n");
        said(&output)
    };
    assert_eq!(told(&["--quiet"]), "told\n");
    assert!(trace(directory.path()).events.len() > 60_000);
    let (summary, warnings) = (told(&[]), told(&["-q", "--spool-limit", "256k"]));
    assert!(summary.contains(" calls on "), "{summary}");
    assert!(warnings.contains("iolab: warning: events dropped"), "{warnings}");
    assert!(warnings.lines().skip(1).all(|line| line.contains("warning: ")), "{warnings}");
}
