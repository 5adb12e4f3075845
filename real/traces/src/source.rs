//! A trace to go through event by event.

use crate::{imported, open, unreadable};
use iolab_trace::{Causes, Event, Header, Trace};
use iolab_vocab::Refusal;
use std::borrow::Cow;
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

    /// All events, in the order of the trace, up to where it turns out to be damaged.
    ///
    /// # Errors
    /// That it cannot be opened any more.
    pub fn events(&self) -> Result<Box<dyn Iterator<Item = Result<Event, Refusal>> + '_>, Refusal> {
        if let Kept::Whole(trace) = &self.kept {
            return Ok(Box::new(trace.events.iter().copied().map(Ok)));
        }
        let groups = open(&self.path)?.map(|group| match group {
            Ok(events) => Rows::Read(events.into_iter()),
            Err(error) => Rows::Damaged(Some(unreadable(&self.path, &error))),
        });
        Ok(Box::new(groups.flatten()))
    }

    /// What caused what, by number in [`Source::events`]; as it stands in the trace, also what cannot be.
    ///
    /// # Errors
    /// That the trace is damaged somewhere.
    pub fn causes(&self) -> Result<Cow<'_, Causes>, Refusal> {
        if let Kept::Whole(trace) = &self.kept {
            return Ok(Cow::Borrowed(&trace.causes));
        }
        let causes = open(&self.path)?.into_causes();
        causes.map(Cow::Owned).map_err(|error| unreadable(&self.path, &error))
    }

    /// The whole trace in memory, rows of several parts by rank.
    ///
    /// # Errors
    /// That the trace is damaged somewhere.
    pub fn into_trace(self) -> Result<Trace, Refusal> {
        match self.kept {
            Kept::Whole(trace) => Ok(*trace),
            Kept::Header(_) => {
                open(&self.path)?.into_trace().map_err(|error| unreadable(&self.path, &error))
            }
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

/// The rows of a group, or why there are none.
enum Rows {
    Read(std::vec::IntoIter<Event>),
    Damaged(Option<Refusal>),
}

impl Iterator for Rows {
    type Item = Result<Event, Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Rows::Read(events) => events.next().map(Ok),
            Rows::Damaged(refusal) => refusal.take().map(Err),
        }
    }
}
