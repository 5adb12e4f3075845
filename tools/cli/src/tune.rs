//! `iolab tune`: the stack of strategies that makes a command fastest, found by the simulator and by real
//! runs, and confirmed.
//!
//! A study whose candidates choose themselves: see `study` for what is promised about the user's files and
//! about correctness.

use crate::advise::Permitted;
use crate::failure::Failure;
use crate::output::Kind;
use crate::profile;
use crate::study::laboratory::{OwnLaboratory, write};
use crate::study::progress::Progress;
use crate::study::site::Site;
use clap::Args;
use iolab_report::profile::Evidence;
use iolab_study::{Same, Search};
use iolab_vocab::parse_seconds;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Find the stack of strategies that makes a command fastest: record it, simulate all that have a reason, run the
/// best for real, and hold the winner against plain in runs of their own.
///
/// The command runs many times, each time in a fresh copy of its output directory, as in a study. What changes
/// a byte is out; what is not faster beyond chance is not recommended. Writes `profile.toml` for
/// `iolab run @profile.toml -- COMMAND`, or says that nothing helps.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Directory the command writes to [default: the current directory]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// How long it may take, as `90s`, `5m` or `1h`
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration)]
    budget: Duration,
    #[command(flatten)]
    permission: Permitted,
    /// Files whose bytes may differ are compared by this command, as in `*.h5=h5diff`: it gets both as its last
    /// arguments. Also look at strategies that have the same data lie elsewhere
    #[arg(long, value_name = "GLOB=COMMAND", value_parser = same)]
    same: Vec<Same>,
    /// Where profile.toml, tune.json and the trace go
    #[arg(long, value_name = "DIR", default_value = "iolab-tune")]
    results: PathBuf,
    /// Predict with this platform file or preset instead of measuring the storage first
    #[arg(long, value_name = "P.toml")]
    platform: Option<String>,
    /// Print tune.json instead of the table
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What a tuning writes among its results, each of which must be of an earlier one.
const RESULTS: [(&str, Kind); 4] = [
    ("this-machine.toml", Kind::Platform),
    ("tune.json", Kind::Document),
    ("recorded.iot", Kind::Trace),
    ("profile.toml", Kind::Profile),
];

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let permission = arguments.permission.permission()?;
    let site = Site::prepared(
        arguments.output.as_deref(),
        (&arguments.results, &RESULTS, "tuning"),
        arguments.platform.as_deref(),
    )?;
    let results = &site.results;
    let fast = arguments.permission.fast_place()?;
    let tuned = site.job(&arguments.command, &arguments.same).tune(
        &Search { permission, fast_place: fast.as_deref(), budget: arguments.budget },
        &OwnLaboratory,
        &mut Progress::new("tune"),
    )?;
    let json = tuned.json();
    write(&results.join("tune.json"), format!("{json:#}\n").as_bytes())?;
    match arguments.json {
        true => say_line!("{json:#}"),
        false => say!("{}", tuned.text()),
    }
    let path = results.join("profile.toml");
    let known = Evidence {
        trace: results.join("recorded.iot").display().to_string(),
        host: iolab_host::recording::host(),
        date: profile::today(),
        iolab_version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Evidence::default()
    };
    match tuned.profile(profile::file_system_around(&site.directory), known) {
        Some(found) => {
            write(&path, found.text("written by iolab tune").as_bytes())?;
            eprintln!("tune: use it by `iolab run @{} -- COMMAND`", path.display());
        }
        None => forget(&path)?,
    }
    match &tuned.incomplete {
        None => Ok(ExitCode::SUCCESS),
        Some(what) => Err(Failure::new(format!("ended early: {what}"))
            .hint("what is known so far stands above; a larger --budget allows more runs")),
    }
}

/// What an earlier tuning recommended does not hold any more.
fn forget(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::new(format!("{}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

/// How files are compared that may be the same with other bytes.
pub(crate) fn same(text: &str) -> Result<Same, String> {
    Same::parse(text).map_err(|refusal| format!("{}; {}", refusal.message, refusal.hint))
}

/// A duration with its unit.
fn duration(text: &str) -> Result<Duration, String> {
    let scaled =
        |unit: char, seconds: f64| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * seconds);
    let seconds = parse_seconds(text).or_else(|| scaled('m', 60.0)).or_else(|| scaled('h', 3600.0));
    match seconds.filter(|seconds| (1.0..1e6).contains(seconds)) {
        Some(seconds) => Ok(Duration::from_secs_f64(seconds)),
        None => Err("give a time of a second or more with its unit, as 90s, 5m or 1h".to_owned()),
    }
}
