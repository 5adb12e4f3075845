//! `iolab bench report`: curves, what they say, a weighted score, a comparison.

use super::weights::weighted;
use crate::failure::Failure;
use crate::output::Output;
use clap::Args;
use iolab_bench::{Comparison, Curve, Insight, Outcome, compare, curves, insights, summary_table};
use iolab_report::chart::{Axis, Chart, Mark, STYLE, Series, Unit};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Read results of `iolab bench --output` and say what they mean.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Result documents.
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
    let outcomes =
        arguments.results.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    for (outcome, path) in outcomes.iter().zip(&arguments.results) {
        let place = &outcome.surroundings;
        say_line!(
            "{}: {} ranks on {} ({})",
            path.display(),
            outcome.ranks,
            place.host,
            place.file_system
        );
        say!("{}", summary_table(&outcome.summaries));
    }
    let insights = insights(&outcomes);
    say_line!("\nwhat this says");
    insights.iter().for_each(|insight| say_line!("  {:<12} {}", insight.kind, insight.text));
    if insights.is_empty() {
        say_line!(
            "  nothing: give --sizes, re-read and re-write, several methods or numbers of ranks"
        );
    }
    if let Some(name) = &arguments.weights {
        say!("\n{}", weighted(name, &outcomes)?);
    }
    if arguments.compare {
        let [first, second] = &outcomes[..] else {
            return Err(Failure::new(format!(
                "--compare needs two results, {} given",
                outcomes.len()
            ))
            .hint("iolab bench report --compare BEFORE.json AFTER.json"));
        };
        say!("\n{}", comparison_table(&compare(first, second)));
    }
    if let Some(output) = output {
        let page = page(&curves(&outcomes), &insights);
        output.write(page.as_bytes())?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<Outcome, Failure> {
    let wrong = |why: &dyn std::fmt::Display| {
        Failure::new(format!("{} is not a result of iolab bench: {why}", path.display()))
            .hint("`iolab bench … --output FILE` writes one")
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let outcome: Outcome = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    match (outcome.format.as_str(), outcome.format_version) {
        ("iolab-bench", 1) => Ok(outcome),
        (format, version) => Err(wrong(&format!("it is {format} version {version}"))),
    }
}

fn comparison_table(lines: &[Comparison]) -> String {
    let mut text = "second over first\n".to_owned();
    for line in lines {
        let Comparison { what, ratio, interval, verdict } = line;
        let _ = writeln!(
            text,
            "  {ratio:>6.2} ({:.2} to {:.2})  {verdict:<20} {what}",
            interval.low, interval.high
        );
    }
    text
}

fn page(curves: &[Curve], insights: &[Insight]) -> String {
    let mut groups: Vec<(&str, &str)> = Vec::new();
    for curve in curves {
        if !groups.contains(&(&curve.pattern, &curve.phase)) {
            groups.push((&curve.pattern, &curve.phase));
        }
    }
    let figures: String = groups.iter().map(|group| chart(*group, curves).figure()).collect();
    let said: String = insights
        .iter()
        .map(|i| {
            format!(
                "<li><b>{}</b> {}</li>\n",
                i.kind,
                i.text.replace('&', "&amp;").replace('<', "&lt;")
            )
        })
        .collect();
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>iolab bench</title>\
         <style>body{{font:15px sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}}{STYLE}</style>\n\
         <h1>Benchmark</h1>\n<h2>What the results say</h2><ul>\n{said}</ul>\n\
         <h2>Throughput by size</h2>\n{figures}</html>\n"
    )
}

fn chart((pattern, phase): (&str, &str), curves: &[Curve]) -> Chart {
    let x = Axis::log2("size", Unit::Bytes);
    let y = Axis::linear("throughput", Unit::BytesPerSecond);
    let mebi = f64::from(1 << 20);
    let mut chart = Chart::new(format!("{phase} of {pattern}"), x, y);
    for curve in curves.iter().filter(|c| c.pattern == pattern && c.phase == phase) {
        let name = format!("{} × {}", curve.method, curve.ranks);
        let mut series = Series::new(name, Mark::Line, []);
        for (size, speed, interval) in &curve.points {
            let (low, high) = (interval.low * mebi, interval.high * mebi);
            series = series.point_with_error(*size as f64, speed * mebi, low, high);
        }
        chart = chart.with(series);
    }
    chart
}
