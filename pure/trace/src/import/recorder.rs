//! Traces of Recorder (2.4, 3.x), as the text that `recorder2text` makes of them: a file a rank, a call a line.
//!
//! ```text
//! 0.001200 0.001300 pwrite 1 0 ( /data/a 0x7ffd10 4096 8192 )
//! ```
//!
//! Start and end in seconds, the function, its level and kind, and its arguments in the order of C, a path in
//! the place of descriptor or stream. Results are not kept: what was asked for is taken as what was moved.
//! Or as the rows of the tables that `recorder2parquet` makes, which say the same of all ranks ([`Row`]).

mod arguments;

use super::dftracer::{Seeks, followed};
use super::hdtrace;
use super::otf2::access;
use super::shared::{
    self, Files, LINE_BYTES_MAX, ROWS_MAX, TIME_END_NS, WITHOUT_FILE, end_processes, has_no_end,
    is_of_a_file,
};
use crate::finish::adopt;
use crate::{Clock, Event, Function, Header, Layer, Origin, ProcessEntry, Trace, function};
use arguments::{Arguments, Said};
use iolab_vocab::Nanos;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, Read};

/// Why a trace of Recorder could not be read.
#[derive(Debug)]
pub enum RecorderError {
    /// None of its lines is a call that rows are kept of.
    NoCalls,
    /// More calls than are taken at once.
    TooLarge,
    /// A table is not what `recorder2parquet` writes, or is damaged.
    Table(String),
    /// It could not be read.
    Io(io::Error),
}

impl RecorderError {
    /// A way out.
    pub fn hint(&self) -> &'static str {
        match self {
            RecorderError::NoCalls => {
                "recorder2text writes a call a line: start, end, function, level, kind, ( arguments )"
            }
            RecorderError::Table(_) => {
                "make it again by `recorder2parquet DIRECTORY` of Recorder, or use `recorder2text DIRECTORY`"
            }
            RecorderError::TooLarge => "import the files of fewer ranks at once",
            RecorderError::Io(_) => "make it again by `recorder2text DIRECTORY`",
        }
    }
}

impl fmt::Display for RecorderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecorderError::NoCalls => write!(f, "this trace of Recorder has no call of I/O"),
            RecorderError::TooLarge => write!(f, "it has more than {ROWS_MAX} calls"),
            RecorderError::Table(problem) => write!(f, "this table of Recorder: {problem}"),
            RecorderError::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for RecorderError {}

/// A call as it stands in a line or row.
struct Call<'a> {
    start: Nanos,
    end: Nanos,
    thread: i32,
    name: &'a str,
    arguments: Vec<&'a str>,
}

/// A call as a row of a table has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row<'a> {
    /// Who made it.
    pub rank: i32,
    /// What its thread is called, by any number.
    pub thread: i32,
    /// When it began and ended, in seconds since the start of the run.
    pub start_s: f64,
    /// See `start_s`.
    pub end_s: f64,
    /// The function's symbol.
    pub name: &'a str,
    /// Its arguments in the order of C.
    pub arguments: Vec<&'a str>,
}

