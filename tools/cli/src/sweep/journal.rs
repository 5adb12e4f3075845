//! The journals of a sweep: a line of JSON per finished run, written as soon as it is there.
//!
//! Every process that works on a sweep has a journal of its own in the directory of the results:
//! `journal.jsonl`, or `journal-2-of-8.jsonl` for the second of eight shards. It holds it by a lock as long as it
//! runs, and only reads those of the others; so jobs on several nodes need nothing but a common directory.
//!
//! The first line of a journal says which sweep it is of. A line that a kill has cut short is dropped,
//! and one of a single run from before answers were medians is left out, so that it is made again.

use super::shard::Shard;
use crate::failure::Failure;
use iolab_report::sweep::Line;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const WHOLE: &str = "journal.jsonl";
const RESULTS: [&str; 3] = ["results.csv", "results.parquet", "comparison.html"];

#[derive(Deserialize, Serialize)]
struct Head {
    sweep: String,
}

/// What this process writes, and what it knows of the others.
pub(crate) struct Journal {
    directory: PathBuf,
    fingerprint: String,
    path: PathBuf,
    file: File,
    lines: BTreeMap<u64, Line>,
}

impl Journal {
    /// Opens the journal of a directory, or begins it, and reads those of others. A sweep as a whole
    /// waits for no shard: while one is at work it is refused.
    pub(crate) fn open(
        directory: &Path,
        fingerprint: &str,
        shard: Option<Shard>,
        fresh: bool,
    ) -> Result<Journal, Failure> {
        fs::create_dir_all(directory).map_err(|error| failed(directory, &error))?;
        let path = directory.join(shard.map_or(WHOLE.to_owned(), |shard| shard.journal()));
        let others: Vec<PathBuf> =
            journals(directory)?.into_iter().filter(|one| *one != path).collect();
        if !fresh {
            refuse_foreign(directory, &path, &others)?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| failed(&path, &error))?;
        lock(&file, &path)?;
        // Shards go on beside each other, but beside nobody who works on the whole.
        for other in &others {
            if shard.is_none() || other.file_name().is_some_and(|name| name == WHOLE) {
                let other_file = File::open(other).map_err(|error| failed(other, &error))?;
                lock(&other_file, other)?;
            }
        }
        if fresh {
            for other in others.iter().filter(|other| is_journal(other)) {
                fs::remove_file(other).map_err(|error| failed(other, &error))?;
            }
        }
        let lines = begun(&mut file, &path, fingerprint, directory, fresh)?;
        let (directory, fingerprint) = (directory.to_owned(), fingerprint.to_owned());
        let mut journal = Journal { directory, fingerprint, path, file, lines };
        match journal.lines.values().filter(|line| !line.is_whole()).count() {
            0 => {}
            old => eprintln!("{old} runs are of single orders of events and are made again"),
        }
        journal.lines.retain(|_, line| line.is_whole());
        journal.look_around()?;
        Ok(journal)
    }

