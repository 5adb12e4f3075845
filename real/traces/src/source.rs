//! A trace to go through event by event.

use crate::{imported, open, unreadable};
use iolab_trace::{Event, Header, Trace};
use iolab_vocab::Refusal;
use std::path::{Path, PathBuf};

/// A trace to go through as often as one likes. One of iolab's own is read piece by piece each time,
/// in memory that does not grow with it; one that another tool wrote is imported once and kept.
pub struct Source {
    path: PathBuf,
    kept: Kept,
}

enum Kept {
    Header(Box<Header>),
    Whole(Box<Trace>),
}

impl Source {
    /// Looks at the trace at `path`.
    ///
    /// # Errors
    /// That it is not there, is no trace, or is damaged.
    pub fn open(path: &Path) -> Result<Source, Refusal> {
        let kept = match imported(path)? {
            Some(trace) => Kept::Whole(Box::new(trace)),
            None => Kept::Header(Box::new(open(path)?.header().clone())),
        };
        Ok(Source { path: path.to_owned(), kept })
    }

    /// What is told before the first event.
    pub fn header(&self) -> &Header {
        match &self.kept {
            Kept::Header(header) => header,
            Kept::Whole(trace) => &trace.header,
        }
    }

    /// Goes through all events, in the order of the trace.
    ///
    /// # Errors
    /// That the trace is damaged somewhere.
    pub fn visit(&self, mut each: impl FnMut(&Event)) -> Result<(), Refusal> {
        if let Kept::Whole(trace) = &self.kept {
            trace.events.iter().for_each(each);
            return Ok(());
        }
        for events in open(&self.path)? {
            let events = events.map_err(|error| unreadable(&self.path, &error))?;
            events.iter().for_each(&mut each);
        }
        Ok(())
    }
}
