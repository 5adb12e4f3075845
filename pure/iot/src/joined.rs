//! Several parts read as one trace, piece by piece; a single trace is the case of one part.

use crate::{Group, IotError, Reader};
use iolab_trace::join::{Joining, Seat};
use iolab_trace::{Causes, Event, Header, Links, Trace};
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
    /// Joins opened parts. They follow each other by their lowest rank. Those of several machines are
    /// gone through once before, where their rows tell how far the clocks are apart; a part that cannot be
    /// read says so when its turn comes.
    pub fn new(mut readers: Vec<Reader<R>>) -> Joined<R> {
        readers.sort_by_key(|reader| reader.header().processes.iter().map(|it| it.rank).min());
        let headers: Vec<Header> = readers.iter().map(|reader| reader.header().clone()).collect();
        let mut joining = Joining::of(&headers);
        if joining.wants_rows() {
            for (part, reader) in readers.iter_mut().enumerate() {
                for events in reader.by_ref().map_while(Result::ok) {
                    events.iter().for_each(|event| joining.see(part, event));
                }
                reader.rewind();
            }
        }
        let (header, seats) = joining.finish();
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

    /// Whether there is a single part, whose rows keep their order in the whole trace; of several, only those do whose ranks
    /// ascend from row to row.
    pub fn is_one(&self) -> bool {
        self.alone
    }

    /// When the first row begins, where a single part tells it.
    pub fn first_start(&self) -> Option<u64> {
        self.parts.first().filter(|_| self.alone)?.0.first_start()
    }

    /// Passes over rows that come next and are known not to be between these times, see [`Reader::pass_over`]; over none of
    /// several parts, whose clocks may differ.
    pub fn pass_over(&mut self, from: u64, to: u64) -> u64 {
        match self.parts.first_mut() {
            Some((reader, _)) if self.alone => reader.pass_over(from, to),
            _ => 0,
        }
    }

    /// Whether it says what caused its rows.
    pub fn has_causes(&self) -> bool {
        self.parts.iter().any(|(reader, _)| reader.has_causes())
    }

    /// The whole trace in memory, in the order of a trace that was recorded as one. Causes that cannot be
    /// are left out, which the header then says.
    ///
    /// # Errors
    /// What is wrong with the first part that cannot be read.
    pub fn into_trace(self) -> Result<Trace, IotError> {
        self.into_trace_with(|_| {})
    }

    /// The same; `progress` hears of each group how many rows it has.
    ///
    /// # Errors
    /// What is wrong with the first part that cannot be read.
    pub fn into_trace_with(mut self, mut progress: impl FnMut(usize)) -> Result<Trace, IotError> {
        let groups = std::iter::from_fn(|| self.next_group());
        let told = groups.inspect(|group| progress(group.as_ref().map_or(0, |it| it.events.len())));
        let mut trace = crate::whole(told)?;
        trace.header = self.header;
        if !self.alone && !trace.events.is_sorted_by_key(|event| event.rank) {
            trace.sort();
        }
        trace.keep_possible_causes();
        Ok(trace)
    }

    /// The causes alone, by row of the joined trace, as they stand in it; a trace without such columns is not
    /// gone through.
    ///
    /// # Errors
    /// What is wrong with the first part that cannot be read.
    pub fn into_causes(mut self) -> Result<Causes, IotError> {
        if !self.has_causes() {
            return Ok(Causes::default());
        }
        crate::gather(std::iter::from_fn(|| self.next_group()), drop)
    }

    /// The next row group, with its causes by row of the joined trace.
    pub fn next_group(&mut self) -> Option<Result<Group, IotError>> {
        self.step(Reader::next_group)
    }

    fn step(
        &mut self,
        next: impl Fn(&mut Reader<R>) -> Option<Result<Group, IotError>>,
    ) -> Option<Result<Group, IotError>> {
        loop {
            let (reader, seat) = self.parts.get_mut(self.at)?;
            match next(reader) {
                Some(Ok(group)) if self.alone => return Some(Ok(group)),
                Some(Ok(mut group)) => {
                    let first_row = self.first_row;
                    group.events.iter_mut().for_each(|event| *event = seat.carry(event, first_row));
                    return Some(Ok(Group { causes: shifted(&group.causes, first_row), ..group }));
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

/// Causes of a part that begins at `first_row`; those beyond what a number can say are gone.
fn shifted(causes: &Causes, first_row: u64) -> Causes {
    let row = |row: u32| u32::try_from(u64::from(row) + first_row).ok();
    let moved = |links: &Links| {
        let pairs = links.pairs().filter_map(|(place, cause)| Some((place, row(cause)?)));
        Links::from_pairs(pairs.collect())
    };
    Causes { begun_by: moved(&causes.begun_by), ended_by: moved(&causes.ended_by) }
}

impl<R: ChunkReader + 'static> Iterator for Joined<R> {
    type Item = Result<Vec<Event>, IotError>;

    fn next(&mut self) -> Option<Self::Item> {
        let plain = |reader: &mut Reader<R>| {
            let events = reader.next()?;
            Some(events.map(|events| Group { events, ..Group::default() }))
        };
        self.step(plain).map(|group| group.map(|group| group.events))
    }
}
