//! What must hold when things go wrong: a kill at any instant, a full disk.

use super::bench::{guest, iolab, run_place};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const RECORD_BYTES: usize = 64;

/// From when the time until a kill counts.
#[derive(PartialEq)]
enum From {
    Start,
    /// The guest's first line: however busy the machine is, something was promised.
    FirstLine,
}

/// Runs the guest under write-back, kills it `microseconds` later, returns what it had told.
fn told_until_killed(program: &Path, folder: &Path, from: From, microseconds: u64) -> String {
    let mut child = iolab()
        .args(["run", "--apply", "write-back", "--"])
        .arg(program)
        .arg(folder)
        .env("IOLAB_RUN_PLACE", folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut told = String::new();
    if from == From::FirstLine {
        stdout.read_line(&mut told).unwrap();
    }
    sleep(Duration::from_micros(microseconds));
    child.kill().unwrap();
    stdout.read_to_string(&mut told).unwrap();
    child.wait().unwrap();
    told
}

fn check_synced(folder: &Path, records: usize) {
    let bytes = fs::read(folder.join("synced")).unwrap();
    assert!(bytes.len() >= records * RECORD_BYTES, "{records} synced, {} bytes", bytes.len());
    for (index, record) in bytes.chunks_exact(RECORD_BYTES).take(records).enumerate() {
        let first = i64::from_ne_bytes(record[..8].try_into().unwrap());
        let last = i64::from_ne_bytes(record[56..].try_into().unwrap());
        assert_eq!((first, last), (index as i64, 19 * index as i64));
    }
}

fn check_closed(folder: &Path, number: &str) {
    let name = format!("closed.{number}");
    assert_eq!(fs::read_to_string(folder.join(&name)).unwrap(), name.repeat(50));
}

#[test]
fn killed_at_200_instants_nothing_synced_or_closed_is_lost() {
    let (program, mut told_count) = (guest("checkpoints"), 0);
    for instant in 0..200u64 {
        let folder = tempfile::tempdir().unwrap();
        let from = if instant % 5 == 0 { From::Start } else { From::FirstLine };
        let told = told_until_killed(&program, folder.path(), from, instant * instant % 9_973 * 5);
        for line in told.lines().filter(|line| told.contains(&format!("{line}\n"))) {
            match line.split_once(' ') {
                Some(("synced", count)) => check_synced(folder.path(), count.parse().unwrap()),
                Some(("closed", number)) => check_closed(folder.path(), number),
                _ => panic!("the guest says `{line}`"),
            }
            told_count += 1;
        }
    }
    assert!(told_count >= 160, "the guest was killed before it promised anything: {told_count}");
}

/// Kills a launcher whose program has said its number in a line, and waits until that has ended, too:
/// its output is closed before the rest of it is.
fn kill_with_its_program(mut launcher: Child) {
    let mut stdout = BufReader::new(launcher.stdout.take().unwrap());
    let mut number = String::new();
    stdout.read_line(&mut number).unwrap();
    launcher.kill().unwrap();
    stdout.read_to_string(&mut String::new()).unwrap();
    launcher.wait().unwrap();
    let stat = format!("/proc/{}/stat", number.trim());
    let is_running = || {
        let text = fs::read_to_string(&stat).unwrap_or_default();
        text.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    };
    while is_running() {
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_program_ends_with_its_launcher_and_what_it_held_is_named_and_recovered() {
    let place = run_place();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f");
    let run = |script: &str| {
        let mut command = iolab();
        command.args(["run", "--apply", "write-back:buffer=1m", "--", "python3", "-c", script]);
        command.env("IOLAB_RUN_PLACE", place.path()).env("OUT", &file);
        command
    };
    let script = "import os, time
fd = os.open(os.environ['OUT'], os.O_CREAT | os.O_WRONLY)
for i in range(500): os.write(fd, b'a record\\n')
print(os.getpid(), flush=True)
time.sleep(1000)";
    kill_with_its_program(run(script).stdout(Stdio::piped()).spawn().unwrap());
    let directories = || fs::read_dir(place.path()).unwrap().map(|it| it.unwrap().path());
    let left = directories().next().unwrap();
    let next = run("pass").output().unwrap();
    let errors = String::from_utf8_lossy(&next.stderr);
    assert!(errors.contains(&format!("iolab recover {}", left.display())), "{errors}");
    assert!(iolab().arg("recover").arg(&left).status().unwrap().success());
    assert_eq!(fs::read_to_string(&file).unwrap(), "a record\n".repeat(500));
    assert_eq!(directories().count(), 0);
}

#[test]
fn a_killed_run_that_held_nothing_is_removed_by_the_next() {
    let place = run_place();
    let mut command = iolab();
    command.args(["run", "--apply", "write-back", "--", "sh", "-c", "echo $$; exec sleep 1000"]);
    command.env("IOLAB_RUN_PLACE", place.path());
    kill_with_its_program(command.stdout(Stdio::piped()).spawn().unwrap());
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    let mut next = iolab();
    next.args(["run", "--quiet", "--apply", "write-back", "--", "true"]);
    let output = next.env("IOLAB_RUN_PLACE", place.path()).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

/// Runs a script in a mount name space of its own, where it may mount a small file system.
fn in_own_mounts(script: &str) -> String {
    let output = Command::new("unshare")
        .args(["--mount", "--map-root-user", "bash", "-c", script])
        .output()
        .expect("`unshare` is missing: apt-get install util-linux");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{text}{errors}\n(needs user name spaces or root)");
    text
}

#[test]
fn a_full_disk_is_told_of_at_a_write_a_sync_or_the_close() {
    let folder = tempfile::tempdir().unwrap();
    let (guest, iolab) = (guest("full_disk"), env!("CARGO_BIN_EXE_iolab"));
    for strategy in ["write-back", "write-back:buffer=1k", "write-back:buffer=16m", "seek-elide"] {
        let script = format!(
            "mount -t tmpfs -o size=256k none {0} && cd {0} && {iolab} run --apply {strategy} -- {1} f && stat -c %s f",
            folder.path().display(),
            guest.display()
        );
        let told = in_own_mounts(&script);
        assert!(told.contains("errno 28") && told.contains("told"), "{strategy}: {told}");
        assert!(!told.contains("not told"), "{strategy}: {told}");
        let bytes: u64 = told.lines().last().unwrap().parse().unwrap();
        assert!(
            bytes > 200_000,
            "{strategy}: only {bytes} bytes went out before the disk was full"
        );
    }
}

#[test]
fn a_bad_strategy_is_named_before_the_program_runs() {
    for (strategy, offender) in [("write-bakc", "write-bakc"), ("write-back:bufer=1m", "bufer")] {
        let output = iolab()
            .args(["run", "--apply", strategy, "--", "touch", "/nowhere/f"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(offender), "{text}");
        assert!(text.contains("hint:") && !text.contains("touch"), "{text}");
    }
}

#[test]
fn a_missing_command_is_named() {
    let output =
        iolab().args(["run", "--apply", "null", "--", "no-such-program"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("no-such-program"), "{text}");
}

#[test]
fn what_strategies_decided_can_be_written_down_beside_what_the_program_did() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let program = "import os
fd = os.open(os.environ['OUT'], os.O_CREAT | os.O_WRONLY)
for i in range(500): os.write(fd, b'a record\\n')
os.close(fd)";
    let output = iolab()
        .args(["run", "--apply", "write-back:paths=out", "--record"])
        .arg(path("run.iot"))
        .arg("--decisions")
        .arg(path("decisions.iot"))
        .args(["--", "python3", "-c", program])
        .env("OUT", path("out"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(fs::read_to_string(path("out")).unwrap(), "a record\n".repeat(500));
    // 500 copies, one write, an open and a close with their answers.
    let calls = |name: &str| -> u64 {
        let line = errors.lines().find(|line| line.contains(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    assert_eq!(calls("decisions.iot"), 500 * 2 + 1 + 2 + 2, "{errors}");
    assert!(calls("run.iot") >= 502, "{errors}");
}

#[test]
fn slow_storage_stays_slow_whatever_signals_come() {
    let folder = tempfile::tempdir().unwrap();
    let script = "import os, signal, time
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
fd = os.open(os.environ['OUT'], os.O_CREAT | os.O_WRONLY)
start = time.monotonic()
for _ in range(20): os.write(fd, b'x' * 1000)
took = time.monotonic() - start
signal.setitimer(signal.ITIMER_REAL, 0)
print('slow' if took >= 0.2 else took)";
    let mut command = iolab();
    command.args(["run", "--apply", "throttle:latency=10ms", "--", "python3", "-c", script]);
    let output = command.env("OUT", folder.path().join("f")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "slow\n");
}
