//! Traces of DFTracer (`.pfw`, `.pfw.gz`): an event a line, a file a process.
//!
//! Names of files and hosts stand in each event (2023), or behind hashes whose rows may come later in the
//! file (since 2024). Offsets of `read` and `write` follow from opens and seeks. Events of the layers above
//! POSIX and stdio are counted as left out.

mod line;
mod rows;

pub(super) use rows::{Seeks, flags, followed};

use crate::{Class, Clock, Event, Function, Header, Layer, Origin, ProcessEntry, Trace};
use flate2::bufread::MultiGzDecoder;
use iolab_vocab::Nanos;
use line::{Line, Phase, Scalar, number, text};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

use super::shared::{
    self, Files, LINE_BYTES_MAX, ROWS_MAX, TIME_END_NS, WITHOUT_FILE, end_processes, has_no_end,
    is_of_a_file,
};

/// Why a trace of DFTracer could not be read.
#[derive(Debug)]
pub enum DftracerError {
    /// It has no event of DFTracer.
    NoEvents,
    /// More calls than are taken at once.
    TooLarge,
    /// Its calls, so many, do not say what they were on.
    NoFiles(u64),
    /// It could not be read, or its compression is damaged.
    Io(io::Error),
}

impl DftracerError {
    /// A way out.
    pub fn hint(&self) -> &'static str {
        match self {
            DftracerError::NoEvents => {
                "a trace of DFTracer has a JSON object with name, ph, pid and tid in each line"
            }
            DftracerError::TooLarge => "import fewer files of the directory at once",
            DftracerError::NoFiles(_) => "set DFTRACER_INC_METADATA=1 where the program runs",
            DftracerError::Io(_) => "see whether `gzip -t` finds it whole",
        }
    }
}

impl fmt::Display for DftracerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DftracerError::NoEvents => write!(f, "this is no trace of DFTracer, or has no event"),
            DftracerError::TooLarge => write!(f, "it has more than {ROWS_MAX} calls"),
            DftracerError::NoFiles(calls) => {
                write!(f, "it has {calls} calls, and the file of none of them")
            }
            DftracerError::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for DftracerError {}

/// Whether a file that begins so, compressed or not, is a trace of DFTracer. A head of some thousand bytes holds
/// the first event.
pub fn is_dftracer(head: &[u8]) -> bool {
    let mut plain = Vec::new();
    if head.starts_with(&GZIP) {
        // The head ends within a member: what comes out before that is enough.
        let _ = MultiGzDecoder::new(head).take(HEAD_BYTES_MAX).read_to_end(&mut plain);
    } else {
        plain.extend_from_slice(head);
    }
    let text = String::from_utf8_lossy(&plain);
    let first = text.lines().map(event_text).find(|line| !line.is_empty());
    first.and_then(Line::parse).is_some_and(|line| line.is_dftracers())
}

/// The event in a line: without the signs of the list it is in.
fn event_text(line: &str) -> &str {
    line.trim().trim_end_matches([',', ']']).trim_start_matches('[').trim()
}

/// Bytes of a compressed head that are looked at.
const HEAD_BYTES_MAX: u64 = 1 << 16;

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Traces of the processes of a run, read one after the other.
#[derive(Default)]
pub struct Dftracer {
    header: Header,
    rows: Vec<rows::Row>,
    files: Files,
    processes: BTreeMap<(String, u32), u32>,
    /// Of each process the numbers of its threads, in the order they were seen in.
    threads: Vec<BTreeMap<u64, u32>>,
    events: u64,
    unreadable: u64,
    cut_files: u64,
}

/// What a file says about itself, known only when all of it is read.
#[derive(Default)]
struct Facts {
    /// Names of files, hosts and texts by their hash.
    names: BTreeMap<(Kind, String), String>,
    ranks: BTreeMap<u32, i32>,
    commands: BTreeMap<u32, (Option<String>, u32)>,
    ended: Vec<u32>,
    /// The file ends within what it was to hold.
    is_cut: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    File,
    Host,
    Text,
}

/// A name, or the hash it stands behind.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Known(String),
    Hash(String),
}

impl Name {
    fn of(known: Option<&String>, hash: Option<&Scalar>) -> Option<Name> {
        known.cloned().map(Name::Known).or_else(|| text(hash).map(Name::Hash))
    }
}

impl Facts {
    fn name(&self, kind: Kind, name: &Name) -> String {
        match name {
            Name::Known(name) => name.clone(),
            Name::Hash(hash) => {
                self.names.get(&(kind, hash.clone())).cloned().unwrap_or_else(|| match kind {
                    Kind::File => format!("file {hash}"),
                    Kind::Host => format!("host {hash}"),
                    Kind::Text => String::new(),
                })
            }
        }
    }

