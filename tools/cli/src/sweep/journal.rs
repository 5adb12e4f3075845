//! The journal of a sweep: a line of JSON per finished run, written as soon as it is there.
//!
//! The first line says which sweep it is of. A line that a kill has cut short is dropped, and one of
//! a single run from before answers were medians is left out, so that it is made again.

use crate::failure::Failure;
use crate::trace_file;
use iolab_report::sweep::Line;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Deserialize, Serialize)]
struct Head {
    sweep: String,
}

pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    lines: BTreeMap<u64, Line>,
}

impl Journal {
    /// Opens the journal of a directory, or begins it.
    pub(crate) fn open(
        directory: &Path,
        fingerprint: &str,
        fresh: bool,
    ) -> Result<Journal, Failure> {
        fs::create_dir_all(directory).map_err(|error| failed(directory, &error))?;
        let path = directory.join("journal.jsonl");
        if !fresh {
            refuse_foreign(directory, &path)?;
        }
        let old = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(_) => String::new(),
        };
        let mut lines = BTreeMap::new();
        let mut whole = old.split_inclusive('\n');
        // A head that was cut short is the beginning of the right one.
        let begun = render(fingerprint, &lines)?;
        let head = whole.next().filter(|_| !fresh);
        if let Some(head) = head.filter(|head| !begun.starts_with(head)) {
            check_head(head, fingerprint, directory)?;
        }
        if head.is_some_and(|head| head.ends_with('\n')) {
            let whole = whole.filter(|line| line.ends_with('\n'));
            lines.extend(whole.map_while(|line| {
                let line: Line = serde_json::from_str(line).ok()?;
                Some((line.run, line))
            }));
            let count = lines.len();
            lines.retain(|_, line: &mut Line| line.is_whole());
            match count - lines.len() {
                0 => {}
                old => eprintln!("{old} runs are of single orders of events and are made again"),
            }
        }
        let text = render(fingerprint, &lines)?;
        trace_file::save_quietly(&path, text.as_bytes())?;
        let file =
            OpenOptions::new().append(true).open(&path).map_err(|error| failed(&path, &error))?;
        Ok(Journal { path, file, lines })
    }

    /// Runs that are finished.
    pub(crate) fn done(&self) -> BTreeSet<u64> {
        self.lines.keys().copied().collect()
    }

    /// Keeps a finished run; one write, so that a kill cuts at most this line.
    pub(crate) fn append(&mut self, line: Line) -> Result<(), Failure> {
        let text = serde_json::to_string(&line).map_err(Failure::new)? + "\n";
        self.file.write_all(text.as_bytes()).map_err(|error| failed(&self.path, &error))?;
        self.lines.insert(line.run, line);
        Ok(())
    }

    /// All runs, by number.
    pub(crate) fn lines(self) -> Vec<Line> {
        self.lines.into_values().collect()
    }
}

/// Results beside no journal are of something else.
fn refuse_foreign(directory: &Path, journal: &Path) -> Result<(), Failure> {
    let there = |name: &&str| fs::symlink_metadata(directory.join(name)).is_ok();
    let mut results = ["results.csv", "results.parquet", "comparison.html"].iter();
    match results.find(|name| !there(&"journal.jsonl") && there(name)) {
        Some(name) => Err(Failure::new(format!(
            "{} is not of this sweep: there is no {} beside it",
            directory.join(name).display(),
            journal.file_name().unwrap_or_default().display()
        ))
        .hint("name another directory by -o DIR, or replace it by --fresh")),
        None => Ok(()),
    }
}

fn render(fingerprint: &str, lines: &BTreeMap<u64, Line>) -> Result<String, Failure> {
    let head = Head { sweep: fingerprint.to_owned() };
    let mut text = serde_json::to_string(&head).map_err(Failure::new)? + "\n";
    for line in lines.values() {
        text += &serde_json::to_string(line).map_err(Failure::new)?;
        text.push('\n');
    }
    Ok(text)
}

fn check_head(line: &str, fingerprint: &str, directory: &Path) -> Result<(), Failure> {
    let head: Option<Head> = serde_json::from_str(line).ok();
    match head {
        Some(head) if head.sweep == fingerprint => Ok(()),
        Some(_) => Err(Failure::new(format!(
            "{} has runs of another sweep: the sweep, its workload or its platform has changed",
            directory.display()
        ))
        .hint("--fresh throws them away; -o DIR keeps both")),
        None => Err(Failure::new(format!("{} is no journal of a sweep", directory.display()))
            .hint("name another directory by -o DIR, or throw it away by --fresh")),
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display())).hint("name another directory by -o DIR")
}
