//! The how-to about simulating the parallel file system: its transcripts are what the commands print, its
//! file is the sample.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/howto/simulate-the-file-system.md")).unwrap()
}

/// What a command of the page prints, wherever.
fn printed(command: &str) -> String {
    let arguments = command.split_whitespace().skip(1);
    let mut iolab = Command::new(env!("CARGO_BIN_EXE_iolab"));
    let output = iolab.args(arguments).current_dir(root()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8(text).unwrap()
}

#[test]
fn the_page_shows_what_its_commands_print() {
    let page = page();
    let mut count = 0;
    for block in page.split("```console\n").skip(1) {
        let shown = block.split("```").next().unwrap();
        let (command, expected) = shown.split_once('\n').unwrap();
        let printed = printed(command.strip_prefix("$ ").unwrap());
        let lines = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect();
        let (printed, expected): (Vec<String>, Vec<String>) = (lines(&printed), lines(expected));
        // What a page leaves out at the end is marked.
        match expected.split_last() {
            Some((mark, begin)) if mark == "…" => {
                assert_eq!(printed[..begin.len().min(printed.len())], *begin, "{command}");
            }
            _ => assert_eq!(printed, expected, "{command}"),
        }
        count += 1;
    }
    assert_eq!(count, 2);
}

#[test]
fn the_page_shows_the_sample_file() {
    let page = page();
    let shown = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let sample = root().join("samples/file-systems/scratch.toml");
    let sample = std::fs::read_to_string(sample).unwrap();
    let bare = |text: &str| -> Vec<String> {
        let bare = |line: &str| line.split('#').next().unwrap().trim().to_owned();
        text.lines().map(bare).filter(|line| !line.is_empty()).collect()
    };
    assert_eq!(bare(shown), bare(&sample));
}
