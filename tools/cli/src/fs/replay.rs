//! `iolab fs replay`: recorded events, fed to fresh machines, give the same actions, or the first that
//! differs is told.

use crate::failure::Failure;
use crate::{parallel, say};
use clap::Args;
use iolab_pfs::recording::{self, Difference, Replayed};
use iolab_pfs_node::tape;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Feed recorded events to fresh machines, and hold what they do against what was recorded.
///
/// `iolab fs up --events DIR`, `iolab fs run --events DIR` and `iolab fs explore --events DIR` record. The
/// exit code is 3 if a machine does something else.
#[derive(Args)]
pub(super) struct Arguments {
    /// The directory of the recordings, or one of its files.
    #[arg(value_name = "DIR")]
    place: PathBuf,
    /// Results as JSON.
    #[arg(long)]
    json: bool,
}

/// The exit code when something differs.
const DIFFERS: u8 = 3;

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    // A machine that panics acts otherwise, and is told as one that does.
    std::panic::set_hook(Box::new(|_| {}));
    let files = files(&arguments.place)?;
    let replayed = parallel::run_all(&files, parallel::all_cores(), |path| replay(path));
    let _ = std::panic::take_hook();
    let replayed: Vec<Replayed> = replayed.into_iter().collect::<Result<_, _>>()?;
    let parties: Vec<(String, Replayed)> = files.iter().map(|it| name(it)).zip(replayed).collect();
    let text = match arguments.json {
        true => as_json(&parties)?,
        false => as_text(&parties),
    };
    say::text(&text)?;
    let is_same = parties.iter().all(|(_, replayed)| replayed.difference.is_none());
    Ok(if is_same { ExitCode::SUCCESS } else { ExitCode::from(DIFFERS) })
}

fn files(place: &Path) -> Result<Vec<PathBuf>, Failure> {
    if place.is_file() {
        return Ok(vec![place.to_owned()]);
    }
    let found = tape::recordings(place).map_err(|error| wrong(place, &error))?;
    match found.is_empty() {
        false => Ok(found),
        true => Err(Failure::new(format!("{}: no recordings are there", place.display()))
            .hint("record with `iolab fs run --events DIR -- COMMAND`")),
    }
}

fn wrong(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
        .hint("name the directory that was given to --events")
}

fn replay(path: &Path) -> Result<Replayed, Failure> {
    let recording = fs::read(path).map_err(|error| wrong(path, &error))?;
    recording::replay(&recording).map_err(|refusal| {
        Failure::new(format!("{}: {}", path.display(), refusal.message)).hint(refusal.hint)
    })
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn as_text(parties: &[(String, Replayed)]) -> String {
    let width = parties.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, Replayed { rows, actions, torn_bytes, difference }) in parties {
        let verdict = if difference.is_none() { "as recorded" } else { "another action" };
        text.push_str(&format!("{name:width$}  {rows:>9} rows  {actions:>9} actions  {verdict}"));
        if *torn_bytes > 0 {
            text.push_str(&format!(", up to a row that is cut ({torn_bytes} bytes)"));
        }
        text.push('\n');
    }
    let sum = |count: fn(&Replayed) -> u64| parties.iter().map(|(_, it)| count(it)).sum::<u64>();
    let (rows, actions) = (sum(|it| it.rows), sum(|it| it.actions));
    let differing = parties.iter().filter(|(_, it)| it.difference.is_some()).count();
    let verdict = match differing {
        0 => "all as recorded".to_owned(),
        count => format!("{count} machines act otherwise"),
    };
    let lives = parties.len();
    text.push_str(&format!("{lives} lives, {rows} rows, {actions} actions: {verdict}\n"));
    for (name, difference) in differences(parties) {
        text.push_str(&told(name, difference));
    }
    text
}

fn differences(parties: &[(String, Replayed)]) -> impl Iterator<Item = (&str, &Difference)> {
    parties.iter().filter_map(|(name, it)| Some((name.as_str(), it.difference.as_ref()?)))
}

fn told(name: &str, difference: &Difference) -> String {
    let Difference { row, now, event, action, expected, got } = difference;
    let shown = |action: &Option<String>| action.clone().unwrap_or_else(|| "nothing".to_owned());
    let (expected, got) = (shown(expected), shown(got));
    format!(
        "{name}: row {row}, action {action}, at {} ns\n  told      {event}\n  expected  {expected}\n  \
         got       {got}\n",
        now.0
    )
}

fn as_json(parties: &[(String, Replayed)]) -> Result<String, Failure> {
    let difference = |it: &Difference| {
        json!({
            "row": it.row, "time_ns": it.now.0, "event": it.event, "action": it.action,
            "expected": it.expected, "got": it.got,
        })
    };
    let lives: Vec<_> = parties
        .iter()
        .map(|(name, it)| {
            json!({
                "life": name, "rows": it.rows, "actions": it.actions,
                "torn_bytes": it.torn_bytes, "difference": it.difference.as_ref().map(difference),
            })
        })
        .collect();
    let differing_count = differences(parties).count();
    let document = json!({ "differing_count": differing_count, "lives": lives });
    let text = serde_json::to_string_pretty(&document).map_err(Failure::new)?;
    Ok(text + "\n")
}
