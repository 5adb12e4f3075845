//! What is kept when things end badly: the guest killed at any moment, the launcher killed, the
//! spool full.

use crate::{guest, iolab, name_of, record, trace, workshop};
use iolab_trace::{Event, Function, Trace};
use iolab_vocab::{Random, Seed};
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

const LINE: usize = 64;

/// Completed calls by thread, as the guest counted them.
fn counts(file: &Path) -> Vec<u64> {
    let bytes = fs::read(file).unwrap();
    bytes.chunks(LINE).map(|line| u64::from_le_bytes(line[..8].try_into().unwrap())).collect()
}

/// `pwrite` events by thread of the trace, in no particular order.
fn recorded(trace: &Trace) -> Vec<u64> {
    let mut by_thread = std::collections::BTreeMap::new();
    let data = |event: &&iolab_trace::Event| {
        event.function == Function::PWRITE
            && event.file.index().is_some_and(|at| name_of(&trace.header.files[at].path) == "data")
    };
    for event in trace.events.iter().filter(data) {
        *by_thread.entry((event.process, event.thread)).or_insert(0) += 1;
    }
    by_thread.into_values().collect()
}

fn start_counter(directory: &Path, threads: &str, options: &[&str]) -> Child {
    let program = directory.join("counter");
    fs::write(directory.join("counts"), vec![0; 16 * LINE]).unwrap();
    let mut command = iolab();
    command.args(["record", "-o", "run.iot"]).args(options).arg("--").arg(program);
    command.args(["counts", "data", threads]).current_dir(directory);
    command.stderr(Stdio::null()).spawn().unwrap()
}

/// Waits until the guest writes, then the given time more.
fn wait_for_writes(directory: &Path, more: Duration) {
    while counts(&directory.join("counts"))[0] == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(more);
}

fn guest_of(launcher: &Child) -> i32 {
    let path = format!("/proc/{0}/task/{0}/children", launcher.id());
    fs::read_to_string(path).unwrap().trim().parse().expect("one child")
}

fn kill(pid: i32) {
    let status = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(status.unwrap().success());
}

/// Every call the guest knows to be complete is in the trace, thread by thread. At most one more
/// per thread may be there: completed, but not counted yet.
fn assert_complete(trace: &Trace, directory: &Path) {
    let mut counted: Vec<_> =
        counts(&directory.join("counts")).into_iter().filter(|&count| count > 0).collect();
    let mut found = recorded(trace);
    // The most first: a thread whose only call is not counted yet stands at the end.
    counted.sort_unstable_by(|one, other| other.cmp(one));
    found.sort_unstable_by(|one, other| other.cmp(one));
    for (index, found) in found.iter().enumerate() {
        let counted = counted.get(index).copied().unwrap_or(0);
        assert!((counted..=counted + 1).contains(found), "{counted} counted, {found} recorded");
    }
    assert!(found.len() >= counted.len(), "{counted:?} counted, {found:?} recorded");
    assert!(trace.header.losses.lost_calls.is_empty(), "{:?}", trace.header.losses);
}

#[test]
fn a_guest_killed_at_200_random_moments_loses_no_completed_call() {
    let (directory, _) = workshop();
    guest("counter", directory.path());
    let mut random = Random::new(Seed(7));
    for round in 0..200 {
        let threads = if round % 4 == 0 { "4" } else { "1" };
        let mut launcher = start_counter(directory.path(), threads, &[]);
        wait_for_writes(directory.path(), Duration::from_micros(random.below(20_000)));
        kill(guest_of(&launcher));
        let status = launcher.wait().unwrap();
        assert_eq!(status.code(), Some(128 + 9));
        assert_complete(&trace(directory.path()), directory.path());
    }
}

