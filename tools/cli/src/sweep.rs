//! `iolab sweep`: the product of parameter lists, run on all cores, kept run by run.
//!
//! Results go to a directory: a journal with one line per finished run, and at the end a table as
//! CSV and Parquet and a comparison as a page. A second call does only what the journal lacks; a
//! sweep whose files have changed since is refused, not mixed. Parts of a sweep (`--shard`) run on as many nodes
//! as share the directory; whichever call finds that nothing is missing writes the results.

mod journal;
mod parquet;
mod shard;

use crate::failure::Failure;
use crate::{parallel, say, trace_file};
use clap::Args;
use iolab_report::sweep::{Line, Results};
use iolab_sim::band::over_ties;
use iolab_sim::platform::{LOCAL_PRESETS, PRESETS};
use iolab_sim::sweep::Sweep;
use iolab_sim::workload::{Settings, run as run_one};
use journal::Journal;
use shard::Shard;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

/// Run a workload with every combination of parameters, on all cores.
///
/// Kill it at any time and call it again: finished runs are kept. Jobs of an array share the work by
/// --shard and a common directory.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The sweep in TOML: workload, platform, [parameters]
    sweep: PathBuf,
    /// Directory of the results. Default: beside the sweep, ending in .sweep
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Runs at once; as many as there are processors by itself
    #[arg(long)]
    jobs: Option<usize>,
    /// Orders of simultaneous events of each combination, instead of what the sweep says; its row is
    /// their median with its range. 1 makes single runs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seeds: Option<u64>,
    /// Run only the I-th of N parts, as a job of an array; the last one to end writes the table
    #[arg(long, value_name = "I/N", conflicts_with = "fresh")]
    shard: Option<Shard>,
    /// Throw away what earlier calls have finished
    #[arg(long)]
    fresh: bool,
    /// Print the table as CSV, too
    #[arg(long)]
    csv: bool,
}

/// A sweep with the texts it is about.
struct Plan {
    sweep: Sweep,
    workload: String,
    platform: String,
    fingerprint: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let plan = Plan::read(&arguments.sweep, arguments.seeds)?;
    let directory =
        arguments.output.clone().unwrap_or_else(|| arguments.sweep.with_extension("sweep"));
    let mut journal =
        Journal::open(&directory, &plan.fingerprint, arguments.shard, arguments.fresh)?;
    let done = journal.done();
    let mine = |index: &u64| arguments.shard.is_none_or(|shard| shard.has(*index));
    let todo: Vec<u64> =
        (0..plan.sweep.len()).filter(mine).filter(|index| !done.contains(index)).collect();
    if !done.is_empty() {
        eprintln!("{} of {} runs are there already", done.len(), plan.sweep.len());
    }
    let shared = Mutex::new(&mut journal);
    let threads = arguments.jobs.unwrap_or_else(parallel::all_cores);
    let kept = parallel::run_all(&todo, threads, |&index| {
        let line = plan.line(index);
        shared.lock().expect("no thread panics holding it").append(line)
    });
    kept.into_iter().collect::<Result<(), Failure>>()?;
    journal.look_around()?;
    let lines = journal.lines();
    match arguments.shard {
        Some(shard) if (lines.len() as u64) < plan.sweep.len() => {
            let mine = lines.into_iter().filter(|line| shard.has(line.run)).collect::<Vec<_>>();
            say_line!(
                "shard {shard} is done, {} runs; {} of {} are there in all",
                mine.len(),
                journal.done().len(),
                plan.sweep.len()
            );
            told(&mine)
        }
        _ => finish(&plan, &directory, &lines, arguments.csv),
    }
}

fn finish(
    plan: &Plan,
    directory: &Path,
    lines: &[Line],
    prints: bool,
) -> Result<ExitCode, Failure> {
    let results = Results { sweep: &plan.sweep, lines };
    let csv = results.csv();
    trace_file::save_bytes(&directory.join("results.csv"), csv.as_bytes())?;
    trace_file::save_bytes(&directory.join("results.parquet"), &parquet::written(&results)?)?;
    trace_file::save_bytes(&directory.join("comparison.html"), results.page().as_bytes())?;
    match prints {
        true => say::text(&csv)?,
        false => say::text(&results.text())?,
    }
    told(lines)
}

/// Success, unless one of the runs failed.
fn told(lines: &[Line]) -> Result<ExitCode, Failure> {
    let failed: Vec<&Line> = lines.iter().filter(|line| line.error.is_some()).collect();
    let Some(first) = failed.first() else { return Ok(ExitCode::SUCCESS) };
    let error = first.error.clone().unwrap_or_default();
    Err(Failure::new(format!(
        "{} of {} runs failed, first run {}: {error}",
        failed.len(),
        lines.len(),
        first.run
    ))
    .hint("the other runs are in the table; mend the parameters, then --fresh"))
}

impl Plan {
    fn read(path: &Path, seeds: Option<u64>) -> Result<Plan, Failure> {
        let text = read(path, "docs/howto/sweep.md shows a sweep")?;
        let mut sweep = Sweep::parse(&text).map_err(|error| {
            Failure::new(format!("{}: {}", path.display(), error.message)).hint(error.hint)
        })?;
        if let Some(count) = seeds {
            sweep.set_seeds(count)?;
        }
        let beside = |name: &str| path.parent().unwrap_or(Path::new("")).join(name);
        let workload = read(&beside(&sweep.workload), "paths are taken from where the sweep is")?;
        let preset = PRESETS.iter().chain(LOCAL_PRESETS).find(|preset| preset.0 == sweep.platform);
        let platform = match preset {
            Some((_, text)) => (*text).to_owned(),
            None => read(&beside(&sweep.platform), "name a preset, or a file beside the sweep")?,
        };
        let version = env!("CARGO_PKG_VERSION");
        // A sweep without the flag keeps the fingerprint it has always had.
        let seeds = seeds.map(|count| format!("seeds {count}"));
        let texts = [version, &text, &workload, &platform].into_iter().chain(seeds.as_deref());
        let fingerprint = fingerprint(&texts.collect::<Vec<_>>());
        Ok(Plan { sweep, workload, platform, fingerprint })
    }

    /// A combination: the median over its orders of simultaneous events, one after the other.
    fn line(&self, index: u64) -> Line {
        let outcome = self.sweep.case(index, &self.workload, &self.platform).and_then(|case| {
            let run = |tie_seed| {
                let settings = Settings { tie_seed, ..case.settings.clone() };
                run_one(&case.workload, &case.platform, &settings)
            };
            over_ties(&case.tie_seeds, run, |outcome| outcome.end.seconds())
        });
        Line::of(index, outcome)
    }
}

fn read(path: &Path, hint: &str) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())).hint(hint))
}

/// FNV-1a over all texts: equal only for equal files.
fn fingerprint(texts: &[&str]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in texts.iter().flat_map(|text| text.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}")
}
