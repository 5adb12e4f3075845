//! Runs that are ended from outside: they end within seconds, tell so, and leave no file.

use super::{iolab, launchers, told, under};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

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
        assert!(start.elapsed() < Duration::from_secs(30), "{otherwise}");
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
