//! Traces of Recorder (2.4, 3.x), as the text that `recorder2text` makes of them: a file a rank, a call a line.
//!
//! ```text
//! 0.001200 0.001300 pwrite 1 0 ( /data/a 0x7ffd10 4096 8192 )
//! ```
//!
//! Start and end in seconds, the function, its level and kind, and its arguments in the order of C, a path in
//! the place of descriptor or stream. Results are not kept: what was asked for is taken as what was moved.

mod arguments;

use super::dftracer::{Seeks, followed};
use super::hdtrace;
use super::otf2::access;
use super::shared::{
    self, Files, LINE_BYTES_MAX, ROWS_MAX, TIME_END_NS, WITHOUT_FILE, end_processes, is_of_a_file,
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
            RecorderError::TooLarge => "import the files of fewer ranks at once",
            RecorderError::Io(_) => "make it again by `recorder2text DIRECTORY`",
        }
    }
}

impl fmt::Display for RecorderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecorderError::NoCalls => write!(f, "this text of Recorder has no call of I/O"),
            RecorderError::TooLarge => write!(f, "it has more than {ROWS_MAX} calls"),
            RecorderError::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for RecorderError {}

/// A call as it stands in a line.
struct Call<'a> {
    start: Nanos,
    end: Nanos,
    name: &'a str,
    arguments: &'a str,
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
        (are_numbers && is_name && start <= end).then_some(Call { start, end, name, arguments })
    }
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

/// Texts of the ranks of a run, read one after the other.
#[derive(Default)]
pub struct Recorder {
    header: Header,
    events: Vec<Event>,
    files: Files,
    unreadable: u64,
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
        let process = self.header.processes.len() as u32;
        let rank = i32::try_from(rank).unwrap_or(i32::MAX - 1);
        self.header.processes.push(ProcessEntry {
            name: format!("rank {rank}"),
            rank,
            ending: "exited".to_owned(),
            ..ProcessEntry::default()
        });
        // Files of MPI-IO are named by a number when they are open.
        let mut opened = BTreeMap::new();
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let mut line = text.by_ref().take(LINE_BYTES_MAX);
            if line.read_until(b'\n', &mut bytes).map_err(RecorderError::Io)? == 0 {
                return Ok(());
            }
            let line = String::from_utf8_lossy(&bytes);
            match Call::parse(&line) {
                Some(call) => self.call(process, &call, &mut opened),
                None => self.unreadable += u64::from(!line.trim().is_empty()),
            }
            if self.events.len() > ROWS_MAX {
                return Err(RecorderError::TooLarge);
            }
        }
    }

    fn call(&mut self, process: u32, call: &Call, opened: &mut BTreeMap<String, String>) {
        let Some(function) = function(call.name) else { return self.leave_out(call.name) };
        let said = Arguments::of(function, call.name, call.arguments).said();
        let Said { file, handle, offset, length, argument } = said;
        let path = match (file, handle) {
            (Some(path), Some(handle)) => {
                opened.insert(handle.to_owned(), path.clone());
                Some(path)
            }
            (None, Some(handle)) => opened.get(handle).cloned(),
            (path, None) => path,
        };
        let Some(path) = path.filter(|path| !path.is_empty()) else {
            return self.leave_out(WITHOUT_FILE);
        };
        let moved = if function.class().moves_data() { length.max(0) } else { 0 };
        let file = self.files.id(&mut self.header, path);
        self.events.push(Event {
            process,
            file,
            offset,
            length,
            argument,
            start: call.start,
            end: call.end,
            result: moved,
            ..Event::of(function)
        });
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
            header.losses.lost_calls.insert("unreadable lines".to_owned(), self.unreadable);
        }
        header.origin = Origin::Imported;
        header.interposer = "recorder".to_owned();
        header.clock =
            Clock { source: "recorder".to_owned(), resolution_ns: 1, ..Clock::default() };
        header.inferred.extend([
            "that every call succeeded, and moved as many bytes as were asked for".to_owned(),
            "offsets of read, write and calls on streams, from the calls before them".to_owned(),
            "numbers of descriptors; that a rank has one thread".to_owned(),
            "bytes of MPI-IO, from count and datatype: of a derived datatype none".to_owned(),
        ]);
        header.losses.unseen.push("stores through mmap".to_owned());
        Ok(Trace { header, events, ..Trace::default() })
    }
}
