//! `iolab man`: the manual, one page per command, made from the commands themselves.

use crate::failure::Failure;
use crate::output::{Kind, Output};
use clap::{Args, Command};
use clap_mangen::Man;
use std::fs::create_dir_all;
use std::io::{IsTerminal, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode, Stdio};

/// Show the manual page of a command, or write all pages into a directory.
///
/// `iolab man`, `iolab man fs up`. On a terminal the page is shown by man(1); elsewhere its source is
/// printed. Packages of iolab install the pages.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The command, word by word; none for iolab itself.
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    command: Vec<String>,
    /// Write one page per command into this directory, which is made if need be.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, mut root: Command) -> Result<ExitCode, Failure> {
    // Names of pages (`iolab-fs-up`) come to be here.
    root.build();
    if let Some(directory) = &arguments.output {
        write_all(&root, directory)?;
        return Ok(ExitCode::SUCCESS);
    }
    let page = page(find(&root, &arguments.command)?)?;
    if !stdout().is_terminal() || !show(&page) {
        crate::say::text(&page)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn find<'a>(root: &'a Command, words: &[String]) -> Result<&'a Command, Failure> {
    words.iter().try_fold(root, |command, word| {
        command.find_subcommand(word).ok_or_else(|| {
            let name = command.get_bin_name().unwrap_or("iolab");
            let names: Vec<_> = shown_of(command).map(Command::get_name).collect();
            let failure = Failure::new(format!("`{name}` has no command `{word}`"));
            match names.is_empty() {
                true => failure.hint(format!("`{name}` has none; leave the word out")),
                false => failure.hint(format!("choose from {}", names.join(", "))),
            }
        })
    })
}

fn page(command: &Command) -> Result<String, Failure> {
    let mut page = Vec::new();
    Man::new(command.clone())
        .render(&mut page)
        .map_err(|error| Failure::new(format!("the page could not be made: {error}")))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// Lets man(1) show it; whether it could.
fn show(page: &str) -> bool {
    let man = process::Command::new("man").args(["-l", "-"]).stdin(Stdio::piped()).spawn();
    let Ok(mut man) = man else { return false };
    if let Some(mut input) = man.stdin.take() {
        // A reader that has seen enough closes it.
        let _ = input.write_all(page.as_bytes());
    }
    man.wait().is_ok_and(|status| status.success())
}

fn write_all(root: &Command, directory: &Path) -> Result<(), Failure> {
    create_dir_all(directory).map_err(|error| {
        Failure::new(format!("cannot make {}: {error}", directory.display()))
            .hint("choose another --output")
    })?;
    for command in with_all_below(root) {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name());
        let path = directory.join(format!("{name}.1"));
        let output = Output::unnamed(&path, "--output", Kind::Manual, &[]).map_err(|failure| {
            Failure::new(failure.message()).hint("move it away, or choose another --output")
        })?;
        output.write(page(command)?.as_bytes())?;
    }
    Ok(())
}

/// A command, and all that it has.
fn with_all_below(command: &Command) -> Vec<&Command> {
    std::iter::once(command).chain(shown_of(command).flat_map(with_all_below)).collect()
}

/// What a person calls: not what iolab calls itself, nor `help`, which clap adds.
fn shown_of(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help")
}
