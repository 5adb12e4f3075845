//! `iolab compare`: two runs, or several of each, held against each other.

use crate::failure::Failure;
use crate::output::Output;
use crate::{say, trace_file};
use clap::Args;
use iolab_report::compare::{Run, compare};
use iolab_trace::Trace;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Find what differs between two runs: calls that vanished, came, were merged or split, and where
/// the time went.
///
/// Calls of the same process are matched by what they do, not by when. Recorded, simulated and
/// imported traces may be compared with each other. With several runs of each side a difference in
/// time is named only where chance does not explain it.
#[derive(Args)]
pub(crate) struct Arguments {
    /// A and B; with --with, all runs of A
    #[arg(required = true, value_name = "RUN.iot")]
    traces: Vec<PathBuf>,
    /// Runs of B, for as many runs of A as are given before
    #[arg(long, value_name = "RUN.iot", num_args = 1..)]
    with: Vec<PathBuf>,
    /// Print everything as one JSON document (docs/format/compare.md)
    #[arg(long)]
    json: bool,
    /// Also write a page: the differences and both timelines, also with B stretched onto A
    #[arg(short, long, value_name = "PAGE.html")]
    output: Option<PathBuf>,
    /// End with exit code 3 if B takes longer than A by more than this share, for example 5%; with several runs of each
    /// only where chance does not explain that
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_above: Option<f64>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (of_a, of_b) = sides(arguments)?;
    let inputs: Vec<&Path> = of_a.iter().chain(of_b).map(PathBuf::as_path).collect();
    let output = Output::begin_if(arguments.output.as_deref(), "-o PAGE.html", &inputs)?;
    let load = |paths: &[PathBuf]| -> Result<Vec<Trace>, Failure> {
        paths.iter().map(|path| trace_file::load(path)).collect()
    };
    let (traces_a, traces_b) = (load(of_a)?, load(of_b)?);
    let (a, b) = (runs(of_a, &traces_a), runs(of_b, &traces_b));
    let comparison = compare(&a, &b);
    if let Some(output) = output {
        let path = output.path().to_owned();
        output.write(&comparison.page(&a[0], &b[0]))?;
        if path != Path::new("-") {
            eprintln!("wrote {}", path.display());
        }
    }
    say::text(&match arguments.json {
        true => serde_json::to_string_pretty(&comparison).map_err(Failure::new)? + "\n",
        false => comparison.text(),
    })?;
    let more = 100.0 * comparison.slower_by();
    match arguments.fail_above {
        Some(limit) if more > limit && comparison.run_ratio_is_by_chance == Some(true) => {
            eprintln!(
                "note: B takes {more:.1} % longer than A, which chance may explain: no failure"
            );
            Ok(ExitCode::SUCCESS)
        }
        Some(limit) if more > limit => {
            let message = format!("B takes {more:.1} % longer than A, the limit is {limit} %");
            Err(Failure::new(message).code(3))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn runs<'a>(paths: &[PathBuf], traces: &'a [Trace]) -> Vec<Run<'a>> {
    let named =
        |(path, trace): (&PathBuf, &'a Trace)| Run { name: path.display().to_string(), trace };
    paths.iter().zip(traces).map(named).collect()
}

/// The runs of both sides, each given once.
fn sides(arguments: &Arguments) -> Result<(&[PathBuf], &[PathBuf]), Failure> {
    let usage = |message: String| {
        Err(Failure::new(message)
            .hint("iolab compare A.iot B.iot, or iolab compare A1.iot A2.iot --with B1.iot B2.iot")
            .code(2))
    };
    let sides = match (arguments.traces.as_slice(), arguments.with.as_slice()) {
        ([a, b], []) => (std::slice::from_ref(a), std::slice::from_ref(b)),
        ([one], []) => return usage(format!("nothing to compare {} with", one.display())),
        (all, []) => {
            return usage(format!("{} runs, and none of them after --with", all.len()));
        }
        (of_a, of_b) => (of_a, of_b),
    };
    let all: Vec<&PathBuf> = sides.0.iter().chain(sides.1).collect();
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    for (at, path) in all.iter().enumerate().filter(|_| all.len() > 2) {
        if all[..at].iter().any(|other| real(other) == real(path)) {
            return usage(format!("{} is given twice: a run counts once", path.display()));
        }
    }
    Ok(sides)
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(limit) if limit.is_finite() && limit >= 0.0 => Ok(limit),
        _ => Err("a share is a number of per cent, for example 5%".to_owned()),
    }
}
