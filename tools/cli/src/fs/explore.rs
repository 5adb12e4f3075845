//! `iolab fs explore`: the machines of the file system under seeded faults.

use crate::failure::Failure;
use crate::{parallel, say};
use clap::Args;
use iolab_explore::{Fault, Mark, Marks, Mask, Outcome};
use iolab_pfs_node::tape;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Look for seeds with which the file system breaks its promises.
///
/// A seed stands for an instance, its programs, and what goes wrong; a seed that fails does so again.
#[derive(Args)]
pub(super) struct Arguments {
    /// How many seeds.
    #[arg(long, value_name = "N", default_value_t = 1000,
        value_parser = clap::value_parser!(u64).range(1..=SEEDS_MAX))]
    seeds: u64,
    /// The first of them.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    first: u64,
    /// This one only, as the line of a failing seed says.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "first"])]
    seed: Option<u64>,
    /// Tell everything that machines hear and want.
    #[arg(long, requires = "seed")]
    story: bool,
    /// Record what all machines are told and what they want in a directory, for `iolab fs replay`.
    #[arg(long, value_name = "DIR", requires = "seed")]
    events: Option<PathBuf>,
    /// Results as JSON.
    #[arg(long)]
    json: bool,
    /// How many at a time. [default: as many as there are processors]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Faults that do not happen: loss, delay, partition, crash, crash-metadata, pause, death, disk, mangle,
    /// cache, power, cut, full, rot.
    #[arg(long, value_name = "FAULT,...", value_delimiter = ',')]
    without: Vec<Fault>,
    /// Programs that do nothing.
    #[arg(long, value_name = "PROGRAM,...", value_delimiter = ',')]
    idle: Vec<usize>,
    /// How many rounds programs do at most.
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Rounds that programs leave out.
    #[arg(long, value_name = "ROUND,...", value_delimiter = ',')]
    skip: Vec<usize>,
}

/// A seed with which a promise is broken, made as small as could be.
struct Failing {
    seed: u64,
    defect: String,
    again: String,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let seeds = arguments.seeds()?;
    let mask = arguments.mask();
    // A machine that panics is a defect of a seed, and told as one.
    std::panic::set_hook(Box::new(|_| {}));
    if let (true, Some(&seed)) = (arguments.story, seeds.first()) {
        let (_, story) = iolab_explore::tell(seed, &mask);
        story.iter().for_each(|line| say_line!("{line}"));
    }
    if let (Some(directory), Some(&seed)) = (&arguments.events, seeds.first()) {
        let (_, recordings) = iolab_explore::record(seed, &mask);
        tape::keep(directory, &recordings)?;
    }
    let threads = arguments.threads.unwrap_or_else(parallel::all_cores);
    let outcomes = parallel::run_all(&seeds, threads, |&seed| iolab_explore::explore(seed, &mask));
    let failing: Vec<Failing> = seeds
        .iter()
        .zip(&outcomes)
        .filter(|(_, outcome)| outcome.defect.is_some())
        .take(SHRUNK_MAX)
        .map(|(&seed, _)| shrunk(seed, &mask))
        .collect();
    let _ = std::panic::take_hook();
    let failing_count = outcomes.iter().filter(|outcome| outcome.defect.is_some()).count();
    let text = match arguments.json {
        true => as_json(&seeds, &outcomes, failing_count, &failing)?,
        false => as_text(&seeds, &outcomes, failing_count, &failing),
    };
    say::text(&text)?;
    Ok(if failing_count == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// More failing seeds are counted, but not made smaller.
const SHRUNK_MAX: usize = 10;

/// At some hundred seeds a second, days: their results are kept in memory until the end.
const SEEDS_MAX: u64 = 100_000_000;

impl Arguments {
    fn seeds(&self) -> Result<Vec<u64>, Failure> {
        let (first, count) = (self.first, self.seeds);
        match (self.seed, first.checked_add(count)) {
            (Some(seed), _) => Ok(vec![seed]),
            (None, Some(end)) => Ok((first..end).collect()),
            (None, None) => {
                let message = format!("there are no {count} seeds from --first {first} on");
                Err(Failure::new(message).hint("give a smaller --first"))
            }
        }
    }

    fn mask(&self) -> Mask {
        Mask {
            without: self.without.iter().copied().collect(),
            idle: self.idle.iter().copied().collect(),
            rounds: self.rounds,
            skipped: self.skip.iter().copied().collect(),
        }
    }
}

fn shrunk(seed: u64, mask: &Mask) -> Failing {
    let (mask, outcome) = iolab_explore::shrink(seed, mask);
    let again = format!("iolab fs explore --seed {seed}{mask}");
    Failing { seed, defect: outcome.defect.unwrap_or_default(), again }
}

fn marks_of(outcomes: &[Outcome]) -> Marks {
    let mut marks = Marks::default();
    outcomes.iter().for_each(|outcome| marks.add(&outcome.marks));
    marks
}

/// The hash of all runs, in their order.
fn hash_of(outcomes: &[Outcome]) -> u64 {
    let mix = |hash: u64, outcome: &Outcome| (hash ^ outcome.hash).wrapping_mul(0x0100_0000_01B3);
    outcomes.iter().fold(0xCBF2_9CE4_8422_2325, mix)
}

fn as_text(
    seeds: &[u64],
    outcomes: &[Outcome],
    failing_count: usize,
    failing: &[Failing],
) -> String {
    let marks = marks_of(outcomes);
    let steps: u64 = outcomes.iter().map(|outcome| outcome.steps).sum();
    let mut text = format!(
        "{} seeds from {}, {steps} steps, hash {:016x}\n",
        seeds.len(),
        seeds.first().copied().unwrap_or(0),
        hash_of(outcomes)
    );
    for &mark in Mark::ALL {
        text.push_str(&format!("  {:<24} {:>10}\n", mark.name(), marks.count(mark)));
    }
    if failing_count > 0 {
        text.push_str(&format!("{failing_count} seeds fail\n"));
    }
    for Failing { seed, defect, again } in failing {
        text.push_str(&format!("seed {seed}: {defect}\n  {again}\n"));
    }
    text
}

fn as_json(
    seeds: &[u64],
    outcomes: &[Outcome],
    failing_count: usize,
    failing: &[Failing],
) -> Result<String, Failure> {
    let marks = marks_of(outcomes);
    let marks: serde_json::Map<String, serde_json::Value> =
        Mark::ALL.iter().map(|&mark| (mark.name().to_owned(), marks.count(mark).into())).collect();
    let failing: Vec<_> = failing
        .iter()
        .map(|one| json!({ "seed": one.seed, "defect": one.defect, "again": one.again }))
        .collect();
    let document = json!({
        "first": seeds.first(),
        "seeds": seeds.len(),
        "steps": outcomes.iter().map(|outcome| outcome.steps).sum::<u64>(),
        "hash": format!("{:016x}", hash_of(outcomes)),
        "marks": marks,
        "failing_count": failing_count,
        "failing": failing,
    });
    let text = serde_json::to_string_pretty(&document).map_err(Failure::new)?;
    Ok(text + "\n")
}
