//! `iolab study`: the whole loop on one command. Record it, say what is wrong, predict what each
//! remedy would bring, apply the remedies to the unmodified program, and put prediction beside
//! measurement.
//!
//! A study costs two runs of the command plus one per round and strategy. Correctness comes first:
//! each run starts from the same files, and what it leaves is compared byte by byte with what the
//! first plain run left. A strategy that changes a byte, or what the command prints, is wrong.

pub(crate) mod laboratory;
pub(crate) mod progress;
pub(crate) mod site;

use crate::advise::Permitted;
use crate::failure::Failure;
use crate::output::Kind;
use crate::profile;
use crate::tune::same;
use clap::Args;
use iolab_policy::insitu::StrategySpec;
use iolab_study::{Others, Same, Search, Trials};
use laboratory::{OwnLaboratory, write};
use progress::Progress;
use site::Site;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Study a program's I/O: record it, explain it, predict what strategies would bring, apply them to
/// the unmodified program, and compare. Ends with a table and `study.html`.
///
/// The command runs several times, each time in a fresh copy of its output directory, which stands
/// in the place of the original; afterwards the original is put back as it was. Strategies whose
/// output differs from the plain run's in any byte are reported as WRONG.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Rounds; each runs the command plain and once under every strategy. Eight can tell of up to six strategies
    /// whether they are faster
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
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
    /// Instead of remedies of the findings, try the most promising stacks of those that the recorded run gives
    /// reason for, as `iolab tune` finds them
    #[arg(long, conflicts_with = "only")]
    auto: bool,
    #[command(flatten)]
    permission: Permitted,
    /// Files whose bytes may differ are compared by this command, as in `*.h5=h5diff`: it gets both as its last
    /// arguments
    #[arg(long, value_name = "GLOB=COMMAND", value_parser = same)]
    same: Vec<Same>,
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

/// A quarter of it goes into predictions at most.
const SEARCH: Duration = Duration::from_secs(120);

/// What a study writes among its results, each of which must be of an earlier one.
const RESULTS: [(&str, Kind); 6] = [
    ("this-machine.toml", Kind::Platform),
    ("study.json", Kind::Document),
    ("study.html", Kind::Page),
    ("recorded.iot", Kind::Trace),
    ("simulated.iot", Kind::Trace),
    ("reshaped.iot", Kind::Trace),
];

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let site = Site::prepared(
        arguments.output.as_deref(),
        (&arguments.results, &RESULTS, "study"),
        arguments.platform.as_deref(),
    )?;
    let results = &site.results;
    let here = site.start.to_string_lossy();
    let mut wanted = rooted(&arguments.apply, &here)?;
    if let Some(path) = &arguments.profile {
        let texts = profile::load(path)?.specs(&here).into_iter().map(|spec| spec.text);
        wanted.push(texts.collect::<Vec<_>>().join(" + "));
    }
    if !arguments.auto && arguments.permission.is_given() {
        return Err(Failure::new(
            "--allow, --outsiders and --fast say which strategies are looked for",
        )
        .hint(
            "add --auto; what is given with --apply needs no such word, for its files are compared",
        ));
    }
    let fast = arguments.permission.fast_place()?;
    let others = match (arguments.only, arguments.auto) {
        (true, _) => Others::Nothing,
        (false, false) => Others::Remedies,
        (false, true) => Others::Advised(Search {
            permission: arguments.permission.permission()?,
            fast_place: fast.as_deref(),
            budget: SEARCH,
        }),
    };
    let trials = Trials { rounds: arguments.runs as usize, wanted: &wanted, others };
    let job = site.job(&arguments.command, &arguments.same);
    let study = job.study(&trials, &OwnLaboratory, &mut Progress::new("study"))?;
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
