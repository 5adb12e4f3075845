//! Runs that are ended from outside: they end within seconds, tell so, and leave no file.

use super::{iolab, launchers, told, under};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What should happen within a second or two may take longer on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A run that would take hours, once its file is there.
fn started(mut command: Command, file: &Path) -> Child {
    command.args(["bench", "-b", "64k", "-t", "4k", "-i", "1000000", "--no-sync"]);
    command.args(["-N", "3", "-o"]).arg(file).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    eventually("the run never wrote its file", || file.exists());
    child
}

fn eventually(otherwise: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{otherwise}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Ends the child and sees to it that nothing is left after a few seconds.
fn kill(pid: u32) {
    Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill");
}

fn children_of(parent: u32) -> Vec<u32> {
    let list = format!("/proc/{parent}/task/{parent}/children");
    let text = fs::read_to_string(list).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// The process below `parent` that a launcher gave this rank.
fn process_of_rank(parent: u32, rank: u32) -> Option<u32> {
    let wanted = [format!("PMI_RANK={rank}"), format!("OMPI_COMM_WORLD_RANK={rank}")];
    children_of(parent).into_iter().find_map(|child| {
        let environment = fs::read(format!("/proc/{child}/environ")).unwrap_or_default();
        let mut words = environment.split(|byte| *byte == 0);
        let found = words.any(|word| wanted.iter().any(|wanted| wanted.as_bytes() == word));
        if found { Some(child) } else { process_of_rank(child, rank) }
    })
}

fn ends_and_leaves_nothing(child: Child, file: &Path) -> String {
    let killed = Instant::now();
    let output = child.wait_with_output().expect("it ends");
    let said = told(&output);
    assert!(killed.elapsed() < Duration::from_secs(10), "{said}");
    assert!(!output.status.success(), "{said}");
    eventually(&format!("the file stays behind: {said}"), || !file.exists());
    said
}

#[test]
fn a_killed_local_rank_ends_the_run_within_seconds_and_the_file_is_removed() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("data");
    let child = started(iolab(), &file);
    eventually("two ranks were never forked", || children_of(child.id()).len() == 2);
    kill(children_of(child.id())[0]);
    let said = ends_and_leaves_nothing(child, &file);
    assert!(said.contains("rank") && said.contains("killed by signal 9"), "{said}");
}

#[test]
fn a_run_whose_first_process_is_killed_leaves_no_file() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("data");
    let child = started(iolab(), &file);
    kill(child.id());
    let said = ends_and_leaves_nothing(child, &file);
    assert!(said.contains("ended from outside"), "{said}");
}

#[test]
fn a_killed_rank_of_an_mpi_job_ends_the_job_and_the_file_is_removed() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("data");
    for launcher in launchers() {
        for rank in [0, 1] {
            let child = started(under(launcher, 2), &file);
            let victim = process_of_rank(child.id(), rank).expect("a process of that rank");
            kill(victim);
            let said = ends_and_leaves_nothing(child, &file);
            assert!(said.contains("ended from outside"), "{launcher}, rank {rank}: {said}");
        }
    }
}

/// Phases of an hour: whoever waits for the end of one waits long.
fn busy(mut command: Command, folder: &Path) -> Child {
    let plan = "[global]\nrepetitions = 1\nranks = 2\nsync = false\ncache = 'warm'\n\
        [[test]]\nname = 'short'\nspatial = 'strided:strip=4k,stripes=2'\ntemporal = 'write'\n\
        [[test]]\nname = 'long'\nspatial = 'database:limit=512,file=1m,count=1000000000'\n\
        temporal = 'write'\n";
    fs::write(folder.join("plan.toml"), plan).expect("a plan");
    command.args(["bench", "plan.toml", "--output", "result.json", "-o", "data"]);
    command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    let data = folder.join("data");
    // The long phase is under way.
    let long = || fs::metadata(&data).is_ok_and(|facts| facts.len() > 1 << 19);
    eventually("the second test never began", long);
    child
}

fn signal(kind: &str, pid: u32) {
    Command::new("kill").args([kind, &pid.to_string()]).status().expect("kill");
}

