//! `iolab simulate --workload`: described programs on a cluster in virtual time.

use super::arguments::Arguments;
use super::choices;
use super::faults::read_scenario;
use super::subject::Subject;
use crate::failure::Failure;
use crate::{parallel, reconstructed, say, trace_file};
use indicatif::{ProgressBar, ProgressStyle};
use iolab_policy::collective::{CollectiveKind, CollectiveSelection, catalog};
use iolab_report::simulation::{Banded, Chosen, Compared, Faulted, Simulation};
use iolab_sim::band::{Band, median_place};
use iolab_sim::cluster::Progress;
use iolab_sim::file_system::Configuration;
use iolab_sim::platform::Platform;
use iolab_sim::workload::{Outcome, Settings, Workload, simulate};
use iolab_trace::Trace;
use iolab_traces::darshan;
use iolab_vocab::{Refusal, Seed};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

/// Simulates a workload file.
pub(super) fn run(arguments: &Arguments, path: &Path) -> Result<ExitCode, Failure> {
    let workload = read_workload(path, arguments.seed.map(Seed))?;
    run_subject(arguments, (&Subject::Described(Box::new(workload)), None), &arguments.platform()?)
}

/// Simulates a workload or a recorded program, of which there are measured calls, and tells what came of it.
pub(super) fn run_subject(
    arguments: &Arguments,
    (subject, measured): (&Subject, Option<&Trace>),
    platform: &Platform,
) -> Result<ExitCode, Failure> {
    let outputs = arguments.outputs()?;
    if arguments.file_system.is_some() {
        arguments.refuse_model_flags()?;
    }
    let settings = settings_of(arguments, platform)?;
    if let Some(scenario) = &settings.faults {
        scenario.resolve(platform)?;
    }
    let seeds = arguments.ties.of(settings.order);
    let record = settings.record && settings.faults.is_none();
    let sound = Settings { faults: None, record, ..settings.clone() };
    // Under faults these are what is compared.
    let words = choices::words(arguments).filter(|_| settings.faults.is_none());
    let mut outcome = over_ties(subject, platform, &sound, &seeds)?;
    let chosen = words.and_then(|words| {
        let usual = over_ties(subject, platform, &choices::usual(&sound), &seeds);
        if let Err(failure) = &usual {
            // What was asked for is there; only the comparison is not.
            let (words, message) = (words.join(" "), failure.message());
            say!("nothing to compare with: without {words} the run fails: {message}");
        }
        usual.ok().map(|usual| Chosen { words, usual })
    });
    let mut faulted = None;
    if let Some(scenario) = settings.faults.clone() {
        let faulty = over_ties(subject, platform, &settings, &seeds).map_err(|failure| {
            let seconds = outcome.band.median;
            failure.note(format!("without the faults the run takes {seconds:.9} s"))
        })?;
        faulted = Some(Faulted { scenario, sound: std::mem::replace(&mut outcome, faulty) });
    }
    if let (Some(output), Some(trace)) = (outputs.trace, &outcome.outcome.trace) {
        let path = output.path().to_owned();
        trace_file::save_to(output, trace)?;
        eprintln!("wrote {}", path.display());
    }
    let compared = measured
        .filter(|_| arguments.predict)
        .zip(outcome.outcome.trace.as_ref())
        .map(|(measured, predicted)| Compared::of(measured, predicted));
    let told = Simulation {
        subject: subject.told(),
        platform,
        settings: &settings,
        outcome: &outcome,
        faulted: faulted.as_ref(),
        chosen: chosen.as_ref(),
        compared: compared.as_ref(),
    };
    say::text(&match (arguments.json, arguments.csv) {
        (true, _) => format!("{}\n", told.json()),
        (_, true) => told.csv(),
        _ => told.text(),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Reads a workload file, or makes one of what a log of Darshan counts; `seed` replaces its own.
pub(crate) fn read_workload(path: &Path, seed: Option<Seed>) -> Result<Workload, Failure> {
    let text = match darshan::is_log(path) {
        true => {
            eprintln!(
                "iolab: reconstructed from the counters of {}; `iolab import --as workload` shows what is inferred",
                path.display()
            );
            reconstructed::workload(path)?
        }
        false => std::fs::read_to_string(path).map_err(|error| {
            Failure::new(format!("{}: {error}", path.display()))
                .hint("`iolab simulate --template` prints a workload")
        })?,
    };
    let workload = match seed {
        Some(seed) => Workload::parse_seeded(&text, seed),
        None => Workload::parse(&text),
    };
    workload.map_err(|error| {
        Failure::new(format!("{}: {}", path.display(), error.message)).hint(error.hint)
    })
}

fn settings_of(arguments: &Arguments, platform: &Platform) -> Result<Settings, Failure> {
    Ok(Settings {
        order: arguments.order.into(),
        tie_seed: Seed(0),
        cache: arguments.cache.clone(),
        collectives: collectives(&arguments.collective)?,
        strategies: arguments.strategies(platform)?,
        faults: arguments.faults.as_deref().map(read_scenario).transpose()?,
        record: arguments.output.is_some() || arguments.predict,
        file_system: arguments.file_system.as_deref().map(read_file_system).transpose()?,
    })
}

/// Reads the configuration of a parallel file system.
fn read_file_system(path: &Path) -> Result<Configuration, Failure> {
    let place = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::new(format!("{place}: {error}"))
            .hint("docs/howto/simulate-the-file-system.md shows a file system")
    })?;
    Configuration::parse(&text)
        .map_err(|error| Failure::new(format!("{place}: {}", error.message)).hint(error.hint))
}

/// Algorithms by `command=name`; a bare name is meant for collective accesses to files.
pub(crate) fn collectives(wishes: &[String]) -> Result<CollectiveSelection, Failure> {
    let mut choices = CollectiveSelection::default();
    for wish in wishes {
        match wish.contains('=') {
            true => choices.choose(wish)?,
            false => choices.set(catalog::find(CollectiveKind::File, wish)?),
        }
    }
    Ok(choices)
}

/// One run, with its progress on stderr.
fn watched(
    subject: &Subject,
    platform: &Platform,
    settings: &Settings,
) -> Result<Outcome, Failure> {
    let bar = ProgressBar::new_spinner();
    bar.set_style(
        ProgressStyle::with_template("{spinner} {elapsed} {msg}").expect("a sound template"),
    );
    let job = subject.job(platform)?;
    let outcome = simulate(job, platform, settings, &mut |progress: Progress| {
        let Progress { now, event_count, running_count } = progress;
        let millions = event_count as f64 / 1e6;
        bar.set_message(format!(
            "{:.3} s simulated, {millions:.0} M events, {running_count} processes running",
            now.seconds()
        ));
        bar.tick();
        ControlFlow::Continue(())
    });
    bar.finish_and_clear();
    Ok(outcome?)
}

/// Runs with each of the tie seeds, on all cores, and keeps the median run; only that is recorded.
fn over_ties(
    subject: &Subject,
    platform: &Platform,
    settings: &Settings,
    seeds: &[Seed],
) -> Result<Banded, Failure> {
    let with = |seed: Seed, record| Settings { tie_seed: seed, record, ..settings.clone() };
    if let [seed] = *seeds {
        let outcome = watched(subject, platform, &with(seed, settings.record))?;
        let band = Band::of(&[outcome.end.seconds()]).expect("one run");
        return Ok(Banded { outcome, band, tie_seed: seed });
    }
    let runs = parallel::run_all(seeds, parallel::all_cores(), |&seed| {
        let unwatched = &mut |_: Progress| ControlFlow::Continue(());
        simulate(subject.job(platform)?, platform, &with(seed, false), unwatched)
    });
    let mut runs = runs.into_iter().collect::<Result<Vec<Outcome>, Refusal>>()?;
    let seconds: Vec<f64> = runs.iter().map(|run| run.end.seconds()).collect();
    let band = Band::of(&seconds).expect("there is at least one seed");
    let place = median_place(&seconds).expect("there is at least one seed");
    let outcome = match settings.record {
        true => watched(subject, platform, &with(seeds[place], true))?,
        false => runs.swap_remove(place),
    };
    Ok(Banded { outcome, band, tie_seed: seeds[place] })
}
