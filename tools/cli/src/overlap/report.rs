//! `iolab overlap report`: what one or several runs found, as text and as one picture.

use crate::failure::Failure;
use crate::output::Output;
use clap::Args;
use iolab_report::overlap::{OverlapOutcome, overlap_plot, overlap_text};
use std::path::{Path, PathBuf};

/// Show results of `iolab overlap` side by side, and how far they are from theory.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Result documents (`--output`).
    #[arg(required = true, value_name = "RESULT.json")]
    results: Vec<PathBuf>,
    /// Draw all of them in one picture.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let outcomes: Vec<OverlapOutcome> =
        arguments.results.iter().map(|path| load(path)).collect::<Result<_, _>>()?;
    for (path, outcome) in arguments.results.iter().zip(&outcomes) {
        let (ranks, kind) = (outcome.ranks, &outcome.communication);
        say_line!("{}: {ranks} ranks, {kind}", path.display());
        say!("{}", overlap_text(outcome));
    }
    match &arguments.plot {
        Some(path) => {
            let inputs: Vec<&Path> = arguments.results.iter().map(PathBuf::as_path).collect();
            Output::begin(path, "--plot", &inputs)?.write(overlap_plot(&outcomes).as_bytes())
        }
        None => Ok(()),
    }
}

fn load(path: &Path) -> Result<OverlapOutcome, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(format!("{}: {error}", path.display()))
            .hint("results are written by `iolab overlap --output RESULT.json`")
    };
    let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
    let outcome = OverlapOutcome::read(&text).map_err(|error| failed(&error))?;
    match (outcome.format.as_str(), outcome.format_version) {
        ("iolab-overlap", 1 | 2) => Ok(outcome),
        (format, version) => Err(failed(&format!("is {format} version {version}"))),
    }
}