/// The result holds the first test and says that the second is missing; nothing else is left.
fn keeps_the_first_test(child: Child, folder: &Path, what: &str) -> String {
    let output = child.wait_with_output().expect("it ends");
    let said = told(&output);
    assert!(!output.status.success(), "{what}: {said}");
    let result = folder.join("result.json");
    eventually(&format!("{what}: no result: {said}"), || result.exists());
    eventually(&format!("{what}: the file stays: {said}"), || !folder.join("data").exists());
    let text = fs::read_to_string(&result).expect("a result");
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let measured = document["measurements"].as_array().expect("a list");
    assert!(measured.len() == 1 && measured[0]["test"] == "short", "{what}: {text}");
    let missing = document["incomplete"]["missing"].as_array().expect("a list");
    assert!(missing.len() == 1, "{what}: {missing:?}");
    assert!(missing[0].as_str().is_some_and(|one| one.starts_with("long")), "{what}: {missing:?}");
    assert!(document["incomplete"]["reason"].is_string());
    let names = || fs::read_dir(folder).expect("a folder").map(|entry| entry.unwrap().file_name());
    let left = || names().collect::<Vec<_>>();
    let deadline = Instant::now() + PATIENCE;
    while left().len() > 2 {
        assert!(Instant::now() < deadline, "{what}: {:?} are left: {said}", left());
        std::thread::sleep(Duration::from_millis(10));
    }
    fs::remove_file(result).expect("removed");
    said
}

#[test]
fn an_interrupted_run_keeps_what_it_measured_and_says_what_is_missing() {
    let folder = TempDir::new().expect("a folder");
    for (kind, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        // A shell in the background has its commands ignore interrupts, which they then should.
        let mut listening = Command::new("env");
        listening.arg("--default-signal=INT,TERM,HUP").arg(iolab().get_program());
        let mut child = busy(listening, folder.path());
        signal(kind, child.id());
        assert_eq!(child.wait().expect("it ends").code(), Some(code), "{kind}");
        let said = keeps_the_first_test(child, folder.path(), kind);
        assert!(said.contains("interrupted by SIG") && said.contains("not measured"), "{said}");
    }
}

#[test]
fn a_rank_or_the_first_process_killed_in_a_phase_ends_the_run_and_keeps_the_rest() {
    let folder = TempDir::new().expect("a folder");
    let child = busy(iolab(), folder.path());
    kill(children_of(child.id())[0]);
    let said = keeps_the_first_test(child, folder.path(), "rank 1");
    assert!(said.contains("rank 1 was killed by signal 9"), "{said}");
    let child = busy(iolab(), folder.path());
    kill(child.id());
    keeps_the_first_test(child, folder.path(), "rank 0");
}

#[test]
fn an_mpi_job_that_loses_a_rank_in_a_phase_or_is_interrupted_keeps_what_it_measured() {
    let folder = TempDir::new().expect("a folder");
    for launcher in launchers() {
        for rank in [0, 1] {
            let child = busy(under(launcher, 2), folder.path());
            kill(process_of_rank(child.id(), rank).expect("a process of that rank"));
            keeps_the_first_test(child, folder.path(), &format!("{launcher}, rank {rank}"));
        }
        launcher_is_ended(launcher, folder.path());
    }
}

fn launcher_is_ended(launcher: &str, folder: &Path) {
    let child = busy(under(launcher, 2), folder);
    signal("-TERM", child.id());
    keeps_the_first_test(child, folder, &format!("{launcher}, ended"));
}

#[test]
fn a_run_that_fails_in_its_second_test_keeps_the_first() {
    let folder = TempDir::new().expect("a folder");
    let plan = "[global]\nrepetitions = 1\nsync = false\n\
        [[test]]\nname = 'short'\nspatial = 'strided:strip=4k,stripes=2'\ntemporal = 'write'\n\
        [[test]]\nname = 'long'\nspatial = 'strided:strip=1g,stripes=1g'\ntemporal = 'write'\n";
    fs::write(folder.path().join("plan.toml"), plan).expect("a plan");
    let mut command = iolab();
    command.args(["bench", "plan.toml", "--output", "result.json", "-o", "data", "-N", "2"]);
    command.current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let said = keeps_the_first_test(command.spawn().expect("it starts"), folder.path(), "failing");
    assert!(said.contains("has room for") && said.contains("not measured"), "{said}");
}
