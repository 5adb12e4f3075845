//! Reads a trace row group by row group; verifies the checksums of a part before interpreting it.

use crate::cause_columns::{self, CAUSE_COLUMNS};
use crate::columns::{Kind, all, decode, mismatch, missing};
use crate::seal::{GROUPS_KEY, Segment, is_sealed, parse_segments, verify_footer};
use crate::{HEADER_KEY, IotError};
use arrow_schema::{DataType, Field, Schema};
use bytes::{Buf, Bytes};
use iolab_trace::{Causes, Event, FORMAT_VERSION, Header};
use iolab_vocab::FileId;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::statistics::Statistics;
use std::sync::Arc;

const MAGIC: &[u8] = b"PAR1";
/// Length of the footer and the magic word after it.
const TAIL_BYTES: u64 = 8;
/// Both seals stand in the last bytes of a footer; the list of row groups takes 15 bytes each.
const SEAL_SEARCH_BYTES: u64 = 1 << 16;
const BATCH_ROWS: usize = 1 << 16;

/// A row group of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Its rows.
    pub events: Vec<Event>,
    /// What caused them: by place in `events`, causes by row number in the trace.
    pub causes: Causes,
}

/// An opened trace: the header, then its rows one row group at a time.
///
/// As an iterator it yields the events of each row group, in file order; the position of an event
/// in that sequence is its row number, which `Event::parent` refers to. What caused them is only read by
/// [`Reader::next_group`].
pub struct Reader<R: ChunkReader + 'static> {
    source: R,
    header: Header,
    metadata: ArrowReaderMetadata,
    /// Empty for a file of another tool.
    segments: Vec<Segment>,
    group: usize,
    first_row: u64,
}

