//! Archives of OTF2, written by libotf2, which is loaded at run time: iolab neither links nor ships it.
//!
//! [`write`] takes the lines of `iolab_trace::export::otf2`, and is for a process of its own: what the library makes
//! of too little memory or a full disk must not happen to who has a trace to lose.

mod library;
mod line;

use library::{Archive, Library};
use line::Line;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};
use std::path::Path;

/// A line is shorter: its longest part is a path.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Why there is no archive.
#[derive(Debug, PartialEq, Eq)]
pub enum Otf2Error {
    /// No libotf2 that can be called; what the loader said.
    NoLibrary(String),
    /// The lines ended before they were complete, or are none.
    Lines(String),
    /// The library refused; what it said.
    Refused(String),
}

impl std::fmt::Display for Otf2Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Otf2Error::NoLibrary(problem) => write!(f, "there is no libotf2 of OTF2 3: {problem}"),
            Otf2Error::Lines(problem) => write!(f, "what is to be written: {problem}"),
            Otf2Error::Refused(problem) => write!(f, "libotf2: {problem}"),
        }
    }
}

/// Sees whether there is a libotf2.
///
/// # Errors
/// That there is none, and why.
pub fn look() -> Result<(), Otf2Error> {
    Library::load().map(drop)
}

/// Writes the archive `traces` in a directory that is there, from lines.
///
/// # Errors
/// That there is no library, that it refuses, or that a line is not what it should be.
pub fn write(directory: &Path, mut lines: impl BufRead) -> Result<(), Otf2Error> {
    let library = Library::load()?;
    let mut archive = Archive::create(&library, directory)?;
    // Definitions go behind events in the library's order of calls, locations last: they count their events.
    let mut definitions = Vec::new();
    let mut locations = BTreeMap::new();
    let mut text = Vec::new();
    loop {
        text.clear();
        let read = lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut text);
        if read.map_err(|error: io::Error| Otf2Error::Lines(error.to_string()))? == 0 {
            return Err(Otf2Error::Lines("it ended early".to_owned()));
        }
        let line = Line::parse(&text).ok_or_else(|| unknown(&text))?;
        match line {
            Line::End => break,
            Line::Location { id, name, group } => {
                archive.open(id)?;
                locations.insert(id, (name, group));
            }
            Line::Close { id } => {
                let (name, group) = locations.remove(&id).ok_or_else(|| unknown(&text))?;
                let events = archive.close(id)?;
                definitions.push(Line::Counted { id, name, group, events });
            }
            Line::Event { location, time, event } => archive.event(location, time, &event)?,
            definition => definitions.push(definition),
        }
    }
    archive.finish(&definitions)
}

fn unknown(text: &[u8]) -> Otf2Error {
    let text = String::from_utf8_lossy(text);
    Otf2Error::Lines(format!("not `{}`", text.trim_end().chars().take(100).collect::<String>()))
}
