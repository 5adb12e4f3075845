//! A trace to go through event by event.

use crate::{imported, open, unreadable};
use iolab_trace::{Causes, Event, Header, Retained, Trace};
use iolab_vocab::{Nanos, Refusal};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// A trace to go through as often as one likes. One of iolab's own is read piece by piece each time,
/// in memory that does not grow with it; one that another tool wrote is imported once and kept.
pub struct Source {
    path: PathBuf,
    kept: Kept,
}

/// A part of a trace.
pub struct Chosen {
    /// Its rows.
    pub trace: Trace,
    /// Which rows of the whole trace they are.
    pub rows: Vec<u32>,
    /// How many that has.
    pub of: usize,
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

    /// When the first row begins.
    ///
    /// # Errors
    /// That the trace is damaged somewhere.
    pub fn first_start(&self) -> Result<Option<Nanos>, Refusal> {
        if let Kept::Header(_) = &self.kept
            && let Some(told) = open(&self.path)?.first_start()
        {
            return Ok(Some(Nanos(told)));
        }
        let mut first: Option<Nanos> = None;
        self.visit(|event| first = Some(first.map_or(event.start, |it| it.min(event.start))))?;
        Ok(first)
    }

    /// The rows between these times that are wanted, and their numbers in the whole trace. Memory is for these and a few
    /// bytes for each of the others, unless rows have causes or lie in parts whose ranks are mixed; what a single file
    /// tells to be at other times is not read.
    ///
    /// # Errors
    /// That the trace is damaged somewhere.
    pub fn into_part(
        self,
        between: (u64, u64),
        wanted: impl Fn(&Event) -> bool,
    ) -> Result<Chosen, Refusal> {
        let wanted = |event: &Event| event.overlaps(between.0, between.1) && wanted(event);
        if let Kept::Header(header) = &self.kept
            && let Some(retained) = self.retained(between, wanted)?
        {
            let of = retained.met();
            let (events, rows) = retained.finish();
            let trace = Trace { header: (**header).clone(), events, ..Trace::default() };
            return Ok(Chosen { trace, rows, of });
        }
        let mut trace = self.into_trace()?;
        let of = trace.events.len();
        let rows = trace.retain(wanted);
        Ok(Chosen { trace, rows, of })
    }

    /// The rows that are wanted, where they can be chosen one by one.
    fn retained(
        &self,
        (from, to): (u64, u64),
        wanted: impl Fn(&Event) -> bool,
    ) -> Result<Option<Retained>, Refusal> {
        let mut groups = open(&self.path)?;
        if groups.has_causes() {
            return Ok(None);
        }
        let is_one = groups.is_one();
        let (mut retained, mut rank) = (Retained::default(), i32::MIN);
        loop {
            retained.pass_over(groups.pass_over(from, to));
            let Some(events) = groups.next() else { return Ok(Some(retained)) };
            for event in events.map_err(|error| unreadable(&self.path, &error))? {
                // The whole trace has its rows in another order then.
                if !is_one && event.rank < rank {
                    return Ok(None);
                }
                rank = event.rank;
                retained.meet(&event, wanted(&event));
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
