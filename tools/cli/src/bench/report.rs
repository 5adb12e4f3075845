//! `iolab bench report`: curves, what they say, a weighted score, a comparison.

use super::weights::weighted;
use crate::failure::Failure;
use crate::output::Output;
use clap::Args;
use iolab_bench::{Outcome, Prices, summary_table};
use iolab_report::bench::{
    Compared, Comparison, Curve, FORMAT_VERSION, Labels, Observation, Summary, compare,
    contradictions, curves, observations, rows,
};
use iolab_report::chart::{Axis, Chart, Mark, STYLE, Series, Unit};
use iolab_report::markup::plain_page;
use maud::html;
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
    let outcomes = different(&arguments.results)?;
    for (index, outcome) in outcomes.iter().enumerate() {
        let place = &outcome.surroundings;
        let number =
            if outcomes.len() > 1 { format!("result {}: ", index + 1) } else { String::new() };
        let path = arguments.results[index].display();
        say_line!(
            "{number}{path}: {} ranks on {} ({})",
            outcome.ranks,
            place.host,
            place.file_system
        );
        place.prices.iter().for_each(|prices| say_line!("{}", priced(prices)));
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
        say!("\n{}", comparison_table(&compare(first, second)));
    }
    if let Some(output) = output {
        let page = page(&curves(&outcomes), &observations);
        output.write(page.as_bytes())?;
    }
    Ok(())
}

/// What the smallest things cost where something was measured.
pub(super) fn priced(prices: &Prices) -> String {
    format!(
        "a system call costs {:.0} ns there, a fresh page {:.0} ns, copying runs at {:.0} GiB/s",
        prices.call_ns,
        prices.page_ns,
        prices.copy_mib_per_second / 1024.0
    )
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

/// Every row of all results, told apart.
fn summaries(outcomes: &[Outcome]) -> Vec<Summary> {
    let rows = rows(outcomes);
    let labels = Labels::of(rows.iter().map(|row| &row.settings));
    rows.iter().filter_map(|row| row.summary(&labels)).collect()
}

fn read(path: &Path) -> Result<Outcome, Failure> {
    let wrong = |why: &dyn std::fmt::Display| {
        Failure::new(format!("{} is not a result of iolab bench: {why}", path.display()))
            .hint("`iolab bench … --output FILE` writes one")
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let outcome: Outcome = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    match (outcome.format.as_str(), outcome.format_version) {
        ("iolab-bench", 1..=FORMAT_VERSION) => Ok(outcome),
        (format, version) => Err(wrong(&format!("it is {format} version {version}"))),
    }
}

fn comparison_table(compared: &Compared) -> String {
    let mut text = "second over first\n".to_owned();
    for (setting, first, second) in &compared.differs {
        let _ = writeln!(text, "  {setting}: {first} in the first, {second} in the second");
    }
    for line in &compared.lines {
        let Comparison { what, ratio, interval, values, verdict } = line;
        let (kind, low, high) = (interval.name(), interval.low, interval.high);
        let _ = writeln!(
            text,
            "  {ratio:>6.2} ({kind} {low:.2} to {high:.2}, n = {} and {})  {verdict:<34} {what}",
            values.0, values.1
        );
    }
    match (compared.lines.len(), compared.unmatched) {
        (0, _) => text += "  nothing was measured under the same settings in both\n",
        (_, 0) => {}
        (_, rows) => _ = writeln!(text, "  {rows} rows have no like in the other result"),
    }
    text
}

/// How the page looks beside its charts.
const PAGE_STYLE: &str =
    "body{font:15px sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}";

fn page(curves: &[Curve], observations: &[Observation]) -> String {
    let mut groups: Vec<(&str, &str, &str)> = Vec::new();
    for curve in curves {
        if !groups.contains(&group(curve)) {
            groups.push(group(curve));
        }
    }
    let body = html! {
        h1 { "Benchmark" }
        h2 { "What the results say" }
        ul {
            @for one in observations { li { b { (one.kind) } " " (one.text) } "\n" }
        }
        h2 { "Throughput by size" }
        @for group in groups { (chart(group, curves).figure()) "\n" }
    };
    plain_page("iolab bench", &format!("{PAGE_STYLE}{STYLE}"), body)
}

/// What is drawn into one chart: a phase of a pattern, in one unit.
fn group(curve: &Curve) -> (&str, &str, &str) {
    let of = |key: &str| curve.settings.get(key).map_or("", String::as_str);
    let pattern = if of("temporal") == "metadata" { "metadata" } else { of("pattern") };
    (pattern, of("phase"), curve.unit)
}

fn chart(shown: (&str, &str, &str), curves: &[Curve]) -> Chart {
    let (pattern, phase, unit) = shown;
    let x = Axis::log2("size", Unit::Bytes);
    let (y, factor) = match unit {
        "op/s" => (Axis::linear("operations per second", Unit::Plain), 1.0),
        _ => (Axis::linear("throughput", Unit::BytesPerSecond), f64::from(1 << 20)),
    };
    let mut chart = Chart::new(format!("{phase} of {pattern}"), x, y);
    for curve in curves.iter().filter(|curve| group(curve) == shown) {
        let mut series = Series::new(curve.label.clone(), Mark::Line, []);
        for point in &curve.points {
            let interval = point.interval();
            let (low, high) = (interval.low * factor, interval.high * factor);
            series = series.point_with_error(point.size as f64, point.median() * factor, low, high);
        }
        chart = chart.with(series);
    }
    chart
}
