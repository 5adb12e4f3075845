//! `iolab doctor`: what of iolab works on this machine, and what to do about the rest.
//!
//! Nothing is concluded from versions or files that are there: each capability is used once, on files of a
//! directory of its own, by the commands a user would type. A trial costs a few hundredths of a second and
//! is ended when it takes longer than any honest one.

mod machine;
mod trial;

use crate::failure::Failure;
use clap::Args;
use iolab_report::table::{Cell, Table, Tone};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use trial::Verdict;

/// Try what of iolab works here, and say what to do about the rest.
///
/// Records, reshapes and mounts small files in a directory of its own, which it removes. Exit code 1 if
/// recording, or a strategy in a program, does not work.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Directory to try it in: name one on the storage that you care for
    #[arg(default_value = ".")]
    directory: PathBuf,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

/// One capability.
pub(super) struct Check {
    /// Its name, as the command's.
    name: &'static str,
    /// What it is for.
    purpose: &'static str,
    /// Whether iolab is of little use without it.
    is_essential: bool,
    verdict: Verdict,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let directory = &arguments.directory;
    let place = tempfile::Builder::new().prefix("iolab-doctor-").tempdir_in(directory).map_err(
        |error| {
            Failure::new(format!("{}: {error}", directory.display()))
                .hint("name a directory you may write to: iolab doctor DIR")
        },
    )?;
    let path = place.path().canonicalize().map_err(Failure::new)?;
    let facts = machine::facts(&path);
    let checks = trial::all(&path);
    let failed = checks.iter().filter(|check| check.is_essential && !check.verdict.works());
    let code = if failed.count() > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    place.close().map_err(|error| {
        Failure::new(format!("{}: {error}", path.display())).hint("remove it by hand")
    })?;
    match arguments.json {
        true => say_line!("{:#}", as_json(&facts, &checks)),
        false => say!("{}", as_text(&facts, &checks)),
    }
    Ok(code)
}

fn as_text(facts: &[(&'static str, String)], checks: &[Check]) -> String {
    let mut machine = Table::new("This machine", ["what", "value"]);
    for (name, value) in facts {
        machine.push([Cell::from(*name), Cell::from(value.as_str())]);
    }
    let mut tried = Table::new("Tried", ["what", "for", "result"]);
    let mut ways_out = String::new();
    for check in checks {
        let (word, tone) = match &check.verdict {
            Verdict::Works(_) => ("works", Tone::Good),
            Verdict::Fails { .. } => ("does not work", Tone::Bad),
        };
        let result = match check.verdict.detail() {
            "" => word.to_owned(),
            detail => format!("{word}: {detail}"),
        };
        let result = Cell { text: result, tone, ..Cell::default() };
        tried.push([Cell::from(check.name), Cell::from(check.purpose), result]);
        if let Verdict::Fails { way_out, .. } = &check.verdict {
            ways_out += &format!("{}: {way_out}\n", check.name);
        }
    }
    let blank = if ways_out.is_empty() { "" } else { "\n" };
    format!("{}\n{}{blank}{ways_out}", machine.text(), tried.text())
}

fn as_json(facts: &[(&'static str, String)], checks: &[Check]) -> Value {
    let (launchers, facts): (Vec<_>, Vec<_>) = facts.iter().partition(|fact| fact.0 == "launcher");
    let facts = facts.into_iter().map(|(name, value)| (name.replace(' ', "_"), json!(value)));
    let launchers: Vec<&String> = launchers.into_iter().map(|(_, value)| value).collect();
    let checks = checks.iter().map(|check| {
        json!({
            "name": check.name,
            "for": check.purpose,
            "works": check.verdict.works(),
            "detail": check.verdict.detail(),
            "way_out": check.verdict.way_out(),
        })
    });
    json!({
        "schema": "iolab.doctor/1",
        "machine": facts.collect::<serde_json::Map<_, _>>(),
        "launchers": launchers,
        "tried": checks.collect::<Vec<_>>(),
    })
}
