//! Writes a trace row group by row group, so that its size is bounded by the disk and not by memory.
//!
//! Rows are sorted by (rank, process, thread, start) within a group: the differences the encodings
//! store then stay small (one fifth of the file, see `docs/format/trace.md`). Sorting changes row
//! numbers, so parents are rewritten; this costs 4 bytes of memory per row for as long as the
//! writer lives, beside about 300 MiB for the group at hand.

use crate::cause_columns;
use crate::columns::{GROUP_ROWS, Names, schema, writer_properties};
use crate::seal::{FOOTER_BLANK, FOOTER_KEY, GROUPS_KEY, SealingSink};
use crate::{HEADER_KEY, IotError};
use arrow_array::ArrayRef;
use iolab_trace::{Causes, Event, FORMAT_VERSION, Header, Trace};
use iolab_vocab::{FileId, Nanos};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::file::metadata::KeyValue;
use std::io::Write;
use std::sync::Arc;

/// Rows handed to the encoder at once; bounds the copy made of them.
const BATCH_ROWS: usize = 1 << 16;

/// Writes events as they come; the header is known only at the end.
pub struct Writer<W: Write + Send> {
    parquet: ArrowWriter<SealingSink<W>>,
    names: Names,
    /// Events that are not yet in a group, with their position among all events appended.
    pending: Vec<(u64, Event)>,
    /// Row of each event that is in a group, by position; `u32::MAX` while it is not.
    rows: Vec<u32>,
    written: u64,
    largest_file: Option<u32>,
    largest_process: Option<u32>,
    resolution_ns: u64,
}

impl<W: Write + Send> Writer<W> {
    /// Begins a trace on `sink`.
    pub fn new(sink: W) -> Result<Writer<W>, IotError> {
        Writer::of(sink, false)
    }

    fn of(sink: W, has_causes: bool) -> Result<Writer<W>, IotError> {
        let options = ArrowWriterOptions::new().with_properties(writer_properties());
        let sink = SealingSink::new(sink);
        Ok(Writer {
            parquet: ArrowWriter::try_new_with_options(
                sink,
                Arc::new(schema(has_causes)),
                options,
            )?,
            names: Names::new(has_causes),
            pending: Vec::new(),
            rows: Vec::new(),
            written: 0,
            largest_file: None,
            largest_process: None,
            resolution_ns: 1,
        })
    }

    /// Rounds times down to multiples of `resolution_ns` from here on; the header says so. Starts and
    /// ends are rounded alike, so durations are right on average.
    pub fn round_times(&mut self, resolution_ns: u64) {
        self.resolution_ns = resolution_ns.max(1);
    }

    /// Appends events. A `parent` is the position of the outer call among all events appended to
    /// this writer, earlier or later ones. Events of one thread should come in the order of
    /// their start.
    pub fn append(&mut self, events: &[Event]) -> Result<(), IotError> {
        for event in events {
            let position = self.rows.len() as u64;
            self.check(position, event)?;
            self.rows.push(u32::MAX);
            self.pending.push((position, self.rounded(event)));
            if self.pending.len() >= GROUP_ROWS {
                self.flush_group(false)?;
            }
        }
        Ok(())
    }

