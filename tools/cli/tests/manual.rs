//! The manual and the completion of shells are made from the commands: nothing is missing there, and
//! nothing that was not ours is written over.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn iolab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iolab")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The commands that the help of a command lists.
fn listed(words: &[&str]) -> Vec<String> {
    let help = text(&iolab(&[words, &["--help"]].concat()).stdout);
    let Some((_, list)) = help.split_once("\nCommands:\n") else { return Vec::new() };
    let rows = list.lines().take_while(|line| !line.is_empty());
    let names = rows.filter(|row| row.starts_with("  ") && !row.starts_with("   "));
    names
        .filter_map(|row| row.split_whitespace().next())
        .filter(|&it| it != "help")
        .map(str::to_owned)
        .collect()
}

fn pages_expected() -> BTreeSet<String> {
    let mut pages = BTreeSet::from(["iolab.1".to_owned()]);
    for command in listed(&[]) {
        pages.insert(format!("iolab-{command}.1"));
        for below in listed(&[&command]) {
            pages.insert(format!("iolab-{command}-{below}.1"));
        }
    }
    pages
}

fn in_directory(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn every_command_that_help_lists_has_a_page() {
    let place = tempfile::tempdir().unwrap();
    let pages = place.path().join("share/man/man1");
    let directory = pages.to_str().unwrap();
    assert!(iolab(&["man", "-o", directory]).status.success());
    let expected = pages_expected();
    assert!(expected.contains("iolab-fs-up.1") && expected.len() > 30, "{expected:?}");
    assert_eq!(in_directory(&pages), expected);
    // The same again: pages of an older version are replaced.
    assert!(iolab(&["man", "-o", directory]).status.success());
    let page = fs::read_to_string(pages.join("iolab-fs-up.1")).unwrap();
    assert_eq!(page, text(&iolab(&["man", "fs", "up"]).stdout));
    assert!(page.contains(".TH iolab-fs-up 1") && page.contains("\\-\\-servers"), "{page}");
}

#[test]
fn a_page_is_not_written_over_what_is_none() {
    let place = tempfile::tempdir().unwrap();
    let mine = place.path().join("iolab-run.1");
    fs::write(&mine, "my notes\n").unwrap();
    let output = iolab(&["man", "--output", place.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let words = text(&output.stderr);
    assert!(words.contains("iolab-run.1 exists") && words.contains("move it away"), "{words}");
    assert_eq!(fs::read_to_string(&mine).unwrap(), "my notes\n");
}

#[test]
fn a_page_of_no_command_is_an_error_that_lists_those_there_are() {
    let output = iolab(&["man", "fs", "upp"]);
    assert_eq!(output.status.code(), Some(1));
    let words = text(&output.stderr);
    assert!(words.contains("`iolab fs` has no command `upp`"), "{words}");
    assert!(words.contains("choose from up, run, stop"), "{words}");
    let output = iolab(&["man", "run", "fast"]);
    assert!(text(&output.stderr).contains("`iolab run` has none"), "{output:?}");
}

#[test]
fn bash_completes_commands_and_options() {
    let script = text(&iolab(&["completion", "bash"]).stdout);
    let asked = |words: &str, last: usize| {
        let ask = format!(
            "{script}\nCOMP_WORDS=({words}); COMP_CWORD={last}\n\
             _iolab iolab \"${{COMP_WORDS[$COMP_CWORD]}}\" \"${{COMP_WORDS[$COMP_CWORD-1]}}\"\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
        );
        let mut bash = Command::new("bash")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bash is there");
        bash.stdin.take().unwrap().write_all(ask.as_bytes()).unwrap();
        text(&bash.wait_with_output().unwrap().stdout)
    };
    assert!(asked("iolab re", 1).contains("reproduce"));
    assert!(asked("iolab run --ap", 2).contains("--apply"));
    assert!(asked("iolab completion z", 2).contains("zsh"));
}
