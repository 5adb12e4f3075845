//! Archives of OTF2 (Score-P, TAU, VampirTrace's successors), as the text that `otf2-print -A` makes of them.
//!
//! Definitions come before events, names behind numbers. Regions of functions of POSIX, ISO C and MPI give rows
//! their names and times, the events of I/O and MPI inside them files, bytes and partners; such an event outside
//! of any fitting region is a row of its own. Locations are ranks and threads.
//!
//! It is the text and not the library: of garbled archives libotf2 crashes on some and runs for ever on others,
//! which must happen to a process that is not this one.

mod calls;
mod definitions;
mod finish;
mod messages;
mod operations;
mod region;
mod text;

pub(super) use region::access;

use super::shared::ROWS_MAX;
use crate::Trace;
use calls::Calls;
use definitions::Definitions;
use std::fmt;
use std::io::{self, BufRead};
use text::Record;

/// A record is shorter: the longest one lists the members of the group of all ranks.
const RECORD_BYTES_MAX: usize = 1 << 26;

/// Why an archive of OTF2 could not be read.
#[derive(Debug)]
pub enum Otf2Error {
    /// It has no event.
    NoEvents,
    /// Its events, so many, are none of I/O or MPI.
    NoCalls(u64),
    /// More calls than are taken at once.
    TooLarge,
    /// The text of it could not be read.
    Io(io::Error),
}

impl Otf2Error {
    /// A way out.
    pub fn hint(&self) -> &'static str {
        match self {
            Otf2Error::NoEvents => {
                "Score-P writes events with SCOREP_ENABLE_TRACING=true, and when the program ends"
            }
            Otf2Error::NoCalls(_) => {
                "build with `scorep --mpp=mpi --io=posix` to have I/O recorded"
            }
            Otf2Error::TooLarge => "record fewer calls (a filter of Score-P), or fewer ranks",
            Otf2Error::Io(_) => "see whether `otf2-print -A` reads it to its end",
        }
    }
}

impl fmt::Display for Otf2Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Otf2Error::NoEvents => write!(f, "this archive of OTF2 has no event"),
            Otf2Error::NoCalls(events) => {
                write!(f, "its {events} events are none of I/O or MPI")
            }
            Otf2Error::TooLarge => write!(f, "it has more than {ROWS_MAX} calls"),
            Otf2Error::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Otf2Error {}

/// Whether a file that begins so is the anchor of an archive of OTF2.
pub fn is_otf2(head: &[u8]) -> bool {
    // A chunk's mark, the order of bytes, then the name.
    head.first() == Some(&3) && head.get(2..6) == Some(b"OTF2")
}

/// An archive, read from its text.
#[derive(Default)]
pub struct Otf2 {
    definitions: Definitions,
    calls: Calls,
    section: Section,
    /// Events that were read, also those no row is made of.
    events: u64,
    /// Records that are not as they should be.
    unreadable: u64,
    /// Why the text ended before the archive did.
    cut: Option<String>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Section {
    #[default]
    Before,
    Definitions,
    Events,
    Other,
}

impl Otf2 {
    /// Reads the text of an archive to its end.
    ///
    /// # Errors
    /// That it cannot be read, or has more calls than are taken.
    pub fn text(&mut self, mut text: impl BufRead) -> Result<(), Otf2Error> {
        // A name may hold ends of lines: what does not begin as a record goes on with the one before.
        let mut record: Vec<u8> = Vec::new();
        let mut line = Vec::new();
        loop {
            line.clear();
            let limit = RECORD_BYTES_MAX as u64;
            let read = io::Read::take(&mut text, limit).read_until(b'\n', &mut line);
            if read.map_err(Otf2Error::Io)? == 0 {
                break;
            }
            if text::begins_record(&line) {
                self.record(&record)?;
                record.clear();
            }
            let room = RECORD_BYTES_MAX - record.len();
            record.extend_from_slice(&line[..line.len().min(room)]);
        }
        self.record(&record)
    }

    /// Whether events have been read: what went wrong before was in the definitions.
    pub fn has_events(&self) -> bool {
        self.events > 0
    }

    /// Says that the text ended before the archive did, and why.
    pub fn cut(&mut self, why: &str) {
        self.cut = Some(why.to_owned());
    }

    fn record(&mut self, bytes: &[u8]) -> Result<(), Otf2Error> {
        let lossy = String::from_utf8_lossy(bytes);
        let record = lossy.strip_suffix('\n').unwrap_or(&lossy);
        if let Some(title) = record.strip_prefix("=== ") {
            self.section = match () {
                () if title.starts_with("Global Definitions") => Section::Definitions,
                () if title.starts_with("Events") => Section::Events,
                () => Section::Other,
            };
            return Ok(());
        }
        match (self.section, Record::parse(record)) {
            (Section::Definitions, Some(record)) => self.definitions.learn(&record),
            (Section::Events, Some(record)) => match record.event() {
                Some(event) => {
                    self.events += 1;
                    self.calls.event(&self.definitions, &event);
                }
                None => self.unreadable += 1,
            },
            _ => {}
        }
        if self.calls.row_count() > ROWS_MAX { Err(Otf2Error::TooLarge) } else { Ok(()) }
    }

    /// The trace of the archive.
    ///
    /// # Errors
    /// That nothing of it is a call of I/O or MPI.
    pub fn finish(mut self) -> Result<Trace, Otf2Error> {
        if self.events == 0 {
            return Err(Otf2Error::NoEvents);
        }
        let missing = self.definitions.expected_events.saturating_sub(self.events);
        self.calls.close();
        let mut trace = self.calls.into_trace();
        if trace.events.is_empty() {
            return Err(Otf2Error::NoCalls(self.events));
        }
        let losses = &mut trace.header.losses;
        if self.unreadable > 0 {
            losses.lost_calls.insert("unreadable records".to_owned(), self.unreadable);
        }
        if missing > 0 {
            losses.lost_calls.insert("events that could not be read".to_owned(), missing);
        }
        if let Some(why) = self.cut {
            losses.unseen.push(format!("what is behind the place where otf2-print stopped: {why}"));
        }
        Ok(trace)
    }
}
