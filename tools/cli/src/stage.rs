//! `iolab stage`: what runs have in a fast place, and what one that was killed left there.

use crate::failure::Failure;
use crate::say::number_of;
use clap::{Args, Subcommand};
use iolab_host::stage::{Found, Standing, found, recover};
use iolab_vocab::format_bytes;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Look after the files that `iolab run --apply stage:to=DIR` keeps in a fast place.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Tell which files lie in a fast place, and whether their run goes on.
    Status {
        /// The fast place, or the directory of a run in it.
        directory: PathBuf,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Move home what a run that was killed left in a fast place.
    ///
    /// A file that is another one now, or was written to since, is not touched: its copy stays, and is named.
    Recover {
        /// The fast place, or the directory of a run in it.
        directory: PathBuf,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.what {
        What::Status { directory, json } => status(directory, *json),
        What::Recover { directory } => recovered(directory),
    }
}

fn all(directory: &Path) -> Result<Vec<Found>, Failure> {
    found(directory).map_err(|error| {
        Failure::new(format!("{}: {error}", directory.display()))
            .hint("give the directory of `stage:to=DIR`, or the `iolab-stage-…` in it")
    })
}

fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::GoesOn => "its run goes on",
        Standing::Left => "its run has ended",
    }
}

fn status(directory: &Path, as_json: bool) -> Result<ExitCode, Failure> {
    let all = all(directory)?;
    if as_json {
        let file = |(path, bytes): &(PathBuf, u64)| json!({"path": path.to_string_lossy(), "bytes": bytes});
        let runs: Vec<_> = all
            .iter()
            .map(|found| {
                json!({
                    "directory": found.directory.to_string_lossy(),
                    "goes_on": found.standing == Standing::GoesOn,
                    "files": found.files.iter().map(file).collect::<Vec<_>>(),
                    "damaged_lines": found.damaged_lines,
                })
            })
            .collect();
        say_line!("{}", json!({ "runs": runs }));
        return Ok(ExitCode::SUCCESS);
    }
    if all.is_empty() {
        say_line!("{}: nothing lies there", directory.display());
    }
    for found in &all {
        let files = number_of(found.files.len() as u64, "file", "files");
        say_line!("{}: {}, {files}", found.directory.display(), word(found.standing));
        for (path, bytes) in &found.files {
            say_line!("  {}: {}", path.display(), format_bytes(*bytes));
        }
        if found.damaged_lines > 0 {
            say_line!(
                "  {} of the journal cannot be read",
                number_of(found.damaged_lines as u64, "line", "lines")
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn recovered(directory: &Path) -> Result<ExitCode, Failure> {
    let all = all(directory)?;
    let (mut moved, mut left, mut going) = (0, Vec::new(), 0);
    for found in &all {
        let failed = |error| Failure::new(format!("{}: {error}", found.directory.display()));
        match recover(&found.directory).map_err(failed)? {
            Some(recovered) => {
                moved += recovered.moved.len() as u64;
                left.extend(recovered.left);
            }
            None => {
                going += 1;
                eprintln!("iolab: {}: its run goes on, let be", found.directory.display());
            }
        }
    }
    if !left.is_empty() {
        let kept =
            "each named copy stays: mend that and try again, or copy it yourself, then remove it";
        let message = format!("not moved home:\n  {}", left.join("\n  "));
        eprintln!("iolab: {} moved home", number_of(moved, "file", "files"));
        return Err(Failure::new(message).hint(kept));
    }
    if moved == 0 && going == 0 {
        eprintln!("iolab: {}: nothing was left there", directory.display());
    } else {
        eprintln!("iolab: {} moved home", number_of(moved, "file", "files"));
    }
    Ok(ExitCode::SUCCESS)
}