#[test]
fn a_killed_launcher_loses_nothing_either_and_recover_makes_the_trace() {
    let (directory, _) = workshop();
    guest("counter", directory.path());
    let spool = directory.path().join("spool");
    fs::create_dir(&spool).unwrap();
    for round in 0..5 {
        let options = ["--spool", "spool"];
        let mut launcher = start_counter(directory.path(), "2", &options);
        wait_for_writes(directory.path(), Duration::from_millis(5 + 9 * round));
        let guest = guest_of(&launcher);
        launcher.kill().unwrap();
        launcher.wait().unwrap();
        // The guest goes on without anybody draining.
        std::thread::sleep(Duration::from_millis(30));
        kill(guest);
        std::thread::sleep(Duration::from_millis(30));
        let left = fs::read_dir(&spool).unwrap().next().expect("a spool directory").unwrap().path();
        let mut recover = iolab();
        recover.arg("recover").arg(&left).args(["-o", "run.iot"]).current_dir(directory.path());
        assert!(recover.output().unwrap().status.success());
        assert_complete(&trace(directory.path()), directory.path());
        fs::remove_dir_all(left).unwrap();
    }
}

#[test]
fn at_the_spool_limit_the_head_is_kept_and_the_rest_counted() {
    let (directory, _) = workshop();
    let words = ["dd", "if=/dev/zero", "of=out", "bs=64", "count=60000"];
    let output = record(directory.path(), &["--spool-limit", "256k"], &words);
    assert!(output.status.success());
    let trace = trace(directory.path());
    let kept = trace.events.iter().filter(|event| event.function == Function::WRITE).count() as u64;
    let lost: u64 = trace.header.losses.lost_calls.values().sum();
    assert!(kept > 1000 && kept < 60_000, "{kept}");
    assert!(kept + lost >= 60_000, "{kept} kept, {lost} lost");
    let first = trace.events.iter().find(|event| event.function == Function::WRITE).unwrap();
    assert_eq!(first.offset, 0);
    assert!(String::from_utf8_lossy(&output.stderr).contains("events dropped: spool limit"));
}

#[test]
fn calls_that_find_no_room_are_counted_once_with_their_names() {
    let (directory, _) = workshop();
    let program = "import os\nfor n in range(30000): os.path.exists(f'none-{n}')";
    let words = ["python3", "-S", "-c", program];
    let calls = |options: &[&str]| {
        assert!(record(directory.path(), options, &words).status.success());
        let trace = trace(directory.path());
        let named = |event: &&Event| event.function == Function::INHERITED;
        let notes = trace.events.iter().filter(named).count();
        (trace.events.len() - notes, trace.header.losses.lost_calls.values().sum::<u64>() as usize)
    };
    let (all, none_lost) = calls(&[]);
    assert!(all > 30_000 && none_lost == 0, "{all} recorded, {none_lost} lost");
    let (kept, lost) = calls(&["--spool-limit", "256k"]);
    assert!(lost > 10_000, "{lost} lost");
    // The shell's wrappers of Python, where there are any, do not always make equally many.
    assert!((kept + lost).abs_diff(all) < 100, "{kept} kept, {lost} lost of {all}");
}

#[test]
fn a_ring_keeps_the_last_calls_and_counts_those_it_overwrote() {
    let (directory, _) = workshop();
    let words = ["dd", "if=/dev/zero", "of=out", "bs=64", "count=60000"];
    let options = ["--spool-limit", "512k", "--when-full", "ring"];
    assert!(record(directory.path(), &options, &words).status.success());
    let trace = trace(directory.path());
    let kept = trace.events.iter().filter(|event| event.function == Function::WRITE).count() as u64;
    let lost = trace.header.losses.lost_calls["overwritten by newer calls (ring)"];
    assert!(kept > 1000 && kept + lost >= 60_000, "{kept} kept, {lost} lost");
    assert!(trace.events.iter().any(|event| event.function == Function::CLOSE), "the end is kept");
    let names: Vec<_> = trace.header.files.iter().map(|file| name_of(&file.path)).collect();
    assert!(names.contains(&"out"), "files keep their names: {names:?}");
}