    /// A row that says what a number stands for.
    fn learn(&mut self, line: &Line) {
        let kind = match line.name.as_str() {
            "FH" => Kind::File,
            "HH" => Kind::Host,
            "SH" => Kind::Text,
            "PR" => {
                let is_rank = text(line.args.name.as_ref()).is_some_and(|name| name == "rank");
                let rank =
                    number(line.args.value.as_ref()).and_then(|rank| i32::try_from(rank).ok());
                if let (true, Some(rank)) = (is_rank, rank.filter(|rank| *rank >= 0)) {
                    self.ranks.insert(pid(line), rank);
                }
                return;
            }
            _ => return,
        };
        if let (Some(name), Some(hash)) =
            (text(line.args.name.as_ref()), text(line.args.value.as_ref()))
        {
            self.names.insert((kind, hash), name);
        }
    }
}

fn pid(line: &Line) -> u32 {
    line.pid.number().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0)
}

/// A call of one file, its names not looked up yet.
struct Found {
    host: Option<Name>,
    pid: u32,
    tid: u64,
    file: Name,
    row: rows::Row,
}

impl Dftracer {
    /// Reads the file of a process, or of several; also compressed, in any number of members.
    pub fn file(&mut self, mut bytes: impl BufRead) -> Result<(), DftracerError> {
        let is_packed = bytes.fill_buf().map_err(DftracerError::Io)?.starts_with(&GZIP);
        match is_packed {
            true => self.lines(BufReader::new(MultiGzDecoder::new(bytes))),
            false => self.lines(bytes),
        }
    }