impl<R: ChunkReader + 'static> Reader<R> {
    /// Opens a trace: reads and checks the footer, the header and the types of the columns.
    pub fn new(source: R) -> Result<Reader<R>, IotError> {
        let (footer, sealed) = read_footer(&source)?;
        let metadata = ParquetMetaDataReader::decode_metadata(&footer)?;
        let header = parse_header(&metadata)?;
        let segments = match sealed {
            true => sealed_segments(&metadata)?,
            false => Vec::new(),
        };
        let metadata = with_types(Arc::new(metadata))?;
        Ok(Reader { source, header, metadata, segments, group: 0, first_row: 0 })
    }

    /// What the trace says about itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How many rows the file has.
    pub fn rows(&self) -> u64 {
        self.metadata.metadata().file_metadata().num_rows().max(0) as u64
    }

    /// Begins again with the first row group.
    pub fn rewind(&mut self) {
        (self.group, self.first_row) = (0, 0);
    }

    /// When the first row begins, where the file tells that of each row group.
    pub fn first_start(&self) -> Option<u64> {
        let groups = 0..self.metadata.metadata().num_row_groups();
        let starts = groups.map(|group| self.times_of(group).map(|(start, _)| start));
        starts.collect::<Option<Vec<u64>>>()?.into_iter().min()
    }

    /// Passes over the row groups that come next as long as all their rows are known to end before `from` or to begin after
    /// `to`. Gives how many rows these are.
    pub fn pass_over(&mut self, from: u64, to: u64) -> u64 {
        let before = self.first_row;
        while self.group < self.metadata.metadata().num_row_groups()
            && self.times_of(self.group).is_some_and(|(start, end)| end < from || to < start)
        {
            let rows = self.metadata.metadata().row_group(self.group).num_rows();
            self.first_row += rows.max(0) as u64;
            self.group += 1;
        }
        self.first_row - before
    }

    /// When the first row of a group begins and the last one ends, where the file tells.
    fn times_of(&self, group: usize) -> Option<(u64, u64)> {
        let columns = self.metadata.metadata().row_group(group).columns().iter();
        let mut statistics =
            columns.filter_map(|it| Some((it.column_path().string(), it.statistics()?)));
        let mut of = |name: &str| match statistics.find(|(path, _)| path == name)?.1 {
            Statistics::Int64(times) => Some((*times.min_opt()?, *times.max_opt()?)),
            _ => None,
        };
        let (starts, ends) = (of("start_ns")?, of("end_ns")?);
        // A damaged row may end before it begins.
        let (start, end) = (starts.0, ends.1.max(starts.1));
        Some((u64::try_from(start).ok()?, u64::try_from(end).ok()?))
    }

    /// Whether it says what caused its rows.
    pub fn has_causes(&self) -> bool {
        CAUSE_COLUMNS.iter().any(|name| self.metadata.schema().field_with_name(name).is_ok())
    }

    /// The next row group, with its causes.
    pub fn next_group(&mut self) -> Option<Result<Group, IotError>> {
        self.step(true)
    }

    fn step(&mut self, with_causes: bool) -> Option<Result<Group, IotError>> {
        let groups = self.metadata.metadata().num_row_groups();
        if self.group >= groups {
            return None;
        }
        let group = self.read_group(with_causes);
        match &group {
            Ok(group) => {
                self.first_row += group.events.len() as u64;
                self.group += 1;
            }
            Err(_) => self.group = groups,
        }
        Some(group)
    }

    fn read_group(&self, with_causes: bool) -> Result<Group, IotError> {
        let group_rows = self.metadata.metadata().row_group(self.group).num_rows();
        let bytes = self.group_bytes()?;
        let mask = projection(&self.metadata, with_causes);
        let batches =
            ParquetRecordBatchReaderBuilder::new_with_metadata(bytes, self.metadata.clone())
                .with_row_groups(vec![self.group])
                .with_projection(mask)
                .with_batch_size(BATCH_ROWS)
                .build()?;
        let mut events = Vec::with_capacity((group_rows.max(0) as usize).min(crate::GROUP_ROWS));
        let mut pairs = [Vec::new(), Vec::new()];
        for batch in batches {
            let (batch, before) = (batch?, events.len());
            let row = self.first_row + before as u64;
            decode(&batch, row, &mut events)?;
            for (name, pairs) in CAUSE_COLUMNS.into_iter().zip(&mut pairs) {
                cause_columns::decode(&batch, name, (row, before, self.rows()), pairs)?;
            }
        }
        if events.len() as i64 != group_rows {
            let problem =
                format!("row group {} has {} of {group_rows} rows", self.group, events.len());
            return Err(IotError::Parquet(problem));
        }
        self.check(&events)?;
        Ok(Group { events, causes: cause_columns::causes(pairs) })
    }

    /// The bytes of the group at hand, verified where there is a checksum.
    fn group_bytes(&self) -> Result<Part, IotError> {
        let Some(segment) = self.segments.get(self.group) else {
            let length = self.source.len();
            return Ok(Part { base: 0, bytes: read(&self.source, 0, length)? });
        };
        let base = if self.group == 0 { 0 } else { self.segments[self.group - 1].end };
        let damaged = || IotError::Damaged { part: format!("row group {}", self.group) };
        let length = segment.end.checked_sub(base).ok_or_else(damaged)?;
        let bytes = read(&self.source, base, length)?;
        if crc32fast::hash(&bytes) != segment.crc {
            return Err(damaged());
        }
        Ok(Part { base, bytes })
    }

    /// Whoever uses an event may index the header's lists with it.
    fn check(&self, events: &[Event]) -> Result<(), IotError> {
        let (files, processes) = (self.header.files.len(), self.header.processes.len());
        let rows = self.rows() as i64;
        let outside = |event: &Event| {
            (event.file != FileId::NONE && event.file.0 as usize >= files)
                || event.process as usize >= processes
                || event.parent < -1
                || event.parent >= rows
        };
        let Some(index) = events.iter().position(outside) else { return Ok(()) };
        let Event { file, process, parent, .. } = events[index];
        let problem = format!(
            "file {file}, process {process} or parent {parent} is not there: the trace has {files} \
             files, {processes} processes, {rows} rows"
        );
        Err(IotError::Row { row: self.first_row + index as u64, problem })
    }
}

impl<R: ChunkReader + 'static> Iterator for Reader<R> {
    type Item = Result<Vec<Event>, IotError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(false).map(|group| group.map(|group| group.events))
    }
}

/// Reads the footer (without length and magic word) and tells whether iolab sealed the file.
fn read_footer(source: &impl ChunkReader) -> Result<(Bytes, bool), IotError> {
    let length = source.len();
    let head = read(source, 0, length.min(MAGIC.len() as u64))?;
    if !MAGIC.starts_with(&head) {
        return Err(IotError::NotParquet);
    }
    let cut = || IotError::Cut { length };
    let tail_start = length.checked_sub(TAIL_BYTES).ok_or_else(cut)?;
    let tail = read(source, tail_start, TAIL_BYTES)?;
    if &tail[4..] != MAGIC {
        return Err(cut());
    }
    let footer_length = u64::from((&tail[..4]).get_u32_le()) + TAIL_BYTES;
    let search =
        read(source, length - length.min(SEAL_SEARCH_BYTES), length.min(SEAL_SEARCH_BYTES))?;
    let sealed = is_sealed(&search);
    let damaged = || IotError::Damaged { part: "the footer".to_owned() };
    let footer_start = length.checked_sub(footer_length).ok_or_else(damaged)?;
    let mut footer = read(source, footer_start, footer_length)?;
    if sealed {
        verify_footer(&footer)?;
    }
    footer.truncate((footer_length - TAIL_BYTES) as usize);
    Ok((footer, sealed))
}

