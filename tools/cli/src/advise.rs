//! `iolab advise`: which strategies would help a recorded program, by the simulator.
//!
//! Every stack that the rules allow and the trace gives reason for is simulated in one order of
//! simultaneous events, on all cores; the best ones in all orders. Nothing is run.

use crate::failure::Failure;
use crate::output::Output;
use crate::platform_file::read_platform;
use crate::simulate::predicted::seconds;
use crate::{calibrate, parallel, say, trace_file};
use clap::Args;
use indicatif::HumanCount;
use iolab_policy::insitu::StrategySpec;
use iolab_policy::insitu::stacking::Consent;
use iolab_report::advice::{
    Advice, Advised, Candidate, Estimate, Means, Permission, best_of_kinds, candidates, ranked,
};
use iolab_report::profile::{Evidence, Guards, Profile, Speedup};
use iolab_sim::band::{Band, tie_seeds};
use iolab_sim::cluster::Order;
use iolab_sim::guest::{Settings, Subject, orders};
use iolab_sim::platform::Platform;
use iolab_trace::Trace;
use iolab_vocab::Seed;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Stacks that are shown, each of another kind.
const SHOWN_MAX: usize = 5;

/// Say which strategies would help a recorded program, with what they would bring by the simulator, why,
/// what they change and what they need. "Nothing helps" is an answer, too.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The recorded program
    #[arg(value_name = "RUN.iot")]
    trace: PathBuf,
    /// Predict for this platform file or preset [default: this-machine.toml, else the storage of the
    /// current directory is measured]
    #[arg(long, value_name = "P.toml")]
    platform: Option<String>,
    #[command(flatten)]
    permission: Permitted,
    /// Write the best stack into this profile, for `iolab run @FILE -- COMMAND`
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What the user consents to.
#[derive(Args)]
pub(crate) struct Permitted {
    /// Also look at strategies that give this up: `weaker-durability`, `age`, `late-visibility`,
    /// `undefined-bytes`
    #[arg(long, value_name = "WORD")]
    allow: Vec<String>,
    /// `none`: nobody outside of the run writes to its files meanwhile; also look at strategies that
    /// rely on that
    #[arg(long, value_name = "WHO", value_parser = ["none"])]
    outsiders: Option<String>,
    /// A directory on quicker storage (a burst buffer, memory): also look at `stage`
    #[arg(long, value_name = "DIR")]
    fast: Option<PathBuf>,
}

impl Permitted {
    /// The same, checked.
    pub(crate) fn permission(&self) -> Result<Permission, Failure> {
        let consent = Consent::of(&self.allow, false, false)?;
        Ok(Permission { consent, no_outsiders: self.outsiders.is_some() })
    }

    /// Whether anything was said.
    pub(crate) fn is_given(&self) -> bool {
        !self.allow.is_empty() || self.outsiders.is_some() || self.fast.is_some()
    }