    /// Reads what the others have finished by now.
    pub(crate) fn look_around(&mut self) -> Result<(), Failure> {
        for other in journals(&self.directory)?.into_iter().filter(|one| *one != self.path) {
            let text = fs::read(&other).map_err(|error| failed(&other, &error))?;
            let read = read(&String::from_utf8_lossy(&text), &self.fingerprint, &self.directory)?;
            for (run, line) in read.lines.into_iter().filter(|(_, line)| line.is_whole()) {
                self.lines.entry(run).or_insert(line);
            }
        }
        Ok(())
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
    pub(crate) fn lines(&self) -> Vec<Line> {
        self.lines.values().cloned().collect()
    }
}

/// Makes what a journal holds one that can be appended to: a head, and whole lines.
fn begun(
    file: &mut File,
    path: &Path,
    fingerprint: &str,
    directory: &Path,
    fresh: bool,
) -> Result<BTreeMap<u64, Line>, Failure> {
    let broken = |error: std::io::Error| failed(path, &error);
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(broken)?;
    let old = match fresh {
        true => Old::default(),
        false => read(&String::from_utf8_lossy(&bytes), fingerprint, directory)?,
    };
    if old.bytes < bytes.len() as u64 {
        file.set_len(old.bytes).map_err(broken)?;
    }
    file.seek(SeekFrom::Start(old.bytes)).map_err(broken)?;
    if old.bytes == 0 {
        file.write_all(head(fingerprint)?.as_bytes()).map_err(broken)?;
    }
    Ok(old.lines)
}

/// What stands in a journal up to the first line that is not whole.
#[derive(Default)]
struct Old {
    lines: BTreeMap<u64, Line>,
    bytes: u64,
}

fn read(text: &str, fingerprint: &str, directory: &Path) -> Result<Old, Failure> {
    let mut old = Old::default();
    let mut whole = text.split_inclusive('\n');
    let Some(first) = whole.next() else { return Ok(old) };
    // A head that was cut short is the beginning of the right one.
    let right = head(fingerprint)?;
    if !right.starts_with(first) {
        check_head(first, directory)?;
    }
    if first.ends_with('\n') {
        old.bytes = first.len() as u64;
        for line in whole.filter(|line| line.ends_with('\n')) {
            let Ok(run) = serde_json::from_str::<Line>(line) else { break };
            old.bytes += line.len() as u64;
            old.lines.insert(run.run, run);
        }
    }
    Ok(old)
}

/// The journals that are in a directory.
fn journals(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(directory).map_err(|error| failed(directory, &error))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut found: Vec<PathBuf> = names
        .filter(|name| name == WHOLE || Shard::of_journal(name).is_some())
        .map(|name| directory.join(name))
        .collect();
    found.sort();
    Ok(found)
}

/// Whether it is one, of whatever sweep: only the name may be like one.
fn is_journal(path: &Path) -> bool {
    let text = fs::read(path).unwrap_or_default();
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    serde_json::from_slice::<Head>(first).is_ok()
}

fn lock(file: &File, path: &Path) -> Result<(), Failure> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Failure::new(format!(
            "{} is being written: another call works on this sweep",
            path.display()
        ))
        .hint(
            "wait for its end, share the work by --shard I/N, or name another directory by -o DIR",
        )),
        // A file system without locks: who starts two calls with one journal is on their own.
        Err(TryLockError::Error(_)) => Ok(()),
    }
}

/// Results beside no journal are of something else.
fn refuse_foreign(directory: &Path, journal: &Path, others: &[PathBuf]) -> Result<(), Failure> {
    let there = |path: &Path| fs::symlink_metadata(path).is_ok();
    if there(journal) || !others.is_empty() {
        return Ok(());
    }
    match RESULTS.map(|name| directory.join(name)).into_iter().find(|path| there(path)) {
        Some(path) => Err(Failure::new(format!(
            "{} is not of this sweep: there is no {} beside it",
            path.display(),
            journal.file_name().unwrap_or_default().display()
        ))
        .hint("name another directory by -o DIR, or replace it by --fresh")),
        None => Ok(()),
    }
}

fn head(fingerprint: &str) -> Result<String, Failure> {
    let head = Head { sweep: fingerprint.to_owned() };
    Ok(serde_json::to_string(&head).map_err(Failure::new)? + "\n")
}

/// Why a first line is not the head of this sweep's journal.
fn check_head(line: &str, directory: &Path) -> Result<(), Failure> {
    Err(match serde_json::from_str::<Head>(line) {
        Ok(_) => Failure::new(format!(
            "{} has runs of another sweep: the sweep, its workload or its platform has changed",
            directory.display()
        ))
        .hint("--fresh throws them away; -o DIR keeps both"),
        Err(_) => Failure::new(format!("{} is no journal of a sweep", directory.display()))
            .hint("name another directory by -o DIR, or throw it away by --fresh"),
    })
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display())).hint("name another directory by -o DIR")
}