impl<'a> Call<'a> {
    fn parse(line: &'a str) -> Option<Call<'a>> {
        let (start, rest) = line.trim_start().split_once(' ')?;
        let (end, rest) = rest.split_once(' ')?;
        let (head, arguments) = rest.split_once('(')?;
        let mut words = head.split_whitespace();
        let name = words.next()?;
        // Level and kind, before 3 also the thread: how calls lie in each other, their times say.
        let are_numbers = words.all(|word| word.parse::<i64>().is_ok());
        let arguments = arguments.trim_end().strip_suffix(')')?.trim();
        let (start, end) = (nanos(start)?, nanos(end)?);
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let arguments = arguments.split(' ').collect();
        let call = Call { start, end, thread: 0, name, arguments };
        (are_numbers && is_name && start <= end).then_some(call)
    }

    /// What a row says, where its times can be.
    fn of(row: Row<'a>) -> Option<Call<'a>> {
        let Row { thread, name, arguments, .. } = row;
        let (start, end) = (rounded(row.start_s)?, rounded(row.end_s)?);
        (start <= end).then_some(Call { start, end, thread, name, arguments })
    }
}

/// Seconds as the nearest nanosecond.
fn rounded(seconds: f64) -> Option<Nanos> {
    let nanos = (seconds * 1e9).round();
    (0.0..TIME_END_NS as f64).contains(&nanos).then_some(Nanos(nanos as u64))
}

/// Seconds with a fraction, which a float would round.
fn nanos(text: &str) -> Option<Nanos> {
    let (seconds, fraction) = text.split_once('.')?;
    let fraction = fraction.get(..fraction.len().min(9))?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    if !is_number(seconds) || !is_number(fraction) {
        return None;
    }
    let scale = 10_u64.pow(9 - fraction.len() as u32);
    let whole = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?;
    let nanos = whole.checked_add(fraction.parse::<u64>().ok()? * scale)?;
    (nanos < TIME_END_NS).then_some(Nanos(nanos))
}

/// Whether a file that begins so is the text of a rank.
pub fn is_recorder(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    text.lines().next().is_some_and(|line| Call::parse(line).is_some())
}

/// Texts or tables of the ranks of a run, read one after the other.
#[derive(Default)]
pub struct Recorder {
    header: Header,
    events: Vec<Event>,
    files: Files,
    ranks: BTreeMap<i32, Rank>,
    unreadable: u64,
    has_rows: bool,
}

/// What is known of a rank.
#[derive(Default)]
struct Rank {
    process: u32,
    /// Files of MPI-IO are named by a number when they are open.
    opened: BTreeMap<String, String>,
    /// What its threads are called, in the order they were met.
    threads: Vec<i32>,
}

impl Rank {
    fn thread(&mut self, called: i32) -> u32 {
        let known = self.threads.iter().position(|&thread| thread == called);
        let at = known.unwrap_or_else(|| {
            self.threads.push(called);
            self.threads.len() - 1
        });
        at as u32
    }
}

/// How far the times of tables, which are floats of 32 bits, lie apart at the end of the run.
fn spacing(events: &[Event]) -> String {
    let end_s = events.iter().map(|event| event.end.seconds() as f32).fold(0.0, f32::max);
    let step_s = f64::from(end_s.next_up()) - f64::from(end_s);
    format!("of 24 bits in such a table: {} µs apart at the end", (step_s * 1e8).ceil() / 100.0)
}

/// What a call is of, if rows are kept of it.
fn function(name: &str) -> Option<Function> {
    if let Some(name) = name.strip_prefix("MPI_") {
        let function = access(name).or_else(|| hdtrace::function_of_mpi(name));
        return function.filter(|function| function.layer() == Layer::Mpiio);
    }
    let row = function::TABLE
        .iter()
        .find(|row| row.symbols.contains(&name) || row.by_hand.contains(&name))?;
    let is_here = matches!(row.layer, Layer::Posix | Layer::Stdio);
    (is_of_a_file(row.class) && is_here).then_some(row.function)
}

impl Recorder {
    /// Reads the text of a rank.
    ///
    /// # Errors
    /// That it cannot be read, or has more calls than are taken.
    pub fn rank(&mut self, rank: u32, mut text: impl BufRead) -> Result<(), RecorderError> {
        let rank = i32::try_from(rank).unwrap_or(i32::MAX - 1);
        self.enter(rank);
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let mut line = text.by_ref().take(LINE_BYTES_MAX);
            if line.read_until(b'\n', &mut bytes).map_err(RecorderError::Io)? == 0 {
                return Ok(());
            }
            if self.events.is_empty() && has_no_end(&bytes) {
                return Err(RecorderError::NoCalls);
            }
            let line = String::from_utf8_lossy(&bytes);
            match Call::parse(&line) {
                Some(call) => self.call(rank, &call)?,
                None => self.unreadable += u64::from(!line.trim().is_empty()),
            }
        }
    }

    /// Takes a row of a table.
    ///
    /// # Errors
    /// That there are more calls than are taken.
    pub fn row(&mut self, row: Row<'_>) -> Result<(), RecorderError> {
        self.has_rows = true;
        let rank = row.rank;
        self.enter(rank);
        match Call::of(row) {
            Some(call) => self.call(rank, &call),
            None => {
                self.unreadable += 1;
                Ok(())
            }
        }
    }

    /// Makes a process of a rank when it is met for the first time.
    fn enter(&mut self, rank: i32) {
        if self.ranks.contains_key(&rank) {
            return;
        }
        let process = self.header.processes.len() as u32;
        self.ranks.insert(rank, Rank { process, ..Rank::default() });
        self.header.processes.push(ProcessEntry {
            name: format!("rank {rank}"),
            rank,
            ending: "exited".to_owned(),
            ..ProcessEntry::default()
        });
    }

    fn call(&mut self, rank: i32, call: &Call) -> Result<(), RecorderError> {
        let Some(function) = function(call.name) else {
            self.leave_out(call.name);
            return Ok(());
        };
        let said = Arguments::of(function, call.name, &call.arguments).said();
        let Said { file, handle, offset, length, argument } = said;
        let rank = self.ranks.entry(rank).or_default();
        let path = match (file, handle) {
            (Some(path), Some(handle)) => {
                rank.opened.insert(handle.to_owned(), path.clone());
                Some(path)
            }
            (None, Some(handle)) => rank.opened.get(handle).cloned(),
            (path, None) => path,
        };
        let (process, thread) = (rank.process, rank.thread(call.thread));
        let Some(path) = path.filter(|path| !path.is_empty()) else {
            self.leave_out(WITHOUT_FILE);
            return Ok(());
        };
        let moved = if function.class().moves_data() { length.max(0) } else { 0 };
        let file = self.files.id(&mut self.header, path);
        self.events.push(Event {
            process,
            thread,
            file,
            offset,
            length,
            argument,
            start: call.start,
            end: call.end,
            result: moved,
            ..Event::of(function)
        });
        match self.events.len() > ROWS_MAX {
            true => Err(RecorderError::TooLarge),
            false => Ok(()),
        }
    }

    fn leave_out(&mut self, rule: &str) {
        shared::leave_out(&mut self.header, rule, 1);
    }

    /// The trace of all ranks read.
    ///
    /// # Errors
    /// That they have no call of I/O.
    pub fn finish(self) -> Result<Trace, RecorderError> {
        if self.events.is_empty() {
            return Err(RecorderError::NoCalls);
        }
        let mut header = self.header;
        let mut events = followed(self.events, &header, Seeks::Untold);
        adopt(&mut events);
        end_processes(&mut header, &events);
        if self.unreadable > 0 {
            let what = if self.has_rows { "unreadable rows" } else { "unreadable lines" };
            header.losses.lost_calls.insert(what.to_owned(), self.unreadable);
        }
        header.origin = Origin::Imported;
        header.interposer = "recorder".to_owned();
        header.clock =
            Clock { source: "recorder".to_owned(), resolution_ns: 1, ..Clock::default() };
        header.inferred.extend([
            "that every call succeeded, and moved as many bytes as were asked for".to_owned(),
            "offsets of read, write and calls on streams, from the calls before them".to_owned(),
            match self.has_rows {
                true => "numbers of descriptors".to_owned(),
                false => "numbers of descriptors; that a rank has one thread".to_owned(),
            },
            "bytes of MPI-IO, from count and datatype: of a derived datatype none".to_owned(),
        ]);
        if self.has_rows {
            header.inferred.push(format!("times, {}", spacing(&events)));
        }
        header.losses.unseen.push("stores through mmap".to_owned());
        Ok(Trace { header, events, ..Trace::default() })
    }
}
