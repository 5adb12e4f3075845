//! What the library adds to a process is counted in system calls, so that it cannot grow unseen: their
//! number is the same on every machine, however busy.

use super::bench::{guest, iolab};
use std::path::Path;
use std::process::Command;

/// Of the start of a program: the loader's to have the library (10), those of the library (7, one of them for
/// the limit of files' size), and those by which it finds what the run counts.
const START_MAX: i64 = 25;

/// The number that the guest prints under a strategy for files of that name, or bare: the least of some, since a call
/// that the system interrupts and begins again counts twice.
fn counted(chosen: Option<&str>, program: &Path, command: &[&str]) -> i64 {
    (0..3).map(|_| counted_once(chosen, program, command)).min().unwrap()
}

fn counted_once(chosen: Option<&str>, program: &Path, command: &[&str]) -> i64 {
    let mut counts = match chosen {
        Some(name) => {
            let mut iolab = iolab();
            iolab.args(["run", "--apply", &format!("null:paths={name}"), "--"]).arg(program);
            iolab
        }
        None => Command::new(program),
    };
    let output = counts.args(command).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

#[test]
fn the_start_of_a_program_takes_few_calls_more() {
    let program = guest("system_calls");
    let count = |chosen| counted(chosen, &program, &["/bin/true"]);
    let (bare, under) = (count(None), count(Some("*.chosen")));
    assert!(under > bare, "{under} calls, {bare} bare: the library was not there");
    assert!(under - bare <= START_MAX, "{under} calls, {bare} bare");
}

#[test]
fn an_open_and_a_close_take_few_calls_more() {
    let program = guest("system_calls");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.chosen");
    std::fs::write(&file, "").unwrap();
    let (this, file) = (program.to_str().unwrap(), file.to_str().unwrap());
    let each = |chosen| {
        let count = |times| counted(chosen, &program, &[this, "opens", times, file]);
        let (few, many) = (count("10"), count("30"));
        (many - few) / 20
    };
    let bare = each(None);
    assert_eq!(bare, 2);
    // Who asks, what was opened, and whether its name is a link.
    assert_eq!(each(Some("*.other")) - bare, 3);
    // Who asks, what was opened, the room on the stack, signals off and on, the name, and the stage's own
    // descriptor: two more for it where the limit of descriptors can be raised.
    let chosen = each(Some("*.chosen")) - bare;
    assert!((4..=16).contains(&chosen), "{chosen} calls more");
}
