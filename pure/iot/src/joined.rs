//! Several parts read as one trace, piece by piece; a single trace is the case of one part.

use crate::{IotError, Reader};
use iolab_trace::join::{self, Seat};
use iolab_trace::{Event, Header};
use parquet::file::reader::ChunkReader;

/// Opened parts: the joined header, then the rows of one part after the other.
pub struct Joined<R: ChunkReader + 'static> {
    header: Header,
    parts: Vec<(Reader<R>, Seat)>,
    at: usize,
    first_row: u64,
    alone: bool,
}

impl<R: ChunkReader + 'static> Joined<R> {
    /// Joins opened parts. They follow each other by their lowest rank.
    pub fn new(mut readers: Vec<Reader<R>>) -> Joined<R> {
        readers.sort_by_key(|reader| reader.header().processes.iter().map(|it| it.rank).min());
        let headers: Vec<Header> = readers.iter().map(|reader| reader.header().clone()).collect();
        let (header, seats) = join::headers(&headers);
        let alone = readers.len() == 1;
        Joined {
            header,
            parts: readers.into_iter().zip(seats).collect(),
            at: 0,
            first_row: 0,
            alone,
        }
    }

    /// What the trace says about itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How many rows it has.
    pub fn rows(&self) -> u64 {
        self.parts.iter().map(|(reader, _)| reader.rows()).sum()
    }

    /// The whole trace in memory, in the order of a trace that was recorded as one.
    ///
    /// # Errors
    /// What is wrong with the first part that cannot be read.
    pub fn into_trace(mut self) -> Result<iolab_trace::Trace, IotError> {
        let mut events = Vec::new();
        for group in &mut self {
            events.append(&mut group?);
        }
        if !self.alone && !events.is_sorted_by_key(|event| event.rank) {
            iolab_trace::sort(&mut events);
        }
        Ok(iolab_trace::Trace { header: self.header, events })
    }
}

impl<R: ChunkReader + 'static> Iterator for Joined<R> {
    type Item = Result<Vec<Event>, IotError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (reader, seat) = self.parts.get_mut(self.at)?;
            match reader.next() {
                Some(Ok(events)) if self.alone => return Some(Ok(events)),
                Some(Ok(mut events)) => {
                    let first_row = self.first_row;
                    events.iter_mut().for_each(|event| *event = seat.carry(event, first_row));
                    return Some(Ok(events));
                }
                Some(Err(error)) => {
                    self.at = self.parts.len();
                    return Some(Err(error));
                }
                None => {
                    self.first_row += reader.rows();
                    self.at += 1;
                }
            }
        }
    }
}