fn read(source: &impl ChunkReader, start: u64, length: u64) -> Result<Bytes, IotError> {
    let count = usize::try_from(length).map_err(|_| IotError::Parquet("too large".to_owned()))?;
    // A file that shrinks while it is read ends here, as does one that cannot be read.
    Ok(source.get_bytes(start, count)?)
}

fn metadata_value<'a>(metadata: &'a ParquetMetaData, key: &str) -> Option<&'a str> {
    let values = metadata.file_metadata().key_value_metadata()?;
    values.iter().find(|value| value.key == key)?.value.as_deref()
}

fn parse_header(metadata: &ParquetMetaData) -> Result<Header, IotError> {
    let json = metadata_value(metadata, HEADER_KEY)
        .ok_or_else(|| IotError::Header(format!("metadata key `{HEADER_KEY}` is missing")))?;
    // The version first: a later header may not even parse.
    let value: serde_json::Value =
        serde_json::from_str(json).map_err(|e| IotError::Header(e.to_string()))?;
    let found = value.get("format_version").and_then(serde_json::Value::as_u64);
    match found {
        None | Some(0) => Err(IotError::Header("`format_version` is missing".to_owned())),
        Some(found) if found > u64::from(FORMAT_VERSION) => {
            Err(IotError::NewerVersion { found, known: FORMAT_VERSION })
        }
        Some(_) => serde_json::from_value(value).map_err(|e| IotError::Header(e.to_string())),
    }
}

fn sealed_segments(metadata: &ParquetMetaData) -> Result<Vec<Segment>, IotError> {
    let text = metadata_value(metadata, GROUPS_KEY).unwrap_or_default();
    let segments = parse_segments(text)?;
    match segments.len() == metadata.num_row_groups() {
        true => Ok(segments),
        false => Err(IotError::Header(format!("`{GROUPS_KEY}` does not list every row group"))),
    }
}

/// Checks the type of every column and asks for strings as dictionaries.
fn with_types(metadata: Arc<ParquetMetaData>) -> Result<ArrowReaderMetadata, IotError> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let plain = ArrowReaderMetadata::try_new(metadata.clone(), options.clone())?;
    for (name, kind) in all() {
        let field = plain.schema().field_with_name(name).map_err(|_| missing(name))?;
        if as_dictionary(field).data_type() != &kind.data_type() {
            return Err(mismatch(name, field.data_type()));
        }
    }
    for name in CAUSE_COLUMNS {
        cause_columns::is_there(plain.schema(), name)?;
    }
    let fields: Vec<_> = plain.schema().fields().iter().map(|f| as_dictionary(f)).collect();
    let options = options.with_schema(Arc::new(Schema::new(fields)));
    Ok(ArrowReaderMetadata::try_new(metadata, options)?)
}

fn as_dictionary(field: &Field) -> Field {
    match field.data_type() {
        DataType::Utf8 => field.clone().with_data_type(Kind::Text.data_type()),
        _ => field.clone(),
    }
}

/// Only the columns that are needed: `layer` follows from `op`, others are somebody else's.
fn projection(metadata: &ArrowReaderMetadata, with_causes: bool) -> ProjectionMask {
    let causes = CAUSE_COLUMNS.into_iter().filter(|_| with_causes);
    let wanted = all().map(|(name, _)| name).filter(|&name| name != "layer").chain(causes);
    ProjectionMask::columns(metadata.parquet_schema(), wanted)
}

/// A piece of a file in memory, addressed by the offsets of the whole file.
struct Part {
    base: u64,
    bytes: Bytes,
}

impl Part {
    fn range(&self, start: u64, length: u64) -> Result<Bytes, ParquetError> {
        let outside = || ParquetError::EOF(format!("no {length} bytes at offset {start}"));
        let begin = start.checked_sub(self.base).ok_or_else(outside)?;
        let end = begin.checked_add(length).filter(|&end| end <= self.bytes.len() as u64);
        Ok(self.bytes.slice(begin as usize..end.ok_or_else(outside)? as usize))
    }
}

impl Length for Part {
    fn len(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }
}

impl ChunkReader for Part {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(self.range(start, self.len().saturating_sub(start))?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.range(start, length as u64)
    }
}
