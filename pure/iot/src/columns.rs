//! The columns of a trace file: names, types, encodings; events to columns and back.
//!
//! Times, offsets, results and parents change a little from row to row, so they are stored as
//! bit-packed differences; everything else has few values and is stored by dictionary. Measured in
//! `benchmarks/trace-size`.

use crate::IotError;
use crate::cause_columns::{self, CAUSE_COLUMNS};
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int32Type, Int64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, PrimitiveArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use iolab_trace::function::TABLE;
use iolab_trace::{Event, Function};
use iolab_vocab::{FileId, Nanos};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use std::sync::Arc;

/// Rows per row group: large enough for the encodings, small enough for a time range to skip most.
pub const GROUP_ROWS: usize = 1 << 20;

/// Type of a column, in the words of the format document.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Int32,
    Uint32,
    Int64,
    Text,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Kind::Int32 => "int32",
            Kind::Uint32 => "uint32",
            Kind::Int64 => "int64",
            Kind::Text => "a string",
        }
    }

    /// The type a reader asks for: strings come as dictionaries, so that a name is looked up once
    /// per page instead of once per row.
    pub(crate) fn data_type(self) -> DataType {
        match self {
            Kind::Int32 => DataType::Int32,
            Kind::Uint32 => DataType::UInt32,
            Kind::Int64 => DataType::Int64,
            Kind::Text => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        }
    }
}

/// How a column is encoded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stored {
    Dictionary,
    Delta,
}

/// Every column in file order.
pub(crate) const COLUMNS: [(&str, Kind); 13] = [
    ("rank", Kind::Int32),
    ("process", Kind::Uint32),
    ("thread", Kind::Uint32),
    ("layer", Kind::Text),
    ("op", Kind::Text),
    ("file", Kind::Uint32),
    ("fd", Kind::Int32),
    ("offset", Kind::Int64),
    ("length", Kind::Int64),
    ("argument", Kind::Int64),
    ("start_ns", Kind::Int64),
    ("end_ns", Kind::Int64),
    ("result", Kind::Int64),
];
/// The last column, apart because it is the only one whose values are row numbers.
pub(crate) const PARENT: (&str, Kind) = ("parent", Kind::Int64);

const DELTA_COLUMNS: [&str; 5] = ["offset", "start_ns", "end_ns", "result", "parent"];

/// All columns in file order.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, Kind)> {
    COLUMNS.into_iter().chain([PARENT])
}

/// Of a trace that has causes, or has none.
pub(crate) fn schema(has_causes: bool) -> Schema {
    let field = |(name, kind): (&str, Kind)| Field::new(name, kind.data_type(), false);
    let causes = CAUSE_COLUMNS.iter().filter(|_| has_causes).map(|name| cause_columns::field(name));
    Schema::new(all().map(field).chain(causes).collect::<Vec<_>>())
}

pub(crate) fn writer_properties() -> WriterProperties {
    let level = ZstdLevel::try_new(1).unwrap_or_default();
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(None)
        .set_max_row_group_bytes(None)
        .set_data_page_row_count_limit(GROUP_ROWS)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_created_by(concat!("iolab ", env!("CARGO_PKG_VERSION")).to_owned());
    for name in CAUSE_COLUMNS {
        let path = ColumnPath::new(cause_columns::leaf(name));
        builder = builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    for (name, _) in all() {
        let path = ColumnPath::from(name);
        builder = match stored(name) {
            Stored::Dictionary => builder.set_column_dictionary_enabled(path, true),
            Stored::Delta => builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
        };
    }
    builder.build()
}

fn stored(name: &str) -> Stored {
    if DELTA_COLUMNS.contains(&name) { Stored::Delta } else { Stored::Dictionary }
}

/// The names of all functions and layers, for columns that refer to them by position.
pub(crate) struct Names {
    layers: Arc<StringArray>,
    layer_of: Vec<i32>,
    operations: Arc<StringArray>,
    schema: Arc<Schema>,
}

impl Names {
    pub(crate) fn new(has_causes: bool) -> Names {
        let mut layers: Vec<&str> = Vec::new();
        let layer_of = TABLE.iter().map(|row| {
            let name = row.layer.name();
            let known = layers.iter().position(|&layer| layer == name);
            known.unwrap_or_else(|| {
                layers.push(name);
                layers.len() - 1
            }) as i32
        });
        let layer_of = layer_of.collect();
        let operations = StringArray::from_iter_values(TABLE.iter().map(|row| row.name));
        Names {
            layers: Arc::new(StringArray::from(layers)),
            layer_of,
            operations: Arc::new(operations),
            schema: Arc::new(schema(has_causes)),
        }
    }

    /// Columns of `events`, whose parents stand in `parents`, and of their causes if the trace has any; every
    /// function must be in the table.
    pub(crate) fn batch(
        &self,
        events: &[Event],
        parents: Vec<i64>,
        causes: Vec<ArrayRef>,
    ) -> Result<RecordBatch, IotError> {
        let positions: Vec<i32> =
            events.iter().map(|event| table_position(event.function)).collect();
        let layers = positions.iter().map(|&position| self.layer_of[position as usize]);
        let mut columns: Vec<ArrayRef> = vec![
            column::<Int32Type>(events, |event| event.rank),
            column::<UInt32Type>(events, |event| event.process),
            column::<UInt32Type>(events, |event| event.thread),
            dictionary(layers.collect(), &self.layers)?,
            dictionary(positions, &self.operations)?,
            column::<UInt32Type>(events, |event| event.file.0),
            column::<Int32Type>(events, |event| event.fd),
            column::<Int64Type>(events, |event| event.offset),
            column::<Int64Type>(events, |event| event.length),
            column::<Int64Type>(events, |event| event.argument),
            column::<Int64Type>(events, |event| event.start.0 as i64),
            column::<Int64Type>(events, |event| event.end.0 as i64),
            column::<Int64Type>(events, |event| event.result),
            Arc::new(PrimitiveArray::<Int64Type>::from(parents)),
        ];
        columns.extend(causes);
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }
}

/// Position in the table; 0 for an unknown code, which the writer has refused before.
fn table_position(function: Function) -> i32 {
    let position = TABLE.binary_search_by_key(&function, |row| row.function);
    position.unwrap_or(0) as i32
}

fn column<T: ArrowPrimitiveType>(events: &[Event], cell: impl Fn(&Event) -> T::Native) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_iter_values(events.iter().map(cell)))
}

