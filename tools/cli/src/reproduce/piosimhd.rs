//! `iolab reproduce piosimhd`: the evaluation of PIOsimHD, all 180 cases.

use super::bands;
use super::plots;
use super::result::{Result, compute};
use crate::failure::Failure;
use crate::output::Output;
use crate::parallel;
use crate::ties::{OrderName, Ties};
use clap::Args;
use iolab_report::csv::{self, Plain};
use iolab_sim::cluster::Order;
use iolab_sim::evaluation::{BLOCK_BYTES, Case, Conduct, DEFECTS};
use iolab_sim::platform::Platform;
use iolab_vocab::{Seed, format_bytes, parse_bytes};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

#[derive(Args)]
pub(crate) struct Arguments {
    /// What decides among simultaneous events
    #[arg(long, value_enum, default_value = "published")]
    order: OrderName,
    #[command(flatten)]
    ties: Ties,
    /// Only cases whose `test,cache_layer,block_bytes,op` contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Other block sizes than the published ones, as 512,64k; all tests but the database
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = block_size)]
    blocks: Vec<u64>,
    /// Print every case as CSV, with the columns of the published table
    #[arg(long)]
    csv: bool,
    /// Write the plots of the evaluation to this page
    #[arg(long, value_name = "FILE.html")]
    plots: Option<PathBuf>,
    /// Runs at once; by itself one in the published order, else as many as there are processors
    #[arg(long)]
    jobs: Option<usize>,
}

pub(crate) fn run(arguments: &Arguments) -> std::result::Result<ExitCode, Failure> {
    let platform = Platform::preset("classic-hdd")?;
    let mut cases = match arguments.blocks.as_slice() {
        [] => Case::all(),
        blocks => Case::with_blocks(blocks),
    };
    cases.retain(|case| case.published_key().contains(&arguments.only));
    if cases.is_empty() {
        return Err(Failure::new(format!("no case contains `{}`", arguments.only))
            .hint("cases read like `random,NoCache,5120,READ`; leave --only out to see all"));
    }
    let page = Output::begin_if(arguments.plots.as_deref(), "--plots", &[])?;
    let started = Instant::now();
    let mut results = compute(&platform, &cases, arguments.conducts(), arguments.threads())?;
    let seconds = started.elapsed().as_secs_f64();
    let order = Order::from(arguments.order);
    if order == Order::Published && arguments.ties.seeds.is_some_and(|count| count > 1) {
        let seeds = arguments.ties.of_band();
        let ties = (&seeds[..], u64::MAX);
        let bands = bands::of_cases(&platform, &cases, order, ties, arguments.threads())?;
        results.iter_mut().zip(bands).for_each(|(result, band)| result.band = Some(band));
    }
    if let Some(page) = page {
        page.write(plots::page(&results).as_bytes())?;
    }
    match arguments.csv {
        true => print_csv(&results),
        false => print_table(&results, seconds),
    }
    Ok(ExitCode::SUCCESS)
}

fn block_size(text: &str) -> std::result::Result<u64, String> {
    let bytes = parse_bytes(text).map_err(|error| error.to_string())?;
    let (least, most) = (*BLOCK_BYTES.start(), *BLOCK_BYTES.end());
    match BLOCK_BYTES.contains(&bytes) {
        true => Ok(bytes),
        false => Err(format!("a block has {} to {}", format_bytes(least), format_bytes(most))),
    }
}

impl Arguments {
    fn threads(&self) -> usize {
        let usual = match Order::from(self.order) {
            Order::Published => 1,
            Order::Documented => parallel::all_cores(),
        };
        self.jobs.unwrap_or(usual)
    }

    /// The published order is run as it stands: its values are the ones that were published. Of the
    /// documented one the answer is the median over tie seeds.
    fn conducts(&self) -> Vec<Conduct> {
        let order = Order::from(self.order);
        let seeds = match (order, self.ties.tie_seed) {
            (Order::Published, None) => vec![Seed(0)],
            _ => self.ties.of(order),
        };
        seeds.into_iter().map(|tie_seed| Conduct { order, tie_seed }).collect()
    }
}