    /// The fast place by its real name.
    pub(crate) fn fast_place(&self) -> Result<Option<String>, Failure> {
        let Some(path) = &self.fast else { return Ok(None) };
        let failure = |what: String| {
            Failure::new(format!("--fast {}: {what}", path.display()))
                .hint("name a directory of this node, by a name that is text")
        };
        match path.canonicalize() {
            Ok(real) if real.is_dir() => match real.to_str() {
                Some(text) => Ok(Some(text.to_owned())),
                None => Err(failure("its name is no text".to_owned())),
            },
            Ok(_) => Err(failure("it is no directory".to_owned())),
            Err(error) => Err(failure(error.to_string())),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let permission = arguments.permission.permission()?;
    let trace = trace_file::load(&arguments.trace)?;
    let inputs = [arguments.trace.as_path()];
    let output = Output::begin_if(arguments.profile.as_deref(), "--profile", &inputs)?;
    let platform = platform(arguments.platform.as_deref())?;
    let fast = arguments.permission.fast_place()?;
    let recorded = std::path::absolute(&arguments.trace).unwrap_or(arguments.trace.clone());
    let means = Means {
        recorded: recorded.to_str(),
        fast_place: fast.as_deref(),
        // Nobody compares anything here: the reader knows what his files may be.
        compares_contents: true,
    };
    let advice = advise(&trace, &platform, permission, means)?;
    match arguments.json {
        true => say_line!("{:#}", advice.json()),
        false => say::text(&advice.text())?,
    }
    match (output, advice.best.first()) {
        (Some(output), Some(best)) => {
            let path = output.path().to_owned();
            let profile = profile_of(&trace, &arguments.trace, &advice, best);
            output.write(profile.text("written by iolab advise").as_bytes())?;
            eprintln!("wrote {}", path.display());
        }
        (Some(output), None) => {
            let path = output.path().display();
            return Err(Failure::new(format!("nothing helps, so {path} is not written")));
        }
        (None, _) => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn platform(given: Option<&str>) -> Result<Platform, Failure> {
    match given {
        Some(name) => read_platform(name),
        None if Path::new("this-machine.toml").exists() => read_platform("this-machine"),
        None => {
            let calibration = calibrate::measure(Path::new("."))?;
            Ok(Platform::parse(&calibrate::platform_text(&calibration)?)?)
        }
    }
}

fn advise(
    trace: &Trace,
    platform: &Platform,
    permission: Permission,
    means: Means,
) -> Result<Advice, Failure> {
    let mut found = candidates(trace, None, permission, means);
    let is_untold = |it: &Candidate| !it.is_predictable();
    let mut unpredicted: Vec<Candidate> = Vec::new();
    for candidate in found.stacks.iter().filter(|it| it.stack.len() == 1 && is_untold(it)) {
        if unpredicted.iter().all(|known| known.reasons != candidate.reasons) {
            unpredicted.push(candidate.clone());
        }
    }
    let candidate_count = found.stacks.len();
    found.stacks.retain(Candidate::is_predictable);
    let subject = Subject::new(trace, platform, &Settings::default())?;
    let seeds = tie_seeds(Order::Documented, None, None);
    let seeds = orders(trace, platform, &seeds);
    let stacks: Vec<&[StrategySpec]> = found.stacks.iter().map(|it| it.stack.as_slice()).collect();
    let began = Instant::now();
    let estimates = estimates(&subject, &stacks, &|| true);
    let took = began.elapsed().as_secs_f64();
    let simulated_count = estimates.iter().flatten().count();
    if simulated_count > 0 {
        let count = HumanCount(simulated_count as u64);
        eprintln!("advise: {count} predictions in {took:.1} s");
    }
    let places = ranked(&found.stacks, &estimates);
    let plain = band(&subject, &[], seeds)?;
    let mut best = Vec::new();
    for at in best_of_kinds(&found.stacks, &places, 1, SHOWN_MAX) {
        let predicted = band(&subject, &found.stacks[at].stack, seeds)?;
        if Advice::is_gain(&plain, &predicted) {
            best.push(Advised { candidate: found.stacks[at].clone(), predicted });
        }
    }
    let mut notes = platform.notes();
    if found.is_cut {
        notes.push("there are more stacks than were looked at".to_owned());
    }
    Ok(Advice {
        command: trace.header.command.clone(),
        platform: platform.name.clone(),
        plain,
        candidate_count,
        simulated_count,
        best,
        unpredicted,
        withheld: found.withheld,
        idle: found.idle,
        notes,
    })
}

/// Predicts each stack in the documented order of simultaneous events, on all cores, as long as `goes_on`.
/// What cannot be predicted is left out.
pub(crate) fn estimates(
    subject: &Subject,
    stacks: &[&[StrategySpec]],
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Vec<Option<Estimate>> {
    let seed = tie_seeds(Order::Documented, None, None)[0];
    parallel::run_all(stacks, parallel::all_cores(), |stack| {
        let prediction = goes_on().then(|| subject.predict(stack, seed))?.ok()?;
        let wall_s = prediction.wall.seconds();
        Some(Estimate { wall_s, staged_calls: prediction.staged_calls })
    })
}

/// Run times over the orders of simultaneous events.
fn band(subject: &Subject, stack: &[StrategySpec], seeds: &[Seed]) -> Result<Band, Failure> {
    Ok(Band::of(&seconds(subject, stack, seeds)?).expect("there is at least one seed"))
}

fn profile_of(trace: &Trace, path: &Path, advice: &Advice, best: &Advised) -> Profile {
    let header = &trace.header;
    let root = Some(header.working_directory.as_str()).filter(|root| root.starts_with('/'));
    let ranks = header.rank_count();
    let chosen = header
        .files
        .iter()
        .filter(|file| best.candidate.stack.iter().any(|spec| spec.selection.chooses(&file.path)));
    let file_systems: BTreeSet<&String> =
        chosen.map(|file| &file.file_system).filter(|name| !name.is_empty()).collect();
    // The guard is about the root; files on several file systems are of one root at most.
    let file_systems = match file_systems.len() {
        1 => file_systems.into_iter().cloned().collect(),
        _ => Vec::new(),
    };
    let ranks = if ranks > 0 { vec![ranks] } else { Vec::new() };
    let mut profile = Profile::of(&best.candidate.stack, root, Guards { file_systems, ranks });
    let speedup = advice.speedup(best);
    let Band { low, median, high, count } = speedup;
    profile.evidence = Some(Evidence {
        command: header.command.clone(),
        trace: path.display().to_string(),
        platform: advice.platform.clone(),
        host: header.host.clone(),
        date: crate::profile::today(),
        iolab_version: env!("CARGO_PKG_VERSION").to_owned(),
        reasons: best.candidate.reasons.clone(),
        predicted: Some(Speedup { low, median, high, count: count as usize }),
        ..Evidence::default()
    });
    profile
}