    /// Number of events appended so far.
    pub fn len(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Whether no event has been appended.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes what is left and the header, whose `format_version` is set, and hands the sink back.
    pub fn finish(mut self, header: &Header) -> Result<W, IotError> {
        self.check_header(header)?;
        while !self.pending.is_empty() {
            self.flush_group(true)?;
        }
        let mut header = Header { format_version: FORMAT_VERSION, ..header.clone() };
        if self.resolution_ns > 1 {
            header.clock.resolution_ns = self.resolution_ns;
        }
        let json = serde_json::to_string(&header).map_err(|e| IotError::Header(e.to_string()))?;
        self.parquet.sync()?;
        let groups = self.parquet.inner_mut().begin_footer();
        for (key, value) in
            [(HEADER_KEY, json), (GROUPS_KEY, groups), (FOOTER_KEY, FOOTER_BLANK.to_owned())]
        {
            self.parquet.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
        self.parquet.into_inner()?.finish()
    }

    fn rounded(&self, event: &Event) -> Event {
        let round = |time: Nanos| Nanos(time.0 - time.0 % self.resolution_ns);
        Event { start: round(event.start), end: round(event.end), ..*event }
    }

    fn check(&mut self, row: u64, event: &Event) -> Result<(), IotError> {
        let refuse = |problem| Err(IotError::Row { row, problem });
        if row >= u64::from(u32::MAX) {
            return refuse("one trace file holds at most 2^32 - 1 rows".to_owned());
        }
        if event.function.row().is_none() {
            return refuse(format!("function code {} is not in the table", event.function.0));
        }
        if event.start.0.max(event.end.0) > i64::MAX as u64 {
            return refuse(format!("time {} does not fit 63 bits", event.start.0.max(event.end.0)));
        }
        if event.parent < -1 || event.parent == row as i64 {
            return refuse(format!("parent is {}", event.parent));
        }
        if event.file != FileId::NONE {
            self.largest_file = self.largest_file.max(Some(event.file.0));
        }
        self.largest_process = self.largest_process.max(Some(event.process));
        Ok(())
    }

    fn check_parent(&self, row: u64, event: &Event, known: usize) -> Result<(), IotError> {
        if event.parent < known as i64 {
            return Ok(());
        }
        let problem = format!("parent is {}, but there are {known} rows", event.parent);
        Err(IotError::Row { row, problem })
    }

    fn check_header(&self, header: &Header) -> Result<(), IotError> {
        let lists = [
            ("file", self.largest_file, header.files.len()),
            ("process", self.largest_process, header.processes.len()),
        ];
        for (name, largest, count) in lists {
            if let Some(largest) = largest.filter(|&largest| largest as usize >= count) {
                let problem =
                    format!("lists {count} of {name}, but an event names {name} {largest}");
                return Err(IotError::Header(problem));
            }
        }
        Ok(())
    }

    /// Sorts what is pending and writes it as one group; events whose outer call has not been
    /// appended yet wait for it (recorders that log calls as they return send the inner one first).
    fn flush_group(&mut self, last: bool) -> Result<(), IotError> {
        let mut group = std::mem::take(&mut self.pending);
        let known = self.rows.len() as i64;
        if !last {
            self.pending = group.extract_if(.., |(_, event)| event.parent >= known).collect();
        }
        for (row, event) in &group {
            self.check_parent(*row, event, self.rows.len())?;
        }
        let (positions, events): (Vec<u64>, Vec<Event>) = group.into_iter().unzip();
        let order = iolab_trace::order(&events, |row| {
            let parent = u64::try_from(events[row].parent).ok()?;
            positions.binary_search(&parent).ok()
        });
        for (row, &at) in order.iter().enumerate() {
            self.rows[positions[at as usize] as usize] = (self.written + row as u64) as u32;
        }
        self.write_group(&events, &order, None)
    }

    /// Writes those of `events` that `order` names as one group; of a whole trace with its causes.
    fn write_group(
        &mut self,
        events: &[Event],
        group: &[u32],
        causes: Option<&Causes>,
    ) -> Result<(), IotError> {
        for chunk in group.chunks(BATCH_ROWS) {
            let events: Vec<Event> = chunk.iter().map(|&at| events[at as usize]).collect();
            let parents = events.iter().map(|event| self.row_of(event.parent)).collect();
            let lists = causes.map_or_else(Vec::new, |causes| self.lists(chunk, causes));
            let batch = self.names.batch(&events, parents, lists)?;
            self.parquet.write(&batch)?;
        }
        self.parquet.flush()?;
        self.parquet.sync()?;
        self.parquet.inner_mut().end_segment();
        self.written += group.len() as u64;
        Ok(())
    }

    fn lists(&self, rows: &[u32], causes: &Causes) -> Vec<ArrayRef> {
        let links = [&causes.begun_by, &causes.ended_by];
        let row_of = |at: u32| self.rows[at as usize];
        links.map(|links| cause_columns::column(links, rows, row_of)).to_vec()
    }

    fn row_of(&self, parent: i64) -> i64 {
        usize::try_from(parent).map_or(-1, |position| i64::from(self.rows[position]))
    }
}

/// Writes a trace that has causes. These may name any row, also one far behind, so all rows are put in order
/// before the first one is written; this costs 8 bytes of memory per row, and the order is that of the whole.
pub(crate) fn write_with_causes<W: Write + Send>(trace: &Trace, sink: W) -> Result<(), IotError> {
    let mut writer = Writer::of(sink, true)?;
    writer.round_times(trace.header.clock.resolution_ns);
    let count = trace.events.len();
    for (row, event) in trace.events.iter().enumerate() {
        writer.check(row as u64, event)?;
        writer.check_parent(row as u64, event, count)?;
    }
    let links = [&trace.causes.begun_by, &trace.causes.ended_by];
    for (row, cause) in links.into_iter().flat_map(|links| links.pairs()) {
        if row == cause || row.max(cause) as usize >= count {
            let problem = format!("its cause is row {cause}, but there are {count} rows");
            return Err(IotError::Row { row: row.into(), problem });
        }
    }
    let order = trace.order();
    writer.rows = vec![0; count];
    for (row, &at) in order.iter().enumerate() {
        writer.rows[at as usize] = row as u32;
    }
    for group in order.chunks(GROUP_ROWS) {
        writer.write_group(&trace.events, group, Some(&trace.causes))?;
    }
    writer.finish(&trace.header).map(drop)
}
