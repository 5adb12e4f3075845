//! `iolab overlap report`: what one or several runs found, as text and as one picture.

use crate::failure::Failure;
use crate::output::Output;
use clap::Args;
use iolab_bench::{Found, OverlapOutcome, overlap_plot, overlap_summary_row};
use iolab_report::overlap::{overlap_summaries, overlap_verdicts};
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
        say!("{}", summary(outcome));
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
    let outcome: OverlapOutcome = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    match (outcome.format.as_str(), outcome.format_version) {
        ("iolab-overlap", 1 | 2) => Ok(outcome),
        (format, version) => Err(failed(&format!("is {format} version {version}"))),
    }
}

/// Every ratio in a sentence, the distance from theory, and what others found.
pub(super) fn summary(outcome: &OverlapOutcome) -> String {
    let mut text = String::new();
    // Made anew: those of documents of version 1 have intervals that mean less than they say.
    let summaries = overlap_summaries(&outcome.points);
    let verdicts = overlap_verdicts(&outcome.points, &summaries);
    for (summary, verdict) in summaries.iter().zip(verdicts) {
        text += &overlap_summary_row(&told_apart(outcome, summary.case), summary, verdict);
        text.push('\n');
    }
    for index in 0..outcome.cases.len() {
        let found = summaries.iter().filter(|summary| summary.case == index);
        let off = found.filter_map(|summary| summary.found.as_ref()).map(|f: &Found| f.off_theory);
        if let Some(worst) = off.max_by(|a, b| a.abs().total_cmp(&b.abs())) {
            let title = told_apart(outcome, index);
            text += &format!("{title}: farthest from theory by {:+.1} %\n", worst * 100.0);
        }
    }
    if outcome.points.iter().any(|p| p.wanted == 1.0 && p.compute_over_io.is_some()) {
        let reference = &outcome.reference;
        text += &format!(
            "published at equality: {} to {} ({}; {})\n",
            reference.ratios.low, reference.ratios.high, reference.settings, reference.source
        );
    }
    text
}

/// The title of a case; with its pattern and its test where another case has the same.
fn told_apart(outcome: &OverlapOutcome, case: usize) -> String {
    let own = &outcome.cases[case];
    let alike = outcome.cases.iter().filter(|other| other.title == own.title).count();
    match alike {
        1 => own.title.clone(),
        _ => format!("{} [{}, {}]", own.title, own.spatial, own.test),
    }
}