    fn lines(&mut self, mut lines: impl BufRead) -> Result<(), DftracerError> {
        let mut facts = Facts::default();
        let mut found = Vec::new();
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            match lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes) {
                Ok(0) => break,
                Ok(_) => {}
                // A compressed file that was not written to its end: what came so far is whole.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    facts.is_cut = true;
                    self.cut_files += 1;
                    break;
                }
                Err(error) => return Err(DftracerError::Io(error)),
            }
            if self.events == 0 && has_no_end(&bytes) {
                return Err(DftracerError::NoEvents);
            }
            let text = String::from_utf8_lossy(&bytes);
            let text = event_text(&text);
            if text.is_empty() {
                continue;
            }
            match Line::parse(text) {
                Some(line) => {
                    self.events += 1;
                    found.extend(self.event(&line, &mut facts));
                }
                None => self.unreadable += 1,
            }
            if self.rows.len() + found.len() > ROWS_MAX {
                return Err(DftracerError::TooLarge);
            }
        }
        self.keep(found, &facts);
        Ok(())
    }

    /// The call that an event is, if it is one of POSIX or stdio that rows are kept of.
    fn event(&mut self, line: &Line, facts: &mut Facts) -> Option<Found> {
        if line.phase() == Phase::Fact {
            facts.learn(line);
            return None;
        }
        let host = Name::of(line.args.hostname.as_ref(), line.args.hhash.as_ref());
        let layer = match line.cat.as_str() {
            "POSIX" => Layer::Posix,
            "STDIO" => Layer::Stdio,
            "dftracer" => {
                match line.name.as_str() {
                    "start" => {
                        let parent =
                            number(line.args.ppid.as_ref()).and_then(|pid| u32::try_from(pid).ok());
                        let command = text(line.args.cmd_hash.as_ref());
                        facts.commands.insert(pid(line), (command, parent.unwrap_or(0)));
                    }
                    "end" => facts.ended.push(pid(line)),
                    _ => {}
                }
                return None;
            }
            other => return self.leave_out(&format!("events of {other}")),
        };
        let Some(function) = rows::function(&line.name).filter(|found| found.layer() == layer)
        else {
            return self.leave_out(&line.name);
        };
        let file = Name::of(line.args.fname.as_ref(), line.args.fhash.as_ref());
        let (Some((start_us, took_us)), Some(file)) = (line.time_us(), file) else {
            return self.leave_out(WITHOUT_FILE);
        };
        let row = rows::Row::of(function, start_us, took_us, &line.args);
        let tid = line.tid.number().unwrap_or(0) as u64;
        Some(Found { host, pid: pid(line), tid, file, row })
    }

    fn leave_out(&mut self, rule: &str) -> Option<Found> {
        shared::leave_out(&mut self.header, rule, 1);
        None
    }

    /// Takes the calls of a file, now that all its names are known.
    fn keep(&mut self, found: Vec<Found>, facts: &Facts) {
        for Found { host, pid, tid, file, mut row } in found {
            let host = host.map(|host| facts.name(Kind::Host, &host)).unwrap_or_default();
            let process = self.process(&host, pid, facts);
            let threads = &mut self.threads[process as usize];
            let next = threads.len() as u32;
            row.event.process = process;
            row.event.thread = *threads.entry(tid).or_insert(next);
            let path = facts.name(Kind::File, &file);
            row.event.file = self.files.id(&mut self.header, path);
            self.rows.push(row);
        }
    }

    fn process(&mut self, host: &str, pid: u32, facts: &Facts) -> u32 {
        let header = &mut self.header;
        let threads = &mut self.threads;
        *self.processes.entry((host.to_owned(), pid)).or_insert_with(|| {
            let (command, parent_pid) = facts.commands.get(&pid).cloned().unwrap_or_default();
            let command =
                command.map(|hash| facts.name(Kind::Text, &Name::Hash(hash))).unwrap_or_default();
            let has_no_end = facts.is_cut || facts.commands.contains_key(&pid);
            let is_cut = has_no_end && !facts.ended.contains(&pid);
            // Release 2 keeps the words apart.
            let separator = if command.contains(';') { ';' } else { ' ' };
            threads.push(BTreeMap::new());
            header.processes.push(ProcessEntry {
                pid,
                parent_pid,
                rank: facts.ranks.get(&pid).copied().unwrap_or(-1),
                command: command
                    .split(separator)
                    .filter(|word| !word.is_empty())
                    .map(str::to_owned)
                    .collect(),
                host: host.to_owned(),
                ending: if is_cut { "cut" } else { "exited" }.to_owned(),
                ..ProcessEntry::default()
            });
            header.processes.len() as u32 - 1
        })
    }

    /// The trace of all files read.
    pub fn finish(mut self) -> Result<Trace, DftracerError> {
        if self.events == 0 {
            return Err(DftracerError::NoEvents);
        }
        if let (true, Some(calls)) =
            (self.rows.is_empty(), self.header.losses.left_out_calls.get(WITHOUT_FILE))
        {
            return Err(DftracerError::NoFiles(*calls));
        }
        self.name_processes();
        let mut header = self.header;
        if self.unreadable > 0 {
            header.losses.lost_calls.insert("unreadable lines".to_owned(), self.unreadable);
        }
        if self.cut_files > 0 {
            let reason = "at the cut end of a compressed file, at least";
            header.losses.lost_calls.insert(reason.to_owned(), self.cut_files);
        }
        let zero_us = self.rows.iter().map(|row| row.start_us).min().unwrap_or(0);
        let before = self.rows.len();
        self.rows.retain_mut(|row| row.place(zero_us));
        let impossible = (before - self.rows.len()) as u64;
        if impossible > 0 {
            header.losses.lost_calls.insert("with times that cannot be".to_owned(), impossible);
        }
        let events = self.rows.into_iter().map(|row| row.event).collect();
        let events = followed(events, &header, Seeks::Told);
        end_processes(&mut header, &events);
        header.origin = Origin::Imported;
        header.interposer = "dftracer".to_owned();
        header.host =
            header.processes.first().map(|process| process.host.clone()).unwrap_or_default();
        header.command =
            header.processes.first().map(|process| process.command.clone()).unwrap_or_default();
        header.clock = Clock {
            source: "dftracer".to_owned(),
            zero_unix_ns: zero_us.saturating_mul(1_000),
            resolution_ns: 1_000,
            ..Clock::default()
        };
        header.inferred.extend([
            "offsets of read, write and calls on streams, from the calls before them".to_owned(),
            "that calls whose result was not kept succeeded, and the numbers of what they opened"
                .to_owned(),
            "error numbers: none is kept".to_owned(),
        ]);
        header.losses.unseen.push("stores through mmap".to_owned());
        Ok(Trace { header, events, ..Trace::default() })
    }

    /// Ranks and names. The format of 2023 has the rank where others have the number of the process: then no
    /// thread has that number.
    fn name_processes(&mut self) {
        let mut is_inferred = false;
        let entries = self.header.processes.iter_mut().zip(&self.threads);
        for (entry, threads) in entries {
            let is_rank = entry.rank < 0
                && entry.parent_pid == 0
                && !threads.contains_key(&u64::from(entry.pid))
                && i32::try_from(entry.pid).is_ok();
            if is_rank {
                entry.rank = entry.pid as i32;
                is_inferred = true;
            }
            entry.name = match entry.rank {
                0.. => format!("rank {}", entry.rank),
                _ => format!("process {}", entry.pid),
            };
        }
        if is_inferred {
            let fact = "that numbers of processes which no thread has are ranks";
            self.header.inferred.push(fact.to_owned());
        }
    }
}