fn dictionary(keys: Vec<i32>, values: &Arc<StringArray>) -> Result<ArrayRef, IotError> {
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys.into(), values.clone())?))
}

/// Appends the rows of a batch (columns found by name) to `events`; `first_row` is the number of
/// its first row, for messages.
pub(crate) fn decode(
    batch: &RecordBatch,
    first_row: u64,
    events: &mut Vec<Event>,
) -> Result<(), IotError> {
    let ranks = cells::<Int32Type>(batch, "rank")?;
    let processes = cells::<UInt32Type>(batch, "process")?;
    let threads = cells::<UInt32Type>(batch, "thread")?;
    let functions = functions(batch, first_row)?;
    let files = cells::<UInt32Type>(batch, "file")?;
    let fds = cells::<Int32Type>(batch, "fd")?;
    let offsets = cells::<Int64Type>(batch, "offset")?;
    let lengths = cells::<Int64Type>(batch, "length")?;
    let arguments = cells::<Int64Type>(batch, "argument")?;
    let starts = cells::<Int64Type>(batch, "start_ns")?;
    let ends = cells::<Int64Type>(batch, "end_ns")?;
    let results = cells::<Int64Type>(batch, "result")?;
    let parents = cells::<Int64Type>(batch, "parent")?;
    for row in 0..batch.num_rows() {
        events.push(Event {
            rank: ranks[row],
            process: processes[row],
            thread: threads[row],
            function: functions[row],
            file: FileId(files[row]),
            fd: fds[row],
            offset: offsets[row],
            length: lengths[row],
            argument: arguments[row],
            start: time(starts[row], "start_ns", first_row + row as u64)?,
            end: time(ends[row], "end_ns", first_row + row as u64)?,
            result: results[row],
            parent: parents[row],
        });
    }
    Ok(())
}

fn time(cell: i64, column: &str, row: u64) -> Result<Nanos, IotError> {
    let nanos = u64::try_from(cell);
    nanos.map(Nanos).map_err(|_| IotError::Row { row, problem: format!("{column} is {cell}") })
}

fn cells<'a, T: ArrowPrimitiveType>(
    batch: &'a RecordBatch,
    name: &'static str,
) -> Result<&'a [T::Native], IotError> {
    let array = filled(batch, name)?;
    let array = array.as_primitive_opt::<T>().ok_or_else(|| mismatch(name, array.data_type()))?;
    Ok(array.values())
}

fn functions(batch: &RecordBatch, first_row: u64) -> Result<Vec<Function>, IotError> {
    let array = filled(batch, "op")?;
    let problem = || mismatch("op", array.data_type());
    let array = array.as_dictionary_opt::<Int32Type>().ok_or_else(problem)?;
    let names = array.values().as_string_opt::<i32>().ok_or_else(problem)?;
    let known: Vec<_> = names.iter().map(|name| name.and_then(Function::from_name)).collect();
    let unknown = |row: usize, key: i32| {
        let name = if names.is_null(key as usize) { "nothing" } else { names.value(key as usize) };
        IotError::Row {
            row: first_row + row as u64,
            problem: format!("op is `{name}`, which this version does not know"),
        }
    };
    let keys = array.keys().values().iter().enumerate();
    keys.map(|(row, &key)| known[key as usize].ok_or_else(|| unknown(row, key))).collect()
}

pub(crate) fn filled<'a>(
    batch: &'a RecordBatch,
    name: &'static str,
) -> Result<&'a ArrayRef, IotError> {
    let array = batch.column_by_name(name).ok_or_else(|| missing(name))?;
    match array.null_count() {
        0 => Ok(array),
        count => Err(IotError::Column {
            name,
            wanted: "filled in every row",
            found: format!("empty in {count}"),
        }),
    }
}

pub(crate) fn missing(name: &'static str) -> IotError {
    IotError::Column { name, wanted: wanted(name), found: "not there".to_owned() }
}

pub(crate) fn mismatch(name: &'static str, found: &DataType) -> IotError {
    mismatch_of(name, wanted(name), found)
}

pub(crate) fn mismatch_of(name: &'static str, wanted: &'static str, found: &DataType) -> IotError {
    IotError::Column { name, wanted, found: found.to_string().to_lowercase() }
}

fn wanted(name: &str) -> &'static str {
    all().find(|column| column.0 == name).map_or("known", |column| column.1.name())
}