/// A line of the CSV.
#[derive(Serialize)]
struct Row {
    test: String,
    cache_layer: &'static str,
    block_bytes: u64,
    op: &'static str,
    total_bytes: u64,
    seconds: Plain,
    stddev_seconds: Option<Plain>,
}

fn print_csv(results: &[Result]) {
    let row = |result: &Result| Row {
        test: result.case.test.name(),
        cache_layer: result.case.published_cache(),
        block_bytes: result.case.block_bytes,
        op: result.case.operation.name(),
        total_bytes: result.case.total_bytes(),
        seconds: Plain(result.seconds),
        stddev_seconds: result.deviation.map(Plain),
    };
    say!("{}", csv::rows(results.iter().map(row)));
}

/// The published seconds of a case, for the two thirds of cases whose values we have.
fn published(case: &Case) -> Option<f64> {
    case.published().map(|time| time.seconds)
}

/// Whether ours equals the published value to every printed digit: the mean of ten times in
/// nanoseconds has ten decimals, what follows is noise of summation.
fn is_equal(ours: f64, published: f64) -> bool {
    (ours - published).abs() < 0.5e-10 * published.max(1.0)
}

fn print_table(results: &[Result], seconds: f64) {
    say_line!(
        "{:<21} {:<23} {:>6} {:<5} {:>17} {:>17} {:>9}",
        "test",
        "cache layer",
        "block",
        "op",
        "seconds",
        "published",
        "differs"
    );
    results.iter().for_each(print_row);
    say_line!();
    print_summary(results);
    print_bands(results);
    let events: u64 = results.iter().map(|result| result.event_count).sum();
    say_line!("{events} events in {seconds:.1} s: {:.1} M events/s", events as f64 / seconds / 1e6);
    say_line!("\nWhat to know about the published evaluation:");
    DEFECTS.iter().for_each(|defect| say_line!("- {defect}"));
}

fn print_row(result: &Result) {
    let case = &result.case;
    let (said, differs) = match published(case) {
        None => ("-".to_owned(), "-".to_owned()),
        Some(value) if is_equal(result.seconds, value) => {
            (format!("{value:.10}"), "equal".to_owned())
        }
        Some(value) => {
            let percent = (result.seconds / value - 1.0) * 100.0;
            (format!("{value:.10}"), format!("{percent:+.5}%"))
        }
    };
    say!(
        "{:<21} {:<23} {:>6} {:<5} {:>17.10} {said:>17} {differs:>9}",
        case.test.name(),
        case.published_cache(),
        case.block_bytes,
        case.operation.name(),
        result.seconds,
    );
    if let Some(band) = result.band {
        let inside = match published(case) {
            Some(value) if !band.holds(value) => "  published OUTSIDE",
            _ => "",
        };
        say!("  band {:.4} {:.4} {:.4}{inside}", band.low, band.median, band.high);
    }
    say_line!();
}

fn print_summary(results: &[Result]) {
    let known = || results.iter().filter_map(|one| Some((one.seconds, published(&one.case)?)));
    let count = known().count();
    let equal = known().filter(|(ours, value)| is_equal(*ours, *value)).count();
    let within =
        |limit: f64| known().filter(|(ours, value)| (ours / value - 1.0).abs() <= limit).count();
    say_line!("{} cases, {count} of them with a published value here:", results.len());
    say_line!("  {equal} equal to every printed digit");
    for percent in [0.0001, 0.3, 2.0, 10.0] {
        say_line!("  {} within {percent} %", within(percent / 100.0));
    }
}

fn print_bands(results: &[Result]) {
    let Some(count) = results.iter().find_map(|result| Some(result.band?.count)) else { return };
    let outside = |value: &dyn Fn(&Result) -> Option<f64>| {
        let is_outside = |one: &&Result| {
            one.band.zip(value(one)).is_some_and(|(band, value)| !band.holds(value))
        };
        results.iter().filter(is_outside).count()
    };
    let (theirs, ours) = (outside(&|one| published(&one.case)), outside(&|one| Some(one.seconds)));
    say_line!("  {theirs} published values outside the band of {count} tie seeds, {ours} of ours");
}
