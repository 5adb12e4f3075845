//! `iolab bench report`: curves, what they say, a weighted score, a comparison.

use super::weights::weighted;
use crate::failure::Failure;
use crate::output::Output;
use clap::Args;
use iolab_report::bench::{
    FORMAT_VERSION, Outcome, compare, contradictions, curves, foreign, observations, page,
    summaries, summary_table,
};
use std::path::{Path, PathBuf};

/// Read results of `iolab bench --output` and say what they mean.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Result documents; also of IOR (JSON), mdtest, IO500 (result_summary.txt) and elbencho (CSV)
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// Write curves and findings as one HTML page.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Weigh the results by a profile (checkpoint, out-of-core, visualisation, climate,
    /// ai-training, database), by the mix of patterns of a recorded trace (RUN.iot), by the weights
    /// of the plan (plan), or a TOML file with `provenance` and `[[share]]` of phase, pattern,
    /// share and, if wanted, size.
    #[arg(long, value_name = "PROFILE|RUN.iot")]
    weights: Option<String>,
    /// Compare the second result with the first.
    #[arg(long)]
    compare: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let inputs: Vec<&Path> = arguments.results.iter().map(PathBuf::as_path).collect();
    let output = Output::begin_if(arguments.html.as_deref(), "--html", &inputs)?;
    let outcomes = different(&arguments.results)?;
    for (index, outcome) in outcomes.iter().enumerate() {
        let place = &outcome.surroundings;
        let number =
            if outcomes.len() > 1 { format!("result {}: ", index + 1) } else { String::new() };
        let path = arguments.results[index].display();
        // Results of other tools do not say all of it.
        let known = |text: &str, what: &str| match text {
            "" => format!("{what} unknown"),
            text => text.to_owned(),
        };
        say_line!(
            "{number}{path}: {} ranks on {} ({})",
            if outcome.ranks == 0 { "unknown".to_owned() } else { outcome.ranks.to_string() },
            known(&place.host, "host"),
            known(&place.file_system, "file system")
        );
        place.prices.iter().for_each(|prices| say_line!("{}", prices.sentence()));
    }
    say!("{}", summary_table(&summaries(&outcomes)));
    for wrong in contradictions(&outcomes) {
        say_line!("left out: {wrong}");
    }
    let observations = observations(&outcomes);
    say_line!("\nwhat this says");
    observations
        .iter()
        .for_each(|observation| say_line!("  {:<12} {}", observation.kind, observation.text));
    if observations.is_empty() {
        say_line!(
            "  nothing that chance does not explain as well: give more repetitions (-i 11 and up), --sizes, \
             re-read and re-write, several methods or numbers of ranks"
        );
    }
    if let Some(name) = &arguments.weights {
        say!("\n{}", weighted(name, &outcomes)?);
    }
    if arguments.compare {
        let [first, second] = &outcomes[..] else {
            return Err(Failure::new(format!(
                "--compare needs two different results, {} given",
                outcomes.len()
            ))
            .hint("iolab bench report --compare BEFORE.json AFTER.json"));
        };
        say!("\n{}", compare(first, second).text());
    }
    if let Some(output) = output {
        let page = page(&curves(&outcomes), &observations);
        output.write(page.as_bytes())?;
    }
    Ok(())
}

/// All results. A result given twice would count its repetitions twice.
fn different(paths: &[PathBuf]) -> Result<Vec<Outcome>, Failure> {
    let outcomes = paths.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    for (index, outcome) in outcomes.iter().enumerate() {
        if let Some(same) = outcomes[..index].iter().position(|other| other == outcome) {
            let (one, other) = (paths[same].display(), paths[index].display());
            return Err(Failure::new(format!("{one} and {other} are the same result"))
                .hint("its repetitions would count twice; give it once"));
        }
    }
    Ok(outcomes)
}

fn read(path: &Path) -> Result<Outcome, Failure> {
    let wrong = |why: &dyn std::fmt::Display| {
        Failure::new(format!("{} is not a result of iolab bench: {why}", path.display()))
            .hint(
                "`iolab bench … --output FILE` writes one; of other tools IOR's JSON (-O summaryFormat=JSON), the output of mdtest, \
                 the summary of IO500 and CSV of elbencho are read",
            )
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    if let Some(read) = foreign(&text) {
        let read = read.map_err(|why| {
            Failure::new(format!("{}: {why}", path.display()))
                .hint("it may be cut; the tool's own text output is only read for mdtest and IO500")
        })?;
        say_line!("{}: a result of {}", path.display(), read.source);
        read.notes.iter().for_each(|note| say_line!("  {note}"));
        return Ok(read.outcome);
    }
    let outcome: Outcome = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    match (outcome.format.as_str(), outcome.format_version) {
        ("iolab-bench", 1..=FORMAT_VERSION) => Ok(outcome),
        (format, version) => Err(wrong(&format!("it is {format} version {version}"))),
    }
}
