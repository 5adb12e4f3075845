//! Pages for newcomers: their commands, run in an empty directory, print what the page shows.
//!
//! In a transcript `[…]` stands for any text in a line, and alone for any lines.

mod built;

use std::path::Path;
use std::process::Command;

const ANY: &str = "[…]";

/// The blocks of a page in some language, without their fences.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    page.split(&*fence).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// Commands of a transcript with the lines they should print.
fn commands(transcript: &str) -> Vec<(&str, Vec<&str>)> {
    let mut commands: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in transcript.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command, Vec::new())),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => panic!("a transcript begins with a command, not with {line}"),
        }
    }
    commands
}

fn is_like(line: &str, wanted: &str) -> bool {
    let mut parts = wanted.split(ANY);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

fn are_like(lines: &[&str], wanted: &[&str]) -> bool {
    match wanted.split_first() {
        None => lines.is_empty(),
        Some((&ANY, rest)) => (0..=lines.len()).any(|skip| are_like(&lines[skip..], rest)),
        Some((first, rest)) => lines
            .split_first()
            .is_some_and(|(line, more)| is_like(line, first) && are_like(more, rest)),
    }
}

fn printed(directory: &Path, command: &str) -> String {
    let iolab = Path::new(env!("CARGO_BIN_EXE_iolab")).parent().unwrap();
    let path = format!("{}:{}", iolab.display(), std::env::var("PATH").unwrap());
    let run = Command::new("sh")
        .args(["-c", &format!("{command} 2>&1")])
        .current_dir(directory)
        .env("PATH", path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{command}: {text}");
    text
}

#[test]
fn the_first_five_minutes_go_as_the_page_says() {
    built::library();
    let page = include_str!("../../../docs/start/first-run.md");
    let directory = tempfile::tempdir().unwrap();
    let program = blocks(page, "python")[0];
    assert!(program.starts_with("# slow.py"));
    std::fs::write(directory.path().join("slow.py"), program).unwrap();
    let transcripts = blocks(page, "console");
    let all = transcripts.iter().flat_map(|transcript| commands(transcript));
    let mut count = 0;
    for (command, wanted) in all {
        let text = printed(directory.path(), command);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            are_like(&lines, &wanted),
            "$ {command}\n{text}\nis not like\n{}",
            wanted.join("\n")
        );
        count += 1;
    }
    assert_eq!(count, 5);
}

#[test]
fn a_transcript_that_says_something_else_is_found_out() {
    assert!(are_like(&["a 1 b", "c", "d"], &["a […] b", "[…]"]));
    assert!(are_like(&["d"], &["[…]", "d"]));
    assert!(!are_like(&["a 1 b", "c"], &["a […] b"]));
    assert!(!are_like(&["a 1 c"], &["a […] b"]));
    assert!(!are_like(&["x", "d"], &["d"]));
}
