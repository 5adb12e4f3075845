//! `iolab fs check` and `rescue`: the directory of a file system that nobody serves.

use super::{Place, shown};
use crate::failure::Failure;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use iolab_pfs_node::check::{self, Checked, Hurt};
use iolab_pfs_node::offline::Offline;
use iolab_pfs_node::rescue::{self, Rescued};
use iolab_vocab::{Extent, format_bytes};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Something is lost, or may be.
const DAMAGED: u8 = 2;
/// What could be mended was.
const REPAIRED: u8 = 1;

/// Hold the directory of a file system that nobody serves against its journal.
///
/// The exit code is 0 if nothing is lost, 1 if --repair has mended something, 2 if there is damage. Without
/// --repair nothing is changed.
#[derive(Args)]
pub(super) struct Check {
    #[command(flatten)]
    place: Place,
    /// Cut off a torn end of the journal, and remove what is left over of removed files.
    #[arg(long)]
    repair: bool,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Copy the files out of the directory of a file system that nobody serves, as far as it is still there.
///
/// Files get the bytes of the subfiles that are there, and holes for those that are not. The exit code is 0 if
/// all files are whole, 2 if some are not: those are named.
#[derive(Args)]
pub(super) struct Rescue {
    #[command(flatten)]
    place: Place,
    /// Where the files go: a directory that is empty, or not there yet.
    #[arg(long, value_name = "OUT")]
    to: PathBuf,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn check(arguments: &Check) -> Result<ExitCode, Failure> {
    let directory = arguments.place.directory()?;
    let offline = Offline::take(&directory)?;
    let checked = check::check(&offline).map_err(|error| unreadable(&directory, &error))?;
    if arguments.repair {
        check::repair(&checked).map_err(|error| unreadable(&directory, &error))?;
    }
    let code = exit_code(&checked, arguments.repair);
    match arguments.json {
        true => say_json(&checked, arguments.repair, code),
        false => say(&directory, &checked, arguments.repair, code),
    }
    Ok(ExitCode::from(code))
}

fn exit_code(checked: &Checked, repaired: bool) -> u8 {
    let mended = checked.notes.iter().any(|note| note.what.is_mended());
    let damaged = checked.notes.iter().any(|note| note.what.is_damage());
    match (damaged, mended) {
        (true, _) => DAMAGED,
        (false, true) if repaired => REPAIRED,
        (false, _) => 0,
    }
}

fn say(directory: &Path, checked: &Checked, repaired: bool, code: u8) {
    let Checked { files, directories, subfiles, bytes, .. } = checked;
    let size = format_bytes(*bytes);
    say_line!("checked     {}", directory.display());
    say_line!(
        "holds       {files} files, {directories} directories; {subfiles} subfiles of {size}"
    );
    for note in &checked.notes {
        let place = note.place.strip_prefix(directory).unwrap_or(&note.place);
        let done = if repaired && note.what.is_mended() { "; mended" } else { "" };
        say_line!("{:<15} {}: {}{done}", note.what.word(), place.display(), note.what);
        if let Some(hurt) = &note.hurt {
            say_line!("{:<15} {}", "", told_of(hurt));
        }
    }
    let result = match code {
        DAMAGED => "damaged: `iolab fs rescue` copies out what is there",
        REPAIRED => "repaired",
        _ if checked.notes.iter().any(|note| note.what.is_mended()) => {
            "nothing is lost; --repair tidies up"
        }
        _ => "clean",
    };
    say_line!("result      {result}");
}

/// Extents of a file that are named one by one.
const EXTENTS_MAX: usize = 8;

/// Which bytes of a file are not what was written, and what to do.
fn told_of(Hurt { path, extents }: &Hurt) -> String {
    let row = |it: &Extent| format!("{} to {}", it.offset, it.end() - 1);
    let mut rows: Vec<String> = extents.iter().take(EXTENTS_MAX).map(row).collect();
    if extents.len() > EXTENTS_MAX {
        rows.push(format!("{} more (--json has all)", extents.len() - EXTENTS_MAX));
    }
    format!(
        "{}: bytes {}; write them anew, whole pages of 4 KiB, or restore the file from a copy",
        shown(path),
        rows.join(", ")
    )
}

fn say_json(checked: &Checked, repaired: bool, code: u8) {
    let notes = checked.notes.iter().map(|note| {
        json!({
            "place": note.place.to_string_lossy(),
            "what": note.what.word(),
            "text": note.what.to_string(),
            "damage": note.what.is_damage(),
            "mended": repaired && note.what.is_mended(),
            "file": note.hurt.as_ref().map(|hurt| String::from_utf8_lossy(&hurt.path)),
            "extents": note.hurt.as_ref().map(|hurt| {
                hurt.extents.iter().map(|it| [it.offset, it.length]).collect::<Vec<_>>()
            }),
        })
    });
    let told = json!({
        "files": checked.files,
        "directories": checked.directories,
        "subfiles": checked.subfiles,
        "bytes": checked.bytes,
        "notes": notes.collect::<Vec<_>>(),
        "exit_code": code,
    });
    say_line!("{told:#}");
}

pub(super) fn rescue(arguments: &Rescue) -> Result<ExitCode, Failure> {
    let directory = arguments.place.directory()?;
    let to = &arguments.to;
    let offline = Offline::take(&directory)?;
    let is_free = rescue::is_free(to).map_err(|error| unreadable(to, &error))?;
    if !is_free {
        return Err(Failure::new(format!("{} is not empty", to.display()))
            .hint("name a directory that is empty, or not there yet"));
    }
    let style = ProgressStyle::with_template("{pos} of {len} files {wide_bar} {eta}");
    let bar = ProgressBar::new(check::file_count(&offline));
    bar.set_style(style.expect("a template that is right"));
    let mut all = Vec::new();
    let done = rescue::rescue(&offline, to, &mut |rescued| {
        bar.inc(1);
        all.push(rescued);
    });
    bar.finish_and_clear();
    done.map_err(|error| {
        Failure::new(error)
            .note(format!("{} files are in {}", all.len(), to.display()))
            .hint("make room, or name another directory; what was copied is whole")
    })?;
    match arguments.json {
        true => say_rescued_json(&all),
        false => say_rescued(&all, to),
    }
    Ok(ExitCode::from(if all.iter().all(Rescued::is_whole) { 0 } else { DAMAGED }))
}

fn say_rescued(all: &[Rescued], to: &Path) {
    for it in all.iter().filter(|it| !it.is_whole()) {
        say_line!("{}: {}", shown(&it.path), flaws(it).join(", "));
    }
    let (bytes, whole): (u64, usize) =
        all.iter().fold((0, 0), |sum, it| (sum.0 + it.bytes, sum.1 + usize::from(it.is_whole())));
    let size = format_bytes(bytes);
    say_line!("rescued     {} files of {size} to {}; {whole} are whole", all.len(), to.display());
}

/// What a file has lost.
fn flaws(it: &Rescued) -> Vec<String> {
    let missing = it.missing.iter().map(|server| format!("without what was on server {server}"));
    let unreadable =
        (it.unreadable > 0).then(|| format!("{} bytes could not be read", it.unreadable));
    let changed =
        (it.changed > 0).then(|| format!("the device has changed {} pages of it", it.changed));
    let unnamed = (!it.is_named).then(|| "a subfile whose file has no name any more".to_owned());
    missing.chain(unreadable).chain(changed).chain(unnamed).collect()
}

fn say_rescued_json(all: &[Rescued]) {
    let files = all.iter().map(|it| {
        json!({
            "path": String::from_utf8_lossy(&it.path),
            "bytes": it.bytes,
            "whole": it.is_whole(),
            "missing_servers": it.missing,
            "unreadable_bytes": it.unreadable,
            "changed_pages": it.changed,
            "named": it.is_named,
        })
    });
    say_line!("{:#}", json!({ "files": files.collect::<Vec<_>>() }));
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
        .hint("the directory and all below must be readable, and writable to be repaired")
}
