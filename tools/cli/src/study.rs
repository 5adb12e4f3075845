//! `iolab study`: the whole loop on one command. Record it, say what is wrong, predict what each
//! remedy would bring, apply the remedies to the unmodified program, and put prediction beside
//! measurement.
//!
//! A study costs two runs of the command plus one per round and strategy. Correctness comes first:
//! each run starts from the same files, and what it leaves is compared byte by byte with what the
//! first plain run left. A strategy that changes a byte, or what the command prints, is wrong.

pub(crate) mod laboratory;
pub(crate) mod progress;

use crate::failure::Failure;
use crate::output::Kind;
use crate::profile;
use clap::Args;
use iolab_policy::insitu::StrategySpec;
use iolab_study::Settings;
use laboratory::{OwnLaboratory, write};
use progress::Progress;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Study a program's I/O: record it, explain it, predict what strategies would bring, apply them to
/// the unmodified program, and compare. Ends with a table and `study.html`.
///
/// The command runs several times, each time in a fresh copy of its output directory, which stands
/// in the place of the original; afterwards the original is put back as it was. Strategies whose
/// output differs from the plain run's in any byte are reported as WRONG.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Rounds; each runs the command plain and once under every strategy
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Directory the command writes to [default: the current directory]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Also try this strategy, or stack of strategies (`A + B`, A on top); may be repeated
    #[arg(long, value_name = "STRATEGY")]
    apply: Vec<String>,
    /// Try only `null` and the strategies given with --apply
    #[arg(long)]
    only: bool,
    /// Where study.html, study.json and the traces go
    #[arg(long, value_name = "DIR", default_value = "iolab-study")]
    results: PathBuf,
    /// Predict with this platform file or preset instead of measuring the storage first
    #[arg(long, value_name = "P.toml")]
    platform: Option<String>,
    /// Also try the stack of this profile, wherever it is meant to be used
    #[arg(value_name = "@PROFILE.toml", value_parser = crate::profile::named)]
    profile: Option<PathBuf>,
    /// Print study.json instead of the table
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let start = std::env::current_dir()
        .map_err(|error| Failure::new(format!("the current directory: {error}")))?;
    let directory = absolute(arguments.output.as_deref().unwrap_or(&start), "output")?;
    let results = absolute(&arguments.results, "results")?;
    fs::create_dir_all(&results).map_err(|error| {
        Failure::new(format!("{}: {error}", results.display()))
            .hint("name a directory for the report with --results")
    })?;
    refuse_foreign(&results)?;
    let platform =
        arguments.platform.as_deref().map(crate::platform_file::read_platform).transpose()?;
    let iolab = std::env::current_exe().map_err(Failure::new)?;
    let here = start.to_string_lossy();
    let mut wanted = rooted(&arguments.apply, &here)?;
    if let Some(path) = &arguments.profile {
        let texts = profile::load(path)?.specs(&here).into_iter().map(|spec| spec.text);
        wanted.push(texts.collect::<Vec<_>>().join(" + "));
    }
    let study = Settings {
        rounds: arguments.runs as usize,
        wanted: &wanted,
        only_wanted: arguments.only,
        platform: platform.as_ref(),
        command: &arguments.command,
        iolab: &iolab,
        start: &start,
        directory: &directory,
        results: &results,
    }
    .run(&OwnLaboratory { results: &results }, &mut Progress::new("study"))?;
    let json = study.json();
    write(&results.join("study.json"), format!("{json:#}\n").as_bytes())?;
    write(&results.join("study.html"), &study.page())?;
    match arguments.json {
        true => say_line!("{json:#}"),
        false => say!("{}", study.text()),
    }
    eprintln!("study: see {}", results.join("study.html").display());
    match &study.incomplete {
        None => Ok(ExitCode::SUCCESS),
        Some(what) => {
            Err(Failure::new(what)
                .hint("the rounds before are in the results; run it again for all"))
        }
    }
}

/// Strategies as they were written, but for relative globs, which count from where the user stands.
fn rooted(texts: &[String], here: &str) -> Result<Vec<String>, Failure> {
    let one = |text: &String| {
        let stack = StrategySpec::parse_each(&[text])?;
        let counted: Vec<_> = stack.iter().map(|spec| spec.clone().rooted(here)).collect();
        let texts = counted.iter().map(|spec| spec.text.clone());
        Ok(match stack == counted {
            true => text.clone(),
            false => texts.collect::<Vec<_>>().join(" + "),
        })
    };
    texts.iter().map(one).collect()
}

/// The directory by its real name, so that it can be set aside; it need not exist yet, but its
/// parent must.
pub(crate) fn absolute(path: &Path, purpose: &str) -> Result<PathBuf, Failure> {
    let failure = |error: std::io::Error| {
        Failure::new(format!("{}: {error}", path.display()))
            .hint(format!("name an existing place for the {purpose} directory"))
    };
    match path.canonicalize() {
        Ok(found) if found.is_dir() => Ok(found),
        Ok(_) => Err(failure(std::io::Error::from(std::io::ErrorKind::NotADirectory))),
        Err(_) => {
            let whole = std::path::absolute(path).map_err(failure)?;
            let (Some(parent), Some(name)) = (whole.parent(), whole.file_name()) else {
                return Ok(whole);
            };
            fs::create_dir_all(parent).map_err(failure)?;
            Ok(parent.canonicalize().map_err(failure)?.join(name))
        }
    }
}

/// What lies in the results directory under the names of a study must be of an earlier study.
fn refuse_foreign(results: &Path) -> Result<(), Failure> {
    const NAMES: [(&str, Kind); 6] = [
        ("this-machine.toml", Kind::Platform),
        ("study.json", Kind::Document),
        ("study.html", Kind::Page),
        ("recorded.iot", Kind::Trace),
        ("simulated.iot", Kind::Trace),
        ("reshaped.iot", Kind::Trace),
    ];
    NAMES.iter().try_for_each(|(name, kind)| kind.refuse_foreign(&results.join(name), "study"))
}
